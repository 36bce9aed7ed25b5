"""Calls as lines of JSON, as Parquet, and as bulk lines for Elasticsearch and OpenSearch."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal

from failwise.journal import rows
from failwise.journal.bounded import bounded
from failwise.journal.latency import bucket_of
from failwise.journal.reader import Filter, Reader
from failwise.vocabulary.errors import ConfigurationError, UsageError

Format = Literal["jsonl", "parquet", "bulk"]
LINE_LIMIT = 4_000_000
"""Characters of one line that are read."""
_PAGE = 2_000
_DERIVED = ("id", "hour", "latency_bucket")
_DATA = ("failure", "arguments", "changes")
_REALS = frozenset(
    {"started", "duration_ms", "waited_ms", "retry_at", "retry_after", "delay", "at"}
)
_TEXTS = frozenset(
    {"call_id", "run_id", "parent_id", "tool", "stop_reason", "upstream", "model", "degraded_to",
     "action", "category", "code", "effect", "provider", "fingerprint", "rule", "message", "failure",
     "arguments", "changes", "failure_rule", "reason", "attempts"}
)  # fmt: skip
"""What is text; all other columns are whole numbers but `_REALS`."""
_NEEDED: Mapping[str, Any] = {
    "call_id": None, "tool": None, "started": None, "run_id": "", "duration_ms": 0.0, "success": 0,
    "stop_reason": "", "sent": 1, "upstream": "", "model": "", "failed_attempts": 0, "repairs": 0,
    "waited_ms": 0.0, "told_waits": 0, "waits_obeyed": 0,
}  # fmt: skip
_NEEDED_OF_ATTEMPT: Mapping[str, Any] = {"number": 1, "started": 0.0, "duration_ms": 0.0}
_LONGEST = {"failure": rows.FAILURE, "arguments": rows.ARGUMENTS, "changes": rows.ARGUMENTS, "message": rows.MESSAGE,
            "reason": rows.MESSAGE}  # fmt: skip


def lines(
    reader: Reader,
    where: Filter | None = None,
    *,
    since: float | None = None,
    until: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Calls, newest first, as plain data with ``schema: 1`` and their ``attempts``."""
    before = None
    while True:
        page = reader.calls(where, before, _PAGE, since=since, until=until)
        for call in reader.with_attempts(page):
            kept = {name: value for name, value in call.items() if name not in _DERIVED}
            kept["attempts"] = [
                {name: value for name, value in attempt.items() if name not in ("call", "at")}
                for attempt in call["attempts"]
            ]
            yield {"schema": 1, **kept}
        if len(page) < _PAGE:
            return
        before = page[-1]["started"], page[-1]["id"]


