"""What the loop learns of a model's calls: repeats of what failed, and corrections that do not help.

Pure: results in, verdicts out. The world changes when a call succeeds that is not declared a read;
until then the same call fails the same way.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from failwise.agent.messages import ToolCall
from failwise.effects.identity import arguments_fingerprint
from failwise.vocabulary.kinds import Category, Effect
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult

_SPELL = 30.0
"""Seconds after which a failure that was transient may be over."""
_CORRECTABLE = (Category.MODEL_OUTPUT, Category.INVALID_REQUEST)


@record
class Verdict:
    """A call that is not sent, and why: ``repeated``, ``early`` (`seconds` too early), ``closed``
    (its corrections are used up), ``open`` (an earlier one with the same required arguments may have
    taken effect). `result`: the failure it repeats. `between`: the tools that the model goes back
    and forth between."""

    kind: Literal["repeated", "early", "closed", "open"]
    result: ToolResult[Any]
    seconds: float = 0.0
    between: tuple[str, ...] = ()


@dataclass(slots=True)
class _Failed:
    """A call that failed: in which state of the world, when, how often it was let through again."""

    result: ToolResult[Any]
    world: int
    successes: int
    at: float
    again: int = 0


def fingerprint(tool: str, call: ToolCall) -> str:
    """What makes two of the model's calls the same: tool and arguments, by value where they can be
    read, else by their text."""
    value: Any = call.arguments
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            digest = blake2b(call.text.encode("utf-8", "surrogatepass"), digest_size=16)
            return f"{tool}:{digest.hexdigest()}"
    return arguments_fingerprint(tool, value)


def essence(tool: str, call: ToolCall, required: Sequence[str]) -> str:
    """What makes two orders the same order: tool and required arguments. A model that was told
    "it may have happened" likes to try again with a note added."""
    value: Any = call.arguments
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return fingerprint(tool, call)
    if not required or not isinstance(value, Mapping):
        return fingerprint(tool, call)
    return arguments_fingerprint(tool, {name: value.get(name) for name in required})


def harmless(result: ToolResult[Any]) -> bool:
    """The same call again does nothing twice: nothing was done, its tool may be repeated, or the
    runtime asks the tool's `verify` before it sends anything."""
    failure, effect = result.failure, result.effect
    return failure is not None and (
        (effect is not None and effect.safe)
        or "verified" in (failure.details or {})
        or any(failure.detail(name) is True for name in ("read_only", "idempotent", "keyed"))
    )


def _repeatable(result: ToolResult[Any]) -> bool:
    """Doing it again does no harm, as its tool declares."""
    failure = result.failure
    return failure is not None and failure.detail("idempotent") is True


class Conduct:
    """The calls of one task. `rounds`: corrections for each cause (tool and code)."""

    def __init__(self, rounds: int) -> None:
        self._most = rounds
        self._world = 0
        self._successes = 0
        self._failed: dict[str, _Failed] = {}
        self._rounds: dict[tuple[str, str], int] = {}
        self._closed: dict[str, ToolResult[Any]] = {}
        self._open: dict[str, ToolResult[Any]] = {}
        """Orders that may have taken effect, by their essence."""
        self._known: set[str] = set()
        """Calls that have succeeded in this world."""
        self._refused: dict[str, int] = {}
        """How often each call was not sent in it."""
        self._row: list[str] = []
        """Tools of the calls that failed or were not sent since the last success."""
        self.corrections = 0
        """Rounds used, over all causes."""
        self.refused_in_row = 0
        """Calls not sent since the last success."""

    def look(self, tool: str, mark: str, order: str, now: float) -> Verdict | None:
        """Whether a call should not be sent. `order` is its essence; `now` in epoch seconds."""
        closed = self._closed.get(tool)
        if closed is not None:
            return Verdict("closed", closed)
        if order in self._open and mark not in self._failed and not _repeatable(self._open[order]):
            return Verdict("open", self._open[order])
        known = self._failed.get(mark)
        if known is None or known.world != self._world:
            return None
        result = known.result
        if result.retriable:
            left = (result.retry_at or 0.0) - now
            if left > 0:
                return Verdict("early", result, left)
            if known.again < self._most:
                known.again += 1
                return None
        elif self._may_be_over(known, now):
            known.again += 1
            return None
        return Verdict("repeated", result, between=self._between(tool))

    def _may_be_over(self, known: _Failed, now: float) -> bool:
        """A transient failure that did no harm, and time or other work has passed since."""
        failure = known.result.failure
        if failure is None or failure.transient is not True or known.again >= self._most:
            return False
        passed = now - known.at >= _SPELL or self._successes > known.successes
        return passed and harmless(known.result)

    def _between(self, tool: str) -> tuple[str, ...]:
        """The two tools that take turns in failing, this one among them."""
        last = [*self._row[-3:], tool]
        if len(last) == 4 and last[0] == last[2] != last[1] == last[3]:
            return last[0], last[1]
        return ()

    def refused(self, tool: str, mark: str) -> None:
        """A call was not sent."""
        self.refused_in_row += 1
        self._refused[mark] = self._refused.get(mark, 0) + 1
        self._row.append(tool)

    def learn(
        self, mark: str, order: str, result: ToolResult[Any], now: float, *, read_only: bool
    ) -> int:
        """Learn from a call that was made; the round of correction it asks for (0: none)."""
        tool, failure = result.tool_name, result.failure
        if failure is None:
            self._successes += 1
            if mark not in self._known or not read_only:
                self.refused_in_row = 0  # something new; looking at the same again is not
                self._row.clear()
            self._known.add(mark)
            self._failed.pop(mark, None)
            self._open.pop(order, None)
            for cause in [cause for cause in self._rounds if cause[0] == tool]:
                del self._rounds[cause]
            if not read_only:
                self.changed()
            return 0
        self._row.append(tool)
        if not read_only and result.effect in (Effect.UNKNOWN, Effect.APPLIED):
            self._open[order] = result
        before = self._failed.get(mark)
        again = before.again if before is not None and before.world == self._world else 0
        self._failed[mark] = _Failed(result, self._world, self._successes, now, again)
        if failure.category not in _CORRECTABLE or failure.code == "model_output.unknown_tool":
            return 0
        cause = (tool, failure.code)
        count = self._rounds[cause] = self._rounds.get(cause, 0) + 1
        self.corrections += 1
        if count > self._most:
            self._closed[tool] = result
        return count

    def changed(self) -> None:
        """The world is another one: what failed may work now, what was read may be different."""
        self._world += 1
        self._known.clear()
        self._refused.clear()
        self.refused_in_row = 0

    @property
    def stuck(self) -> bool:
        """As many calls in a row were not sent as there are rounds, or one call as often: nothing
        new is tried."""
        return max(self.refused_in_row, *self._refused.values(), 0) >= self._most

    @property
    def rounds(self) -> Mapping[tuple[str, str], int]:
        return self._rounds
