"""The rollups: counts kept by hour, written in the transaction of the calls that they count.

One definition serves every engine: the same SELECT over ``calls`` fills a new table from old rows,
adds a batch to it, and counts what a rollup cannot answer. Readers always sum, so that an engine may
keep several rows for one key.

| table | one row for | holds |
| --- | --- | --- |
| ``rollup_calls`` | hour and `DIMENSIONS` | `COUNTERS` |
| ``latency_hours``, ``latency_days`` | hour or day, bucket and `DIMENSIONS` | calls |
| ``rollup_attempts`` | hour, tool, upstream, model, provider, category, code | failed attempts, those cured |
| ``rollup_failures`` | hour, fingerprint, code, tool, upstream, category, provider, asked | failed calls, first and last seen |
| ``rollup_arguments`` | hour, tool, model, number of parameters (-1: unknown) | calls that somebody asked for, by what became of their arguments |
"""

from collections.abc import Iterable, Mapping, Sequence

from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record

HOUR = 3_600
DAY = 86_400

REFUSALS = (Category.BUSINESS, Category.INVALID_REQUEST, Category.MODEL_OUTPUT, Category.AUTH)
"""Categories that are an answer, not ill health: counted apart from faults."""


def _of_failures(column: str) -> str:
    return f"CASE WHEN success = 0 THEN coalesce({column}, '') ELSE '' END"


DIMENSIONS: Mapping[str, str] = {
    "tool": "tool",
    "upstream": "upstream",
    "model": "model",
    "provider": _of_failures("provider"),
    "category": _of_failures("category"),
    "code": _of_failures("code"),
    "asked": "CASE WHEN parent_id IS NULL THEN 1 ELSE 0 END",
}
"""What calls are grouped by, as expressions over ``calls``. `asked`: 1 for a call that somebody asked
for, 0 for a fallback, which is a child of one."""

_REFUSED = "category IN (" + ", ".join(f"'{category.value}'" for category in REFUSALS) + ")"


def _if(condition: str, value: str = "1") -> str:
    return f"CASE WHEN {condition} THEN {value} ELSE 0 END"


COUNTERS: Mapping[str, str] = {
    "calls": "1",
    "successes": "success",
    "first_try": _if("success = 1 AND degraded_to IS NULL AND failed_attempts = 0"),
    "recovered": _if("success = 1 AND degraded_to IS NULL AND failed_attempts > 0"),
    "degraded": _if("success = 1 AND degraded_to IS NOT NULL"),
    "refusals": _if(f"success = 0 AND {_REFUSED}"),
    "rounds": _if("success = 0 AND category = 'model_output'"),
    "requests": "sent",
    "retried": _if("sent > 1"),
    "retries": _if("sent > 1", "sent - 1"),
    "wasted": _if("success = 0 AND sent > 1", "sent - 1"),
    "failed_attempts": "failed_attempts",
    "told_waits": "told_waits",
    "waits_obeyed": "waits_obeyed",
    "waited_ms": "waited_ms",
    "repaired": _if("repairs > 0"),
    "repairs": "repairs",
    "verified": _if("verified = 1"),
    "body_length": "coalesce(body_length, 0)",
    "fed_length": "coalesce(fed_length, 0)",
    "body_tokens": "coalesce(body_tokens, 0)",
    "fed_tokens": "coalesce(fed_tokens, 0)",
    "duration_ms": "duration_ms",
}
"""What is counted, as expressions over one row of ``calls``; each is summed. docs/metrics.md says
what they mean."""

REALS = frozenset({"waited_ms", "duration_ms"})
"""Counters that are not whole numbers."""


