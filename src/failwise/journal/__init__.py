"""The journal: finished calls and claims become durable rows.

`journal.Journal` is what the runtime writes to; `read.Reader` is what reports and people read.
Nothing here is opened, started or imported before the first call needs it.
"""
