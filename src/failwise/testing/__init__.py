"""For tests of agents and tools: time that is stepped, tools and chat providers that are scripted,
calls that are kept.

What Failwise's own tests use. Nothing here sleeps.
"""

from typing import TYPE_CHECKING, Any

from failwise.testing.clock import SteppingClock
from failwise.testing.scripted import Expire, ScriptedTool, recorded

if TYPE_CHECKING:
    from failwise.testing.guard_conformance import GuardConformance as GuardConformance
    from failwise.testing.journal_conformance import JournalConformance as JournalConformance
    from failwise.testing.judging import judged as judged
    from failwise.testing.provider import ProviderServer as ProviderServer
    from failwise.testing.turns import Says as Says
    from failwise.testing.turns import Trouble as Trouble

_WHERE = {
    "judged": "judging",
    "GuardConformance": "guard_conformance",
    "JournalConformance": "journal_conformance",
    "ProviderServer": "provider",
    "Says": "turns",
    "Trouble": "turns",
}

__all__ = [
    "Expire",
    "GuardConformance",
    "JournalConformance",
    "ProviderServer",
    "Says",
    "ScriptedTool",
    "SteppingClock",
    "Trouble",
    "judged",
    "recorded",
]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"failwise.testing.{where}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
