"""Other people's frameworks. Each module imports its own when it is first used, never before."""
