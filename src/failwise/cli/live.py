"""Watching a call while it runs: a line for each attempt, with the reason of each decision."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.ports import Policy
from failwise.vocabulary.result import Attempt, Decision
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Situation

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

Announce: TypeAlias = Callable[[Failure, Situation, Decision], None]


def watch(runtime: "Runtime", announce: Announce) -> None:
    """Tell `announce` of every decision, before it is carried out."""
    logic = runtime._judgement.logic
    logic.policy = _WatchedPolicy(logic.policy, announce)


class _WatchedPolicy:
    """A policy that says what it decides. The decisions are the inner one's."""

    def __init__(self, inner: Policy, announce: Announce) -> None:
        self._inner, self._announce = inner, announce

    @property
    def wait_ceiling(self) -> float:
        return self._inner.wait_ceiling

    def timeout(self, tool: ToolSpec, attempts: tuple[Attempt, ...]) -> float | None:
        return self._inner.timeout(tool, attempts)

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        decision = self._inner.decide(failure, situation)
        self._announce(failure, situation, decision)
        return decision
