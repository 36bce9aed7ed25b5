"""Which calls, and grouped how: filters, stretches of time and groups, as SQL for every engine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from failwise.journal import rollups
from failwise.journal.rollups import DAY, HOUR
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

By: TypeAlias = Literal[
    "tool", "upstream", "category", "code", "model", "provider", "hour", "day", "run", "asked"
]
"""What figures are grouped by. Hours and days are given as the epoch second at which they begin."""
BY = ("tool", "upstream", "category", "code", "model", "provider", "hour", "day", "run", "asked")


@record
class Filter:
    """Which calls: every field that is given must fit; a tuple fits where one of its values does.

    `tool`, `upstream`, `category`, `code`, `model`, `provider`, `success` and `asked` (True: calls
    that somebody asked for, no fallbacks of others) can be answered from the rollups; `run`,
    `call_id`, `fingerprint`, `effect`, `http_status`, `verified` (True: it was found out that it had
    happened) and `text` (found in the message, case does not count) need the calls themselves.
    """

    tool: str | tuple[str, ...] | None = None
    upstream: str | tuple[str, ...] | None = None
    category: str | tuple[str, ...] | None = None
    code: str | tuple[str, ...] | None = None
    model: str | tuple[str, ...] | None = None
    provider: str | tuple[str, ...] | None = None
    success: bool | None = None
    asked: bool | None = None
    run: str | tuple[str, ...] | None = None
    call_id: str | tuple[str, ...] | None = None
    fingerprint: str | tuple[str, ...] | None = None
    effect: str | tuple[str, ...] | None = None
    http_status: int | tuple[int, ...] | None = None
    verified: bool | None = None
    text: str | None = None

    @property
    def rolled_up(self) -> bool:
        """The rollups can answer it."""
        fine = (self.run, self.call_id, self.fingerprint, self.effect, self.http_status)
        return all(value is None for value in (*fine, self.verified, self.text))

    @property
    def rolled_up_by_fingerprint(self) -> bool:
        """The rollup of failures can answer it."""
        fine = (self.run, self.call_id, self.effect, self.http_status, self.model)
        return all(value is None for value in (*fine, self.verified, self.text))

    @property
    def of_failures(self) -> bool:
        """No success can fit."""
        kinds = (self.category, self.code, self.provider)
        facts = (self.fingerprint, self.effect, self.http_status)
        return (
            any(
                one is not None and "" not in (one if isinstance(one, tuple) else (one,))
                for one in kinds
            )
            or any(one is not None for one in facts)
            or bool(self.text)
        )


NO_FILTER = Filter()
_FINE = {"run": "run_id", "call_id": "call_id", "fingerprint": "fingerprint", "effect": "effect",
         "http_status": "http_status", "verified": "verified"}  # fmt: skip


ATTEMPT_FACTS: Mapping[str, str] = {
    "hour": "attempts.hour",
    "tool": "attempts.tool",
    "upstream": "attempts.upstream",
    "model": "attempts.model",
    "provider": "coalesce(attempts.provider, '')",
    "category": "coalesce(attempts.category, '')",
    "code": "coalesce(attempts.code, '')",
    "asked": "CASE WHEN calls.parent_id IS NULL THEN 1 ELSE 0 END",
    "run": "calls.run_id",
    "call_id": "calls.call_id",
    "success": "attempts.success",
    "fingerprint": "attempts.fingerprint",
    "effect": "attempts.effect",
    "http_status": "attempts.http_status",
    "verified": "calls.verified",
    "message": "attempts.message",
}
"""What attempts can be counted and filtered by; of ``calls`` where they are joined with theirs."""


def whole(
    since: float | None, until: float | None, size: int
) -> tuple[float | None, float | None] | None:
    """The whole hours or days inside a stretch of time; None where there are none."""
    first = None if since is None else -(-since // size) * size
    last = None if until is None else until // size * size
    if first is not None and last is not None and first >= last:
        return None
    return first, last


def edges(
    since: float | None, until: float | None, core: tuple[float | None, float | None]
) -> list[tuple[float | None, float | None]]:
    """What a stretch of time has beyond its whole hours or days."""
    found: list[tuple[float | None, float | None]] = []
    if since is not None and core[0] is not None and since < core[0]:
        found.append((since, core[0]))
    if until is not None and core[1] is not None and until > core[1]:
        found.append((core[1], until))
    return found


def floored(since: float | None, until: float | None) -> tuple[float | None, float | None]:
    """From the hour of `since` to the end of the hour of `until`."""
    first = None if since is None else since // HOUR * HOUR
    return first, None if until is None else -(-until // HOUR) * HOUR


def stretch_of(since: float | None, until: float | None, column: str) -> tuple[str, list[Any]]:
    conditions, values = ["1 = 1"], []
    if since is not None:
        conditions.append(f"{column} >= ?")
        values.append(since)
    if until is not None:
        conditions.append(f"{column} < ?")
        values.append(until)
    return " AND ".join(conditions), values


def conditions_of(
    where: Filter,
    between: tuple[float | None, float | None],
    moment: str,
    expression: Callable[[str], str | None],
) -> tuple[str, list[Any]]:
    """The filter as SQL over ``calls``, a rollup, or attempts and their calls; `expression` spells a
    column there, None where there is none. Raises `UsageError` for a filter that needs it."""
    condition, values = stretch_of(*between, moment)
    conditions = [condition]
    for name in (*rollups.DIMENSIONS, *_FINE):
        wanted = getattr(where, name)
        if wanted is None:
            continue
        column = expression(name)
        if column is None:
            raise UsageError(f"this cannot be filtered by {name}")
        some = wanted if isinstance(wanted, tuple) else (wanted,)
        conditions.append(f"{column} IN ({places(some)})")
        if column == "run_id" and all(some):
            conditions.append("run_id <> ''")  # says nothing new, but runs have an index
        values += [int(one) if isinstance(one, bool) else one for one in some]
    if where.success is not None:
        # A cell of a rollup holds one kind of outcome: successes have no category.
        if moment in ("hour", "day"):
            conditions.append("category = ''" if where.success else "category <> ''")
        else:
            conditions.append(f"{expression('success')} = {int(where.success)}")
    elif moment == "started" and where.of_failures:
        conditions.append("success = 0")  # says nothing new, but failures have an index
    if where.text is not None:
        conditions.append(f"lower(coalesce({expression('message')}, '')) LIKE ? ESCAPE '!'")
        text = where.text.lower()
        for mark in "!%_":
            text = text.replace(mark, "!" + mark)
        values.append(f"%{text}%")
    return " AND ".join(conditions), values


def of_calls(name: str) -> str:
    return rollups.DIMENSIONS.get(name) or _FINE.get(name, name)


def places(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def group_columns(
    by: Sequence[str],
    *,
    rolled_up: bool,
    period: str = "hour",
    columns: Mapping[str, str] | None = None,
) -> list[str]:
    spelled: list[str] = []
    for name in by:
        if columns is not None:
            spelled.append(columns["hour" if name == "day" else name])
        elif name == "day" and (not rolled_up or period == "hour"):
            spelled.append(f"hour - hour % {DAY}")
        elif name in ("hour", "day"):
            spelled.append(period)
        elif name == "run":
            spelled.append("run_id")
        else:
            spelled.append(name if rolled_up else rollups.DIMENSIONS[name])
    return [f"{column} AS by_{place}" for place, column in enumerate(spelled)]


def grouping(columns: int) -> str:
    return " GROUP BY " + ", ".join(str(n + 1) for n in range(columns)) if columns else ""


def key_of(by: Sequence[str], row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        value - value % DAY if name == "day" else value
        for name, value in zip(by, row, strict=False)
    )


def order_of(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((isinstance(value, str), value) for value in key)
