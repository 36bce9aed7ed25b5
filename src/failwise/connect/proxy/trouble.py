"""Which tools are in trouble now: from the guards, and from the last results that passed by here."""

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.proxy import words
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.result import Language, ToolResult

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

_WINDOW: Final = 600.0
_KEPT: Final = 50
_FEWEST: Final = 5
_SHARE: Final = 0.8
_ILL: Final = (Category.NETWORK, Category.SERVER, Category.SECURITY, Category.AUTH, Category.TOOL)


class State:
    """The trouble of one tool: its upstream's circuit, its failing share."""

    __slots__ = ("code", "failed", "of", "open")

    def __init__(self, open: bool, failed: int, of: int, code: str) -> None:
        self.open, self.failed, self.of, self.code = open, failed, of, code

    def note(self, lang: Language) -> str | None:
        """One line for the tool's description, or None where nothing is wrong."""
        if self.open:
            return words.circuit_open(lang)
        if self.of >= _FEWEST and self.failed >= self.of * _SHARE:
            return words.failing(self.failed, self.of, self.code, lang)
        return None


class Trouble:
    """Remembers the last results of each tool for ten minutes."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._seen: dict[str, deque[tuple[float, str]]] = {}
        self._counts: dict[str, list[int]] = {}

    def saw(self, result: ToolResult[Any]) -> None:
        """A finished call. Answers (not found, refused arguments) are no trouble of the tool's."""
        failure = result.failure
        ill = failure is not None and failure.category in _ILL
        seen = self._seen.setdefault(result.tool_name, deque(maxlen=_KEPT))
        seen.append((time.monotonic(), failure.code if ill and failure else ""))
        counts = self._counts.setdefault(result.upstream, [0, 0, 0])
        counts[0] += 1
        counts[1] += failure is not None
        counts[2] += result.retries

    def counts(self, upstream: str) -> dict[str, int]:
        """Calls, failures and retries of an upstream since the proxy began."""
        calls, failures, retries = self._counts.get(upstream, (0, 0, 0))
        return {"calls": calls, "failures": failures, "retries": retries}

    def statistics(self) -> list[dict[str, Any]]:
        """The guards' rows, where they keep any."""
        statistics = getattr(self._runtime._guards, "statistics", None)
        return statistics() if statistics is not None else []

    def of(self, tool: str, upstream: str) -> State:
        """How a tool is doing at this moment."""
        open_ = any(
            row["upstream"] == upstream and row["circuit"] == "open" for row in self.statistics()
        )
        now = time.monotonic()
        recent = [code for at, code in self._seen.get(tool, ()) if now - at < _WINDOW]
        failed = [code for code in recent if code]
        return State(open_, len(failed), len(recent), failed[-1] if failed else "")