@record
class Rollup:
    """One rollup: `keys` and `sums` by column name, as expressions over `source`, whose
    rows are told by `id` (the call's number) and `moment` (when the call began); `ends` are columns
    that keep the least (``min``) or greatest (``max``) instead of a sum."""

    table: str
    source: str
    keys: Mapping[str, str]
    sums: Mapping[str, str]
    condition: str = ""
    id: str = "id"
    moment: str = "started"
    ends: Mapping[str, tuple[str, str]] | None = None

    @property
    def period(self) -> str:
        """The column that says when: ``hour`` or ``day``."""
        return next(iter(self.keys))

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *self.sums, *(self.ends or ()))

    def select(self, *conditions: str, shard: str = "") -> str:
        """Count the rows of `source` that fulfil the conditions."""
        values = [
            *self.keys.values(),
            *(f"sum({expression})" for expression in self.sums.values()),
            *(f"{end}({expression})" for end, expression in (self.ends or {}).values()),
        ]
        named = ", ".join(
            f"{value} AS {name}" for value, name in zip(values, self.columns, strict=True)
        )
        every = " AND ".join(filter(None, (self.condition, *conditions))) or "1 = 1"
        keys = len(self.keys)
        if shard:
            named, keys = f"{shard}, {named}", keys + 1
        positions = ", ".join(str(number + 1) for number in range(keys))
        # In order, so that two processes that add to the same rows never wait for each other.
        return (
            f"SELECT {named} FROM {self.source} WHERE {every}"  # noqa: S608
            f" GROUP BY {positions} ORDER BY {positions}"
        )

    def insert(
        self, *conditions: str, least: str = "min", greatest: str = "max", shard: str = ""
    ) -> str:
        """Add the rows of `source` that fulfil the conditions; `least` and `greatest` are the
        engine's functions of two values, `shard` the value of its column where the table has one."""
        columns = self._columns(shard)
        chosen = self.select(*conditions, shard=shard)
        return (
            f"INSERT INTO {self.table} ({columns}) {chosen} {self._adding(least, greatest, shard)}"
        )

    def addition(self, *, least: str = "min", greatest: str = "max", shard: str = "") -> str:
        """Add one row of counts: its values in the order of `columns`."""
        places = ", ".join([*([shard] if shard else []), *["?"] * len(self.columns)])
        return (
            f"INSERT INTO {self.table} ({self._columns(shard)}) VALUES ({places})"  # noqa: S608
            f" {self._adding(least, greatest, shard)}"
        )

    def counts(self) -> str:
        """Read all: the values of `columns`, once for each key."""
        ends = [f"{end}({name}) AS {name}" for name, (end, _) in (self.ends or {}).items()]
        what = ", ".join([*self.keys, summed(self.sums), *ends])
        positions = ", ".join(str(number + 1) for number in range(len(self.keys)))
        return f"SELECT {what} FROM {self.table} GROUP BY {positions}"  # noqa: S608

    def _columns(self, shard: str) -> str:
        return ", ".join(("shard", *self.columns) if shard else self.columns)

    def _adding(self, least: str, greatest: str, shard: str) -> str:
        names, table = {"min": least, "max": greatest}, self.table
        keys = [*self.keys, "shard"] if shard else [*self.keys]
        sets = [f"{name} = {table}.{name} + excluded.{name}" for name in self.sums]
        sets += [
            f"{name} = {names[end]}({table}.{name}, excluded.{name})"
            for name, (end, _) in (self.ends or {}).items()
        ]
        return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(sets)}"


def _latency(table: str, period: str, start: str) -> Rollup:
    keys = {period: start, "bucket": "latency_bucket", **DIMENSIONS}
    return Rollup(table, "calls", keys, {"calls": "1"})


CALLS = Rollup("rollup_calls", "calls", {"hour": "hour", **DIMENSIONS}, COUNTERS)
LATENCY_HOURS = _latency("latency_hours", "hour", "hour")
LATENCY_DAYS = _latency("latency_days", "day", f"hour - hour % {DAY}")
ATTEMPTS = Rollup(
    "rollup_attempts",
    "attempts",
    {
        "hour": "hour",
        "tool": "tool",
        "upstream": "upstream",
        "model": "model",
        "provider": "coalesce(provider, '')",
        "category": "coalesce(category, '')",
        "code": "coalesce(code, '')",
    },
    {"attempts": "1", "cured": "success"},
    condition="category IS NOT NULL",
    id="call",
    moment="at",
)
FAILURES = Rollup(
    "rollup_failures",
    "calls",
    {
        "hour": "hour",
        "fingerprint": "coalesce(fingerprint, '')",
        "code": "coalesce(code, '')",
        "tool": "tool",
        "upstream": "upstream",
        "category": "coalesce(category, '')",
        "provider": "coalesce(provider, '')",
        "asked": DIMENSIONS["asked"],
    },
    {"calls": "1"},
    condition="success = 0",
    ends={"first_seen": ("min", "started"), "last_seen": ("max", "started")},
)
ARGUMENTS = Rollup(
    "rollup_arguments",
    "calls",
    {
        "hour": "hour",
        "tool": "tool",
        "model": "model",
        "parameters": "coalesce(parameters, -1)",
    },
    {
        "calls": "1",
        "wrong": _if(
            "success = 0 AND category = 'model_output' AND code <> 'model_output.unknown_tool'"
        ),
        "refused": _if(
            "success = 0 AND code IN ('invalid_request.parameter',"
            " 'invalid_request.missing_parameter')"
        ),
        "repaired": _if("repairs > 0"),
    },
    condition="parent_id IS NULL",
)
ALL: Sequence[Rollup] = (CALLS, LATENCY_HOURS, LATENCY_DAYS, ATTEMPTS, FAILURES, ARGUMENTS)


def summed(names: Iterable[str]) -> str:
    """``sum(name) AS name, ...``"""
    return ", ".join(f"sum({name}) AS {name}" for name in names)
