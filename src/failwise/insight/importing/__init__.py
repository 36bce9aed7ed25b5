"""Failures that were recorded elsewhere become records: read, classified, put into a journal.

`reading.read_calls` finds the tool calls in a file, `taking.take_over` classifies and records them.
"""
