"""Guards: names and costs in; leave to send, a wait, or a refusal out. They know nothing of calls."""

from failwise.guards.memory import MemoryGuards
from failwise.guards.settings import (
    GuardSettings,
    default_settings,
    parse_settings,
    read_settings,
)

__all__ = ["GuardSettings", "MemoryGuards", "default_settings", "parse_settings", "read_settings"]
