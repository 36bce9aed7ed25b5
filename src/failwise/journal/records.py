"""What was recorded: calls, attempts, runs, failures, raw answers, open effects."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from failwise.journal.clock import SystemClock
from failwise.journal.rows import ATTEMPT_COLUMNS, CALL_COLUMNS, OF_CALL
from failwise.journal.selection import NO_FILTER, Filter, conditions_of, of_calls, places
from failwise.journal.source import Source

if TYPE_CHECKING:
    from failwise.effects.claims import StoredClaim

Cursor: TypeAlias = tuple[float, int]
"""Where a page ended: ``(started, id)`` of its last row."""

_PAGE = 10_000
_TOGETHER = 100
"""Failures, or runs, that are looked up in one question."""


class Records:
    """Questions whose answers are records."""

    source: Source

    def calls(
        self,
        where: Filter | None = None,
        before: Cursor | None = None,
        limit: int = 100,
        *,
        since: float | None = None,
        until: float | None = None,
    ) -> list[dict[str, Any]]:
        """Calls, newest first: every column of ``calls``, ``failure``, ``arguments`` and ``changes`` (its repairs) as data,
        ``success`` and ``verified`` as bool. The next page: ``before=(row["started"], row["id"])``
        of the last one."""
        conditions, values = conditions_of(where or NO_FILTER, (since, until), "started", of_calls)
        if before is not None:
            conditions += " AND (started < ? OR (started = ? AND id < ?))"
            values += [before[0], before[0], before[1]]
        found = self.source.rows(
            f"SELECT {_CALLS} FROM calls WHERE {conditions}"  # noqa: S608
            " ORDER BY started DESC, id DESC LIMIT ?",
            [*values, limit],
        )
        return [_call(row) for row in found]

    def call(self, call_id: str) -> dict[str, Any] | None:
        """The newest call of this id, with its ``attempts``; None for none."""
        for condition in (" AND success = 0", ""):  # failures have an index
            found = self.source.rows(
                f"SELECT {_CALLS} FROM calls WHERE call_id = ?{condition}"  # noqa: S608
                " ORDER BY started DESC, id DESC LIMIT 1",
                (call_id,),
            )
            if found:
                return self.with_attempts([_call(found[0])])[0]
        return None

    def run(self, run_id: str, limit: int = 10_000) -> list[dict[str, Any]]:
        """The calls of a run in the order they began, fallbacks too, each with ``attempts``."""
        found = self.source.rows(
            f"SELECT {_CALLS} FROM calls WHERE run_id = ? AND run_id <> ''"  # noqa: S608
            " ORDER BY started, id LIMIT ?",
            (run_id, limit),
        )
        return self.with_attempts([_call(row) for row in found])

    def courses(self, runs: Sequence[str], limit: int = 20_000) -> list[dict[str, Any]]:
        """What the calls of these runs were, all runs asked for together, in the order the calls began:
        ``run_id``, ``tool``, ``success``, ``action``, ``fingerprint``."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(runs), _TOGETHER):
            some = runs[start : start + _TOGETHER]
            rows = self.source.rows(
                "SELECT run_id, tool, success, action, fingerprint FROM calls"  # noqa: S608
                f" WHERE run_id IN ({places(some)}) AND run_id <> '' ORDER BY started, id LIMIT ?",
                [*some, limit],
            )
            found += [dict(row) | {"success": bool(row["success"])} for row in rows]
        return found

    def failures(
        self,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        where: Filter | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Failed calls, newest first, read page by page: the rows of `calls`, so ``fingerprint``,
        ``code``, ``category``, ``tool``, ``upstream``, ``started``, ``message``, ``failure`` (data
        for `Failure.from_dict`), ``parent_id`` and the rest. `limit`: at most so many."""
        from dataclasses import replace

        wanted = replace(where or NO_FILTER, success=False)
        before, left = None, float("inf") if limit is None else limit
        while left > 0:
            page = self.calls(wanted, before, int(min(_PAGE, left)), since=since, until=until)
            yield from page
            if len(page) < _PAGE:
                return
            left -= len(page)
            before = page[-1]["started"], page[-1]["id"]

    def failures_at(self, moments: Mapping[str, float]) -> list[dict[str, Any]]:
        """Failed calls by fingerprint and the very moment at which they began (epoch s), as
        `fingerprints` gives it: rows of `calls`, asked for together."""
        found: list[dict[str, Any]] = []
        names = list(moments)
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            rows = self.source.rows(
                f"SELECT {_CALLS} FROM calls WHERE success = 0 AND started IN ({places(some)})"  # noqa: S608
                f" AND fingerprint IN ({places(some)}) ORDER BY started, id",
                [*(moments[name] for name in some), *some],
            )
            found += [_call(row) for row in rows]
        return [row for row in found if moments.get(row["fingerprint"]) == row["started"]]

    def with_attempts(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same rows, each with its ``attempts`` in order."""
        by_id: dict[int, list[dict[str, Any]]] = {call["id"]: [] for call in calls}
        # A first try that was fine has none.
        wanted = [call["id"] for call in calls if call["failed_attempts"] or call["sent"] != 1]
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            for row in self.source.rows(
                f"SELECT {_ATTEMPTS} FROM attempts WHERE call IN ({places(part)})"  # noqa: S608
                " ORDER BY call, position",
                part,
            ):
                by_id[row["call"]].append(dict(row))
        return [call | {"attempts": by_id[call["id"]]} for call in calls]

    def raw_answers(self, call_id: str) -> list[dict[str, Any]]:
        """The raw answers that were kept of a call (``[journal] raw``), by attempt: ``position``,
        ``at``, ``content_type``, ``length`` (bytes as received), ``body``."""
        return [
            dict(row)
            for row in self.source.rows(
                "SELECT call, position, at, content_type, length, body FROM raw_answers"
                " WHERE call_id = ? ORDER BY at, position",
                (call_id,),
            )
        ]

    def open_effects(self, now: float | None = None, limit: int = 1_000) -> list[dict[str, Any]]:
        """Effects of which nobody knows whether they happened, oldest first: ``key``, ``run_id``,
        ``call_id``, ``tool``, ``owner``, ``claimed_at``, ``lease_until``, ``arguments``."""
        moment = SystemClock.time() if now is None else now
        found = self.source.rows(
            # The first condition says nothing new, but claims that are open have an index.
            f"SELECT {_OPEN} FROM claims WHERE state IN ('claimed', 'unknown')"  # noqa: S608
            " AND (state = 'unknown' OR lease_until <= ?) ORDER BY claimed_at LIMIT ?",
            (moment, limit),
        )
        return [dict(row) | {"arguments": loaded(row["arguments"])} for row in found]

    def settle(self, key: str, state: Literal["done", "not_done"]) -> "StoredClaim":
        """A person says what became of an open effect; gives back the claim as it was. Raises
        `UsageError` for an unknown key, for one that is done, or one that is being sent now."""
        return self.source.resolve(key, state)


_CALLS = ", ".join(CALL_COLUMNS)
_ATTEMPTS = ", ".join(name for name in ATTEMPT_COLUMNS if name not in OF_CALL)
_OPEN = "key, run_id, call_id, tool, owner, claimed_at, lease_until, arguments"


def loaded(text: str | None) -> Any:
    """JSON as data; a text that is none as it is."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _call(row: Any) -> dict[str, Any]:
    values = dict(row)
    values["success"] = bool(values["success"])
    values["verified"] = None if values["verified"] is None else bool(values["verified"])
    values["failure"] = loaded(values["failure"])
    values["arguments"] = loaded(values["arguments"])
    values["changes"] = loaded(values["changes"])
    return values
