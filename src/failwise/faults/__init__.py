"""Faults for tests and demonstrations: a server that fails as told, and an injector for functions.

Real HTTP and HTTPS on loopback, scripted replies, a ledger of the effects really done. See
`FaultServer`, `Fault`, and `inject`.
"""

from failwise.faults.injector import AfterCall, Passes, Returns, inject
from failwise.faults.ledger import Entry, Ledger, Tokens
from failwise.faults.replies import Effect, Fault, Reply
from failwise.faults.requests import Request
from failwise.faults.server import FaultServer

__all__ = [
    "AfterCall",
    "Effect",
    "Entry",
    "Fault",
    "FaultServer",
    "Ledger",
    "Passes",
    "Reply",
    "Request",
    "Returns",
    "Tokens",
    "inject",
]
