"""A file of records → the tool calls in it, whatever form it has."""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final, Literal, TypeAlias, get_args

from failwise.insight.importing import messages, traces
from failwise.insight.importing.calls import ImportedCall, digest
from failwise.insight.loglines import Entry, entries
from failwise.vocabulary.errors import UsageError

Format: TypeAlias = Literal["auto", "openai", "anthropic", "langchain", "langsmith", "otlp", "log"]

FILE_LIMIT: Final = 1_000_000_000
"""Bytes of a file that is one JSON value; JSON lines and logs may be longer."""
LINE_LIMIT: Final = 50_000_000
_LOOKED_AT: Final = 65_536
_CONVERSATIONS: Final = ("openai", "anthropic", "langchain")


def read_calls(
    path: str,
    form: Format = "auto",
    *,
    tool: str = "",
    year: int = 1970,
    skipped: Callable[[int, str], None] | None = None,
) -> Iterator[ImportedCall]:
    """The tool calls in a file: JSON, JSON lines, or a log.

    ``auto`` looks at what stands in it; another form is insisted on. `tool` names the calls of a log
    (else the file's name), `year` is for log times that do not tell theirs. `skipped` is told the
    number of a line that could not be read, and why. Raises `UsageError` where the file cannot be
    read or nothing in it is of that form.
    """
    if form not in get_args(Format):
        raise UsageError(f"format {form!r}: write one of {', '.join(get_args(Format))}")
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            start = file.read(_LOOKED_AT)
            file.seek(0)
            if form == "log" or (form == "auto" and not _is_json(start)):
                yield from _of_log(file, name, tool or name, year)
                return
            yield from _of_json(file, name, form, start, skipped)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error


def _is_json(start: bytes) -> bool:
    """JSON, or lines of it that are no log: objects that hold a message, a run or spans."""
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if text[:1] not in ("{", "["):
        return False
    line = text.partition("\n")[0]
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return len(line) >= _LOOKED_AT // 2 or line.strip() in ("{", "[")
    return _holds_records(value)


def _holds_records(value: Any) -> bool:
    if messages.is_message(value) or traces.is_run(value) or traces.is_otlp(value):
        return True
    return next(messages.conversations(value, ""), None) is not None or (
        isinstance(value, list) and any(_holds_records(one) for one in value[:3])
    )


def _of_json(
    file: IO[bytes],
    name: str,
    form: Format,
    start: bytes,
    skipped: Callable[[int, str], None] | None,
) -> Iterator[ImportedCall]:
    single: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    around: dict[str, Mapping[str, Any]] = {}
    for number, value in _values(file, start, skipped):
        source = f"{name}:{number}"
        if messages.is_message(value) and not traces.is_run(value):
            key = str(next((value[one] for one in ("conversation_id", "session_id", "thread_id",
                       "run_id", "trace_id") if value.get(one)), ""))  # fmt: skip
            single[key].append(value)
            around.setdefault(key, {"id": key} if key else {})
        else:
            yield from _calls(value, form, source)
    for key, several in single.items():
        if _allowed(form, *_CONVERSATIONS):
            conversation = messages.conversation_of(several, around[key], name)
            yield from messages.calls_of(conversation)


def _calls(value: Any, form: Format, source: str) -> Iterator[ImportedCall]:
    if isinstance(value, list) and value and all(traces.is_run(one) for one in value):
        for run in value:
            yield from _calls(run, form, source)
    elif traces.is_run(value):
        if _allowed(form, "langsmith"):
            yield from traces.runs(value, source)
    elif traces.is_otlp(value):
        if _allowed(form, "otlp"):
            yield from traces.spans(value, source)
    elif isinstance(value, list) and value and any(traces.is_otlp(one) for one in value[:3]):
        for one in value:
            yield from _calls(one, form, source)
    elif _allowed(form, *_CONVERSATIONS):
        for conversation in messages.conversations(value, source):
            yield from messages.calls_of(conversation)


def _allowed(form: Format, *forms: str) -> bool:
    return form == "auto" or form in forms


def _values(
    file: IO[bytes], start: bytes, skipped: Callable[[int, str], None] | None
) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file with the number of their line: one value, or one a line."""
    first = start.partition(b"\n")[0]
    try:
        json.loads(first)
        by_line = True
    except (ValueError, RecursionError):
        by_line = len(first) == len(start) or b"\n" not in start
        by_line = by_line and len(start) == _LOOKED_AT
    if not by_line:
        data = file.read(FILE_LIMIT + 1)
        if len(data) > FILE_LIMIT:
            raise UsageError(f"larger than {FILE_LIMIT} bytes: write it as JSON lines")
        try:
            yield 1, json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"this is neither JSON nor JSON lines ({error})") from error
        return
    number = 0
    while line := file.readline(LINE_LIMIT + 1):
        number += 1
        if not line.strip():
            continue
        try:
            if len(line) > LINE_LIMIT:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LINE_LIMIT + 1)
                raise ValueError(f"longer than {LINE_LIMIT} bytes")
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            if skipped is not None:
                skipped(number, str(error))
            continue
        yield number, value


def _of_log(file: IO[bytes], name: str, tool: str, year: int) -> Iterator[ImportedCall]:
    """Every entry of a log that may be a failure: whether it is one is judged later."""
    seen: dict[str, int] = defaultdict(int)
    for entry in entries(_lines(file), year=year):
        if entry.level == "info":
            continue
        key = digest(tool, entry.at, entry.text)
        seen[key] += 1  # the same line twice is two failures; the same file twice is not
        yield _of_entry(entry, tool, digest(key, seen[key]), f"{name}:{entry.line}")
        if len(seen) > 1_000_000:
            seen.clear()


def _of_entry(entry: Entry, tool: str, call_id: str, source: str) -> ImportedCall:
    return ImportedCall(
        tool,
        call_id,
        f"import:{digest('log', tool)}",
        error=entry.text,
        failed=True if entry.level == "error" else None,
        started=entry.at,
        source=source,
    )


def _lines(file: IO[bytes]) -> Iterator[tuple[int, str | None]]:
    for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT), b""), 1):
        yield number, line.decode("utf-8", "replace").rstrip("\r\n")
