"""A body as it came from the wire → its parsed form, or what stands in the way of one."""

import json
import re
from typing import Any, Final

from failwise.evidence.bounds import bounded
from failwise.evidence.facts import BodyProblem
from failwise.evidence.literals import find_objects
from failwise.evidence.markup import LOOKED_AT, is_page, page_title
from failwise.evidence.php import find_dump
from failwise.vocabulary.records import UNSET, Unset, record

PARSE_LIMIT: Final = 10_000_000
"""Bytes of a body that are parsed at most."""

_CHARSET = re.compile(r"(?:charset|encoding)\s{0,8}=\s{0,8}[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_TEXT_TYPES = (
    "text/",
    "application/xml",
    "application/x-www-form-urlencoded",
    "application/javascript",
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_CUT_LITERAL = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-|-?\d{1,40}[.eE])$")


@record
class BodyReading:
    """What a body turned out to be.

    `value` is the parsed body (UNSET: there is none), `text` its bounded text, `title` that of a
    page, `problem` why it could not be read and `position` where, in characters.
    """

    value: Any | Unset = UNSET
    text: str | None = None
    title: str | None = None
    problem: BodyProblem | None = None
    position: int | None = None


NO_BODY: Final = BodyReading()


def media_type(content_type: str | None) -> str:
    """``application/json`` of ``Application/JSON; charset=utf-8``; empty when there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def is_json_type(content_type: str | None) -> bool:
    """JSON by name: ``application/json``, ``text/json``, ``application/problem+json`` (RFC 6839), and the
    versioned name that AWS gives it (``application/x-amz-json-1.1``)."""
    kind = media_type(content_type)
    return kind.endswith(("/json", "+json", "/x-json", "/json-rpc")) or kind.startswith(
        "application/x-amz-json-"
    )


def read_body(
    content: bytes | str,
    content_type: str | None = None,
    *,
    expects_json: bool = False,
    length_told: int | None = None,
    parse_limit: int = PARSE_LIMIT,
) -> BodyReading:
    """Read a whole body.

    JSON is due when the content type says so or `expects_json`; a missing content type is tried as
    JSON and is no problem when it is none. `length_told` (bytes, only of a body without content
    coding) tells a cut-off body. At most `parse_limit` bytes are parsed, and of a page only the
    first 65,536 characters are looked at.
    """
    due = expects_json or is_json_type(content_type)
    got = len(content)
    cut = isinstance(content, bytes) and length_told is not None and got < length_told
    if not content.strip():
        problem: BodyProblem | None = "truncated" if cut else "empty" if due else None
        return BodyReading(text="", problem=problem, position=0 if problem else None)
    text: str | None
    fault: int | None = None
    if isinstance(content, str):
        text = content
    else:
        text, fault = _decode(content, content_type, due, parse_limit, cut)
    if text is None:
        return BodyReading(problem="truncated" if cut else "not_json" if due else None)
    if is_page(text[:2_048]) and not is_json_type(content_type):
        problem = "html" if due else "truncated" if cut else None
        return BodyReading(text=bounded(text), title=page_title(text), problem=problem)
    if fault is not None:
        return BodyReading(text=bounded(text), problem="encoding", position=fault)
    if got > parse_limit:
        return BodyReading(text=bounded(text), problem="too_large" if due else None)
    reading = _parse(text, due, media_type(content_type))
    if cut and reading.problem is None:
        reading = BodyReading(reading.value, reading.text, problem="truncated", position=len(text))
    return reading


def _decode(
    content: bytes, content_type: str | None, due: bool, limit: int, cut: bool
) -> tuple[str | None, int | None]:
    """The text of a body, and the byte at which it leaves the character set it claims."""
    named = _CHARSET.search(content_type or "")
    encoding = named.group(1) if named else "utf-8"
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            encoding = name
            break
    kind = media_type(content_type)
    looked_at = content if (due or not kind) and len(content) <= limit else content[:LOOKED_AT]
    try:
        return looked_at.decode(encoding), None
    except (LookupError, ValueError) as error:
        if isinstance(error, LookupError):
            return _decode(content, None, due, limit, cut)
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
    if len(looked_at) - start < 4 and (cut or looked_at is not content or due):
        # The last character was cut in two; the rest is sound.
        return looked_at[:start].decode(encoding, "replace"), None
    if kind and not due and not kind.startswith(_TEXT_TYPES):
        return None, None
    if b"\x00" in looked_at[:1_024]:
        return None, None
    return _other_encoding(looked_at, encoding), start


def _other_encoding(content: bytes, encoding: str) -> str:
    """The most readable text of bytes that are not in `encoding`: Chinese pages often are GB 18030."""
    try:
        text = content.decode("gb18030")
    except ValueError:
        text = ""
    if _CHINESE.search(text):
        return text
    return content.decode(encoding, "replace")


def _parse(text: str, due: bool, kind: str) -> BodyReading:
    """Parse as JSON where that is due or likely."""
    text = text.removeprefix("\ufeff")
    start = text.lstrip()[:1]
    if kind == "text/event-stream":
        return BodyReading(_event_error(text), bounded(text))
    if not due and (kind not in ("", "text/plain", "text/html") or start not in '{["'):
        dump = find_dump(text) if "=>" in text[:512] else None
        return BodyReading(UNSET if dump is None else dump.value, bounded(text))
    try:
        return BodyReading(json.loads(text), bounded(text))
    except RecursionError:
        return BodyReading(text=bounded(text), problem="invalid_json" if due else None)
    except json.JSONDecodeError as error:
        position = error.pos
        cut = _is_cut(text, error)
    except ValueError:  # a number of more digits than Python converts
        return BodyReading(text=bounded(text), problem="invalid_json" if due else None)
    if not due:
        written = next(find_objects(text, 1), None) if start == "{" else None
        if written is not None and written.end - written.start >= len(text.strip()):
            return BodyReading(written.value, bounded(text))
        return BodyReading(text=bounded(text))
    if is_page(text[:2_048]):
        return BodyReading(text=bounded(text), title=page_title(text), problem="html")
    if cut and start in '{["':
        return BodyReading(text=bounded(text), problem="truncated", position=len(text))
    if start not in '{["' and position <= len(text) - len(text.lstrip()):
        return BodyReading(text=bounded(text), problem="not_json", position=position)
    return BodyReading(text=bounded(text), problem="invalid_json", position=position)


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Did the text end before the JSON did?"""
    end = len(text.rstrip())
    if error.pos >= end or error.msg.startswith("Unterminated string"):
        return True
    if "escape" in error.msg:
        return end - error.pos < 8
    return _CUT_LITERAL.fullmatch(text[error.pos : end]) is not None


def _event_error(text: str) -> Any | Unset:
    """The error inside a stream of server-sent events, if there is one."""
    event = ""
    for line in text[-LOOKED_AT:].splitlines():
        if line.startswith("event:"):
            event = line[6:].strip()
        elif line.startswith("data:"):
            data = line[5:].strip()
            if not data.startswith("{") or not (event == "error" or '"error"' in data):
                continue
            try:
                value = json.loads(data)
            except (ValueError, RecursionError):
                continue
            if event == "error" or value.get("error") or value.get("type") == "error":
                return value
        elif not line:
            event = ""
    return UNSET
