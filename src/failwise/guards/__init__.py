"""Guards: names and costs in; leave to send, a wait, or a refusal out. They know nothing of calls."""

from typing import TYPE_CHECKING

from failwise.guards.memory import MemoryGuards
from failwise.guards.settings import (
    GuardSettings,
    default_settings,
    parse_settings,
    read_settings,
)
from failwise.vocabulary.ports import Clock

if TYPE_CHECKING:
    from failwise.guards.shared import ValkeyGuards

__all__ = [
    "GuardSettings",
    "MemoryGuards",
    "default_settings",
    "guards_at",
    "parse_settings",
    "read_settings",
]


def guards_at(
    place: str | None,
    clock: Clock,
    settings: GuardSettings | None = None,
    *,
    namespace: str = "failwise",
    server_time: bool = True,
) -> "MemoryGuards | ValkeyGuards":
    """The guards whose state is at `place`: ``"memory"`` (or None), or a Redis or Valkey URL.

    Raises `UsageError` for a place that cannot be.
    """
    if place is None or place == "memory":
        return MemoryGuards(clock, settings)
    from failwise.guards.shared import ValkeyGuards

    return ValkeyGuards(place, clock, settings, namespace=namespace, server_time=server_time)
