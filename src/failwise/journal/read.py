"""Reading a journal: typed rows for reports and for people, and settling what is open."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from failwise.effects.claims import StoredClaim
from failwise.journal import place as places
from failwise.journal.clock import SystemClock
from failwise.journal.reader import (
    ClusterName,
    Cursor,
    Filter,
    Place,
    Reader,
    Source,
    loaded,
    open_reader,
)
from failwise.journal.store import Keeping, Store, open_existing, open_store
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import record

__all__ = [
    "AttemptRecord", "CallRecord", "ClusterName", "Cursor", "File", "Filter", "OpenEffect",
    "Place", "Reader", "Source", "attempts", "calls", "open_effects", "open_reader", "opened",
    "settle",
]  # fmt: skip


@record
class CallRecord:
    """A finished call as it was kept. `started` and `retry_at` in epoch seconds, `sent` requests
    (retries included), `failed_attempts` of them failed. `failure` and `arguments` are redacted."""

    id: int
    call_id: str
    run_id: str
    parent_id: str | None
    tool: str
    started: float
    duration_ms: float
    success: bool
    category: str | None
    code: str | None
    http_status: int | None
    effect: str | None
    stop_reason: str
    action: str | None
    sent: int
    failed_attempts: int
    repairs: int
    degraded_to: str | None
    verified: bool | None
    retry_after: float | None
    retry_at: float | None
    provider: str | None
    fingerprint: str | None
    rule: str | None
    message: str | None
    failure: Failure | None
    arguments: Any


@record
class AttemptRecord:
    """One attempt of a call. `number` 0 was not sent. `started` in seconds after the call began;
    `failure_rule` gave the verdict, `rule` the decision (`action` after `delay` seconds)."""

    number: int
    started: float
    duration_ms: float
    category: str | None
    code: str | None
    http_status: int | None
    effect: str | None
    message: str | None
    failure_rule: str | None
    action: str | None
    delay: float | None
    reason: str | None
    rule: str | None


@record
class OpenEffect:
    """An effect of which nobody knows whether it happened: to be verified, or settled by a person.

    Times in epoch seconds. `arguments` are redacted and bounded.
    """

    key: str
    run_id: str
    call_id: str
    tool: str
    owner: str
    claimed_at: float
    lease_until: float
    arguments: Any


_CALL_COLUMNS = ", ".join(CallRecord.__slots__)  # type: ignore[attr-defined]
_ATTEMPT_COLUMNS = ", ".join(AttemptRecord.__slots__)  # type: ignore[attr-defined]
_OPEN_COLUMNS = ", ".join(OpenEffect.__slots__)  # type: ignore[attr-defined]


class File:
    """A journal that is there, opened to read; also to settle, and to name clusters.

    `place`: a path or URL, None for the usual place; `claims`: where claims are, as for `Journal`.
    Raises `ConfigurationError` where there is no journal.
    """

    def __init__(
        self,
        place: "str | os.PathLike[str] | None" = None,
        claims: "str | os.PathLike[str] | None" = None,
    ) -> None:
        target = places.locate(place)
        self.place = target.shown
        self.engine = target.engine
        self._store = open_existing(target)
        self._beside = self._store
        other = places.claims_target(target, claims)
        self._beside_file = ""
        if other != target:
            self._beside = open_store(other, Keeping())
            if other.engine == "sqlite":
                self._beside_file = other.address

    def _of(self, sql: str) -> Store:
        return self._beside if places.beside(sql) else self._store

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        store = self._of(sql)
        if store is self._beside and self._beside_file and not os.path.exists(self._beside_file):
            return []  # nothing was claimed yet, and looking must not make a file
        return store.rows(sql, parameters)

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        if statements:
            self._of(statements[0][0]).write(statements)

    def resolve(self, key: str, state: Literal["done", "not_done"]) -> StoredClaim:
        return self._beside.resolve(key, state)

    def sum_up(self) -> bool:
        """Sum up one day or week that is over; True when there is more (see `Store.sum_up`)."""
        return self._store.sum_up(at_once=True)

    def close(self) -> None:
        for store in {id(one): one for one in (self._store, self._beside)}.values():
            store.close()


@contextmanager
def opened(place: Place = None) -> "Iterator[Source]":
    """A source to read from: a `Journal` as it is, or the file at a path (None: the usual place)."""
    if isinstance(place, Reader):
        yield place.source
        return
    if place is not None and not isinstance(place, (str, os.PathLike)):
        yield place
        return
    file = File(place)
    try:
        yield file
    finally:
        file.close()


def calls(
    source: Source,
    *,
    since: float | None = None,
    until: float | None = None,
    tool: str | None = None,
    run_id: str | None = None,
    code: str | None = None,
    success: bool | None = None,
    limit: int = 100,
) -> list[CallRecord]:
    """The newest calls first; `since` (included) and `until` (not included) in epoch seconds."""
    conditions: list[str] = ["1"]
    values: list[Any] = []
    for condition, value in (
        ("started >= ?", since),
        ("started < ?", until),
        ("tool = ?", tool),
        ("run_id = ?", run_id),
        ("code = ?", code),
        ("success = ?", success),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    found = source.rows(
        f"SELECT {_CALL_COLUMNS} FROM calls WHERE {' AND '.join(conditions)}"  # noqa: S608
        " ORDER BY started DESC, id DESC LIMIT ?",
        (*values, limit),
    )
    return [_call(row) for row in found]


def attempts(source: Source, call: CallRecord | int) -> list[AttemptRecord]:
    """The attempts of a call in order; none for "first try, fine"."""
    number = call if isinstance(call, int) else call.id
    found = source.rows(
        f"SELECT {_ATTEMPT_COLUMNS} FROM attempts WHERE call=? ORDER BY position",  # noqa: S608
        (number,),
    )
    return [AttemptRecord(*row) for row in found]


def open_effects(
    source: Source, *, now: float | None = None, limit: int = 1000
) -> list[OpenEffect]:
    """Effects that may have happened, oldest first: unknown, or claimed under a lease that ran out."""
    moment = SystemClock.time() if now is None else now
    found = source.rows(
        f"SELECT {_OPEN_COLUMNS} FROM claims WHERE state IN ('claimed', 'unknown')"  # noqa: S608
        " AND (state = 'unknown' OR lease_until <= ?) ORDER BY claimed_at LIMIT ?",
        (moment, limit),
    )
    return [OpenEffect(**dict(row) | {"arguments": loaded(row["arguments"])}) for row in found]


def settle(place: Place, key: str, state: Literal["done", "not_done"]) -> StoredClaim:
    """A person says what became of an open effect; gives back the claim as it was.

    Raises `UsageError` for an unknown key, for one that is done, or one that is being sent now.
    """
    with opened(place) as source:
        return source.resolve(key, state)


def _call(row: Any) -> CallRecord:
    values = dict(row)
    values["success"] = bool(values["success"])
    values["verified"] = None if values["verified"] is None else bool(values["verified"])
    failure = loaded(values["failure"])
    values["failure"] = Failure.from_dict(failure) if isinstance(failure, dict) else None
    values["arguments"] = loaded(values["arguments"])
    return CallRecord(**values)
