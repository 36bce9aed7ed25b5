"""What commands read: a text, a file or standard input; and JSON lines, one at a time."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final

from failwise.cli.terminal import json_line
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import MAPPING

TEXT_LIMIT: Final = 10_000_000
"""Bytes of one text."""
LINE_LIMIT: Final = 4_000_000
"""Bytes of one JSON line."""
_CHUNK: Final = 65_536
"""Bytes that are read at once, where so many are there."""
_LOOKS_LIKE_A_FILE = re.compile(r"[\w./\\~-]{1,200}\.(?:log|txt|out|err|jsonl?|html?|toml|ya?ml)")


def read_text(given: str | None, what: str = "TEXT") -> str:
    """The text meant by an argument: itself, a file's content, or standard input (``-`` or none).

    Raises `UsageError` where there is nothing to read, or more than `TEXT_LIMIT` bytes.
    """
    if given is None and sys.stdin.isatty():
        raise UsageError(f"nothing to read: give {what}, a file, or - for standard input")
    if given is None or given == "-":
        return _bounded(_standard_input(), "standard input")
    if os.path.isfile(given):
        with opened(given) as file:
            return _bounded(file, given)
    if _LOOKS_LIKE_A_FILE.fullmatch(given):
        raise UsageError(f"{given}: there is no such file")
    return given


def opened(path: str) -> IO[bytes]:
    """A file, or standard input for ``-``, to read bytes from. Raises `UsageError`."""
    if path == "-":
        return _standard_input()
    try:
        return open(path, "rb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error


def _standard_input() -> IO[bytes]:
    return sys.stdin.buffer


def _bounded(file: IO[bytes], name: str) -> str:
    data = file.read(TEXT_LIMIT + 1)
    if len(data) > TEXT_LIMIT:
        raise UsageError(f"{name} is larger than {TEXT_LIMIT} bytes: give the part that matters")
    return data.decode("utf-8", "replace")


def lines(file: IO[bytes]) -> Iterator[tuple[int, str | None]]:
    """The lines with their numbers, as they come; None for one above `LINE_LIMIT` bytes."""
    for batch in _batches(file):
        yield from batch


def _batches(file: IO[bytes]) -> Iterator[list[tuple[int, str | None]]]:
    """The lines that are there, as soon as there are any: nobody waits for a chunk to fill up."""
    read = getattr(file, "read1", file.read)
    number, rest, dropped = 0, b"", False
    while chunk := read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        batch: list[tuple[int, str | None]] = []
        for line in whole:
            number += 1
            batch.append((number, None if dropped else _decoded(line)))
            dropped = False
        if len(rest) > LINE_LIMIT:
            rest, dropped = b"", True
        if batch:
            yield batch
    if rest or dropped:
        yield [(number + 1, None if dropped else _decoded(rest))]


def _decoded(line: bytes) -> str | None:
    return None if len(line) > LINE_LIMIT else line.decode("utf-8", "replace").rstrip("\r\n")


def answer_lines(
    path: str, answer: Callable[[Mapping[str, Any]], Mapping[str, Any] | str], form: str
) -> int:
    """Answer each JSON line of a file with one line, as it comes; gives the exit code.

    An answer that is a text is the line itself, with its end. A line that cannot be answered gets ``{"id", "error"}``, so that answers stay in step; then the
    code is 2. `form` says how a line is written. The answers to lines that came together are
    written together.
    """
    wrong, first = 0, ""
    with opened(path) as file:
        for batch in _batches(file):
            replies = []
            for number, line in batch:
                if line is not None and (not line or line.isspace()):
                    continue
                name = None
                try:
                    case = _object(line, form)
                    name = case.get("id")
                    reply = answer(case)
                except (UsageError, KeyError, TypeError, ValueError, AttributeError) as error:
                    reason = f"line {number}: {_reason(error, form)}"
                    wrong, first = wrong + 1, first or reason
                    reply = {"id": name, "error": reason}
                replies.append(reply if isinstance(reply, str) else json_line(reply))
            sys.stdout.write("".join(replies))
            sys.stdout.flush()
    if wrong:
        raise UsageError(f"{wrong} of the lines could not be answered; the first: {first}")
    return 0


_decode = json.JSONDecoder().raw_decode


def _object(line: str | None, form: str) -> Mapping[str, Any]:
    if line is None:
        raise UsageError(f"longer than {LINE_LIMIT} bytes")
    try:
        data, end = _decode(line)
        if end < len(line):
            data = json.loads(line)  # knows what may follow, and says what may not
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON ({error}); write {form}") from error
    if not isinstance(data, MAPPING):
        raise UsageError(f"a JSON {type(data).__name__}; write {form}")
    return data


def _reason(error: Exception, form: str) -> str:
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, KeyError):
        return f"{error} is missing; write {form}"
    return f"{error}; write {form}"
