"""Redaction: one border, before journal, log, telemetry, words and fingerprint."""

from failwise.redaction.cut import cut, shorten
from failwise.redaction.redactor import Redactor, default

__all__ = ["Redactor", "cut", "default", "shorten"]
