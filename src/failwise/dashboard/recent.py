"""The repairs of the newest calls of a runtime in this process: a journal only counts them."""

import threading
from collections import OrderedDict
from typing import Any, Final

from failwise.journal.bounded import bounded
from failwise.vocabulary.result import ToolResult

_KEPT: Final = 1_000


class RecentRepairs:
    """Remembers the repairs of the last calls that had some, redacted. Give it to ``on_result``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], list[dict[str, Any]]] = OrderedDict()

    def __call__(self, result: ToolResult[Any]) -> None:
        if not result.repairs:
            return
        from failwise.redaction import default

        rows: list[dict[str, Any]] = default().data(
            bounded([repair.to_dict() for repair in result.repairs[:50]])
        )
        with self._lock:
            self._known[result.run_id, result.call_id] = rows
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def of(self, run_id: str, call_id: str) -> list[dict[str, Any]]:
        """The repairs of a call: ``kind``, ``path``, ``before``, ``after``, ``grade``; none where they
        are not known."""
        with self._lock:
            return self._known.get((run_id, call_id), [])
