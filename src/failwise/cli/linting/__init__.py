"""What `failwise lint` does: the tools of an agent, found by what they look like, and what is wrong."""
