"""Failwise: a tool runtime for AI agents in which a failure is data, not an exception."""