def write(
    found: Iterator[dict[str, Any]],
    file: IO[bytes],
    form: Format,
    *,
    index: str = "failwise-calls",
) -> int:
    """Write calls in a form; gives how many. `index`: the index, alias or data stream of ``bulk``.

    Raises `ConfigurationError` where Parquet cannot be written, because pyarrow is not there.
    """
    if form == "parquet":
        return _write_parquet(found, file)
    count = 0
    for call in found:
        if form == "bulk":
            action = {"create": {"_index": index, "_id": document_id(call)}}
            call = _document(call)  # noqa: PLW2901
            file.write(_line(action))
        file.write(_line(call))
        count += 1
    return count


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def document_id(call: Mapping[str, Any]) -> str:
    """The same for the same call, so that sending a file twice adds nothing."""
    names = (call["call_id"], call["run_id"], call["tool"], repr(float(call["started"])))
    return blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _document(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call as a document: its moment under ``@timestamp``, free forms as text, so that no two
    calls disagree about the type of a field."""
    data = dict(call)
    try:
        moment = datetime.datetime.fromtimestamp(call["started"], datetime.UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC)
    data["@timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    for name in _DATA:
        if data[name] is not None:
            data[name] = json.dumps(data[name], ensure_ascii=False)
    return data


# -- Parquet ---------------------------------------------------------------------------------------


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigurationError(
            "Parquet needs pyarrow: pip install 'failwise[parquet]'"
        ) from error
    return pyarrow


def _write_parquet(found: Iterator[dict[str, Any]], file: IO[bytes]) -> int:
    arrow = _pyarrow()
    fields = []
    for name in (*(one for one in rows.CALL_COLUMNS if one not in _DERIVED), "attempts"):
        kind = (
            arrow.float64()
            if name in _REALS
            else arrow.string()
            if name in _TEXTS
            else arrow.int64()
        )
        fields.append((name, kind))
    layout = arrow.schema(fields)
    count, page = 0, []
    with arrow.parquet.ParquetWriter(file, layout, compression="zstd") as writer:
        for call in found:
            flat = dict(call)
            for name in (*_DATA, "attempts"):
                flat[name] = (
                    None if flat[name] is None else json.dumps(flat[name], ensure_ascii=False)
                )
            for name in ("success", "verified"):
                flat[name] = None if flat[name] is None else int(flat[name])
            page.append({name: flat[name] for name, _ in fields})
            count += 1
            if len(page) == 5 * _PAGE:
                writer.write_table(arrow.Table.from_pylist(page, schema=layout))
                page = []
        writer.write_table(arrow.Table.from_pylist(page, schema=layout))
    return count


# -- reading back ----------------------------------------------------------------------------------


def read(path: Path, form: Format) -> Iterator[tuple[int, Any]]:
    """The calls of a file as they stand there, with their number in it; what cannot be read as a
    `ValueError` in its place. Raises `UsageError` for a form that is only written."""
    if form == "bulk":
        raise UsageError("bulk lines are for a search engine: import .jsonl or .parquet")
    if form == "parquet":
        arrow = _pyarrow()
        number = 0
        with arrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PAGE):
                for call in batch.to_pylist():
                    number += 1
                    for name in (*_DATA, "attempts"):
                        if isinstance(call.get(name), str):
                            call[name] = json.loads(call[name])
                    yield number, call
        return
    with path.open("rb") as lines_of_file:
        for number, line in enumerate(iter(lambda: lines_of_file.readline(LINE_LIMIT), b""), 1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except ValueError as error:
                yield number, ValueError(f"no JSON: {error}")


def built(calls: Sequence[Any], redactor: rows.Redactor) -> rows.Built:
    """Rows of calls that were read, numbered from 1, redacted again: a file may be of anybody's
    making. Raises `ValueError` for what is no call."""
    made = rows.Built([], [], [])
    for number, call in enumerate(calls, 1):
        values = _values(call, rows.CALL_COLUMNS, _NEEDED, redactor)
        values["id"], values["hour"] = number, rows.hour_of(values["started"])
        values["latency_bucket"] = bucket_of(values["duration_ms"])
        values["upstream"] = values["upstream"] or values["tool"]
        made.calls.append(tuple(values[name] for name in rows.CALL_COLUMNS))
        attempts = call.get("attempts") or []
        if not isinstance(attempts, list) or len(attempts) > 1_000:
            raise ValueError("attempts: a list of at most 1,000")
        for position, attempt in enumerate(attempts):
            kept = _values(attempt, rows.ATTEMPT_COLUMNS, _NEEDED_OF_ATTEMPT, redactor)
            kept |= {"call": number, "position": position, "at": values["started"]}
            kept |= {name: values[name] for name in rows.OF_CALL}
            made.attempts.append(tuple(kept[name] for name in rows.ATTEMPT_COLUMNS))
    return made


def _values(
    data: Any, columns: Sequence[str], needed: Mapping[str, Any], redactor: rows.Redactor
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("no object")
    values: dict[str, Any] = {}
    for name in columns:
        value = data.get(name)
        if value is None and name in needed:
            value = needed[name]
            if value is None:
                raise ValueError(f"{name} is missing")
        values[name] = _value(name, value, redactor)
    return values


def _value(name: str, value: Any, redactor: rows.Redactor) -> Any:
    if value is None:
        return None
    if name not in _TEXTS:
        if not isinstance(value, bool | int | float):
            raise ValueError(f"{name} = {value!r:.50}: a number")
        return float(value) if name in _REALS else int(value)
    if name in _DATA:
        text = json.dumps(redactor.data(bounded(value)), ensure_ascii=False)
        if len(text) > _LONGEST[name]:
            text = json.dumps({"truncated": True, "text": text[:1_000]}, ensure_ascii=False)
        return text
    if not isinstance(value, str):
        raise ValueError(f"{name} = {value!r:.50}: a text")
    if name in _LONGEST:
        return rows.message(value, redactor)[: _LONGEST[name]]
    return value[: rows.IDENTITY]
