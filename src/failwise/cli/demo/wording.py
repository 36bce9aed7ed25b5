"""The sentences of the demonstration, and the reason of a decision in one of them."""

import functools
from collections.abc import Mapping
from typing import Any

from failwise.vocabulary import documents
from failwise.vocabulary.kinds import Action
from failwise.vocabulary.result import Attempt, Language
from failwise.vocabulary.spec import resolve_flag
from failwise.vocabulary.steps import Call


@functools.cache
def _all() -> Mapping[str, Mapping[str, Any]]:
    return documents.read("failwise.cli.demo", "texts.toml")[1]


class Wording:
    """What is said, in one language."""

    def __init__(self, lang: Language) -> None:
        self.lang: Language = lang
        self._texts = _all()[lang]

    def say(self, name: str, /, **facts: object) -> str:
        """A sentence, filled in."""
        return str(self._texts[name]).format(**facts)

    def of(self, group: str, name: str, /, **facts: object) -> str:
        """A sentence of a group (``titles``, ``goals``, ...), filled in; its name if there is none."""
        return str(self._texts[group].get(name, name)).format(**facts)

    def count(self, name: str, number: int) -> str:
        """``requests`` or ``effects`` with their number."""
        return self.say(f"{name}_one" if number == 1 else f"{name}_many", count=number)

    def reason(self, call: Call, attempt: Attempt) -> str:
        """What follows from a failed attempt, and why."""
        failure, decision = attempt.failure, attempt.decision
        assert failure is not None
        assert decision is not None
        delay = f"{decision.delay:.2f}"
        why = self.of("stops", decision.stop.value) if decision.stop else ""
        action = self.of("actions", decision.action.value)
        match decision.action:
            case Action.FALLBACK:
                name = ", ".join(call.tool.fallback)
                return self.of("reasons", "fallback", why=why, name=name)
            case _ if decision.stop is not None:
                kind = "stops_run" if decision.interrupt else "end"
                if failure.code == "runtime.chain_aborted":
                    kind = "chain"
                return self.of("reasons", kind, why=why, action=action)
            case Action.RETRY_EXACT:
                told = f"{failure.retry_after or 0:g}"
                return self.of("reasons", "retry_exact", delay=delay, told=told)
            case Action.RETRY_BACKOFF:
                safe = self.of("safe", _why_safe(call, attempt))
                return self.of("reasons", "retry", delay=delay, safe=safe)
            case Action.REFRESH_CREDENTIAL:
                return self.of("reasons", "refresh")
            case Action.REPAIR_ARGUMENTS:
                return self.of("reasons", "repair")
            case Action.VERIFY_EFFECT:
                return self.of("reasons", "verify")
            case _:
                return action


def _why_safe(call: Call, attempt: Attempt) -> str:
    """Why sending it again does no harm."""
    failure, tool = attempt.failure, call.tool
    assert failure is not None
    arguments = dict(call.raw) if isinstance(call.raw, Mapping) else {}
    if failure.effect.safe:
        return "untouched"
    if failure.detail("read_only") is True:
        return "read_only"
    return "idempotent" if resolve_flag(tool.idempotent, arguments) else "keyed"
