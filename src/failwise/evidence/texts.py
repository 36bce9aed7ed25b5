"""A log line or a pasted error, in any language, taken apart into facts."""

import json
import re
from typing import Any, Final

from failwise.evidence.bounds import both_ends, bounded, clean_url, host_of, plain
from failwise.evidence.classes import combined_phase, described
from failwise.evidence.facts import Evidence, ExceptionFact
from failwise.evidence.forms import forms, needed
from failwise.evidence.literals import Found, find_objects
from failwise.evidence.markup import may_be_page, page_title, split_page
from failwise.evidence.named import FACTS_LIMIT, is_class_name, marks_of, segments
from failwise.evidence.php import find_dump
from failwise.evidence.waits import may_tell_wait, told_waits
from failwise.vocabulary.records import MAPPING, UNSET, defer

_SEPARATOR = re.compile(r"[:：]\s{0,8}")
_THREE_DIGITS = re.compile(r"[1-5](?<!\d.)\d\d(?!\d)")
_HOLE: Final = "{}"
_PREFIX_LIMIT: Final = 120
_PREFIX: Final = re.compile(
    r"(?:\d{1,4}\|[\w.@-]{1,60}|[A-Za-z][\w.-]{0,60}[-_]\d{1,4})[ ]{0,40}\|(?: |$)", re.ASCII
)
_NAMED: Final = re.compile(r"(?=[\w.-]*[a-z])[A-Za-z][\w.-]{1,60} {2,40}\|(?= )", re.ASCII)
_SPACES = re.compile(r"[ \t\n]{2,256}")
_ERROR_KEYS: Final = frozenset(
    {
        "error",
        "errors",
        "message",
        "msg",
        "code",
        "errcode",
        "errmsg",
        "error_code",
        "error_msg",
        "errorCode",
        "errorMessage",
        "detail",
        "details",
        "status",
        "Message",
        "Code",
        "fault",
        "title",
    }
)
_STATUS_KEYS: Final = ("status", "statusCode", "status_code", "code")
_LEVELS: Final = frozenset({"error", "err", "warn", "warning", "critical", "fatal"})
_SAID: Final = ("exc_info", "exception", "error", "err", "stack_trace", "stack", "message", "msg")


def from_text(text: str, *, now: float | None = None, classes: bool = True) -> Evidence:
    """The facts of a free text: never raises, and takes bounded time.

    Terminal colours are dropped; of a long text the beginning and the end are read. A page pasted
    into it is split off (`parts["remnant"]`, `title`), objects in it become `body`, class names,
    errno forms, and codes become `exceptions` with names only. `status` is set only where the text
    calls the number a status. `parts` has ``context``, ``wrapper``, ``message``. Without `classes` no
    names of exceptions are looked for.
    """
    cleaned = unprefixed(plain(both_ends(text)).strip())
    evidence = Evidence(source="text", text=bounded(cleaned))
    if not cleaned:
        return evidence
    prose, page = split_page(cleaned)
    lowered = prose.lower()
    if page:
        evidence.title = page_title(page)
    found = list(find_objects(prose)) if "{" in prose else []
    if "] =>" in prose or "]=>" in prose:
        found = _with_dump(prose, found)
    evidence.body = body_of("" if page else cleaned, found)
    spoken = _without(prose, found) if found else prose
    _add_headers(evidence, prose, lowered, found)
    whole = isinstance(evidence.body, (dict, list)) and not spoken.strip(" \n\t.,;:-{}")
    evidence.status = _status(spoken, spoken.lower() if found else lowered)
    if evidence.status is None and page and evidence.title:
        evidence.status = _status(evidence.title, evidence.title.lower())
    if evidence.status is None and found:
        evidence.status = next((s for s in map(_status_of_object, found) if s), None)
    if evidence.status is None and whole and isinstance(evidence.body, dict):
        evidence.status = _status_of_record(evidence.body)
    _add_request(evidence, prose, lowered)
    if classes and not whole:
        _add_exceptions(evidence, prose)
    defer(evidence, (("parts",), lambda: {"parts": _parts(spoken, page)}))
    waits = told_waits(evidence.headers, evidence.body, None, now=now, status=evidence.status)
    evidence.waits = waits or told_waits({}, UNSET, prose, now=now)
    return evidence


def _with_dump(text: str, found: list[Found]) -> list[Found]:
    """What PHP printed takes the place of what looks like an object within it."""
    dump = find_dump(text)
    if dump is None:
        return found
    others = (one for one in found if one.end <= dump.start or one.start >= dump.end)
    return sorted((dump, *others), key=lambda one: one.start)


def address_in(text: str) -> tuple[str | None, str | None]:
    """The host and the URL that `from_text` finds in a text, without the rest of its facts."""
    prose, _ = split_page(unprefixed(plain(both_ends(text)).strip()))
    return _address(prose, prose.lower())


def unprefixed(text: str) -> str:
    """The text without what a runner of programs puts before each line of them: ``web-1  | ``
    (docker compose), ``0|web  | `` (pm2). Only where every line has one."""
    if "|" not in text[:_PREFIX_LIMIT]:
        return text
    if _PREFIX.match(text) is None:
        return _unnamed(text)
    lines = text.splitlines()
    ends = [_PREFIX.match(line) for line in lines]
    if any(end is None and line.strip() for end, line in zip(ends, lines, strict=True)):
        return text
    return "\n".join(
        line[end.end() :] if end else line for end, line in zip(ends, lines, strict=True)
    ).strip()


def _unnamed(text: str) -> str:
    """The same where a container has a name without a number: one name, before every line of several."""
    found = _NAMED.match(text)
    if found is None:
        return text
    name = found.group()
    lines = text.splitlines()
    if len(lines) < 2 or not all(line.startswith(name) for line in lines if line.strip()):
        return text
    return "\n".join(line[len(name) + 1 :] for line in lines).strip()


def tells_of_answer(text: str) -> bool:
    """May a text hold a status, a body, a page, headers, or a wait: anything that an answer has?"""
    lowered = text.lower()
    return (
        "{" in text
        or may_be_page(text)
        or needed(forms().places["headers"].need, lowered)
        or may_tell_wait(lowered)
        or _status(text, lowered) is not None
    )


def status_in(text: str) -> int | None:
    """The HTTP status that a text calls one, or None."""
    return _status(text, text.lower())


def body_of(text: str, found: list[Found]) -> Any:
    """The body in a text: all of it where that is JSON, else one of the objects found; UNSET: none."""
    if found and found[0].end - found[0].start == len(text):
        return found[0].value
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return _best(found)


def _best(found: list[Found]) -> Any:
    """The object that looks most like an error body: it has one of the usual keys."""
    for one in found:
        value = one.value[0] if isinstance(one.value, list) else one.value
        if isinstance(value, MAPPING) and not _ERROR_KEYS.isdisjoint(value):
            return one.value
    return found[0].value if found else UNSET


def _without(text: str, found: list[Found]) -> str:
    pieces, position = [], 0
    for one in found:
        pieces.append(text[position : one.start])
        position = one.end
    pieces.append(text[position:])
    return _HOLE.join(pieces)


def _status(text: str, lowered: str) -> int | None:
    if _THREE_DIGITS.search(text) is None:
        return None
    match = forms().status_in(text, lowered)
    return int(match.group(1)) if match else None


def _status_of_object(found: Found) -> int | None:
    """The status of an HTTP client's error object: one that has headers beside it."""
    value = found.value
    if not isinstance(value, MAPPING) or not isinstance(value.get("headers"), MAPPING):
        return None
    for name in _STATUS_KEYS:
        status = value.get(name)
        if isinstance(status, int) and 100 <= status <= 599:
            return status
    return None


def _status_of_record(record: dict[str, Any]) -> int | None:
    """The status that a log's record tells of, where its level says that something went wrong."""
    level = record.get("level", record.get("severity", record.get("levelname")))
    if not isinstance(level, str) or level.lower() not in _LEVELS:
        return None
    said = (record.get(name) for name in _SAID)
    told = (_status(text, text.lower()) for text in said if isinstance(text, str))
    return next((status for status in told if status), None)


def _add_headers(evidence: Evidence, text: str, lowered: str, found: list[Found]) -> None:
    headers: dict[str, str] = {}
    for one in found:
        if isinstance(one.value, MAPPING) and isinstance(one.value.get("headers"), MAPPING):
            for name, value in list(one.value["headers"].items())[:64]:
                headers[str(name).lower()] = bounded(str(value), 2_048)
    known = forms()
    if known.headers_need.search(lowered) is None and not headers:
        evidence.headers = headers
        return
    form = known.places["headers"]
    for match in form.pattern.finditer(text) if needed(form.need, lowered) else ():
        if len(headers) >= 64:
            break
        headers.setdefault(match.group(1).lower(), match.group(2).strip(" ,"))
    evidence.headers = headers
    evidence.content_type = headers.get("content-type")


def _add_request(evidence: Evidence, text: str, lowered: str) -> None:
    places = forms().places
    evidence.host, evidence.url = _address(text, lowered)
    method = places["method"].search(text, lowered)
    evidence.method = method.group(1).upper() if method else None
    limit = places["limit"].search(text, lowered)
    if limit:
        seconds = float(limit.group(1) or limit.group(2))
        unit = (limit.group(3) or "s").lower()
        evidence.limit = seconds / 1_000 if unit.startswith("m") else seconds


def _address(text: str, lowered: str) -> tuple[str | None, str | None]:
    """The host and the URL that a text names."""
    places = forms().places
    found = places["url"].search(text, lowered)
    url = clean_url(found.group(1).rstrip(".,;:")) if found else None
    host = host_of(url)
    if host is None:
        found = places["host"].search(text, lowered)
        host = found.group(1).lower() if found else None
    return host, url


def _add_exceptions(evidence: Evidence, text: str) -> None:
    facts: list[ExceptionFact] = []
    phases = []
    for segment in segments(text):
        for name, message, attributes in marks_of(segment):
            if len(facts) >= FACTS_LIMIT:
                break
            fact, sure = described(name, (), message, attributes)
            facts.append(fact)
            phases.append((fact.phase, sure))
    if facts:
        evidence.exceptions = tuple(facts)
        evidence.phase = combined_phase(phases)


def _parts(spoken: str, page: str) -> dict[str, str]:
    """Context, wrapper, message: split at colons around the last word that only says "error"."""
    text = _SPACES.sub(" ", spoken.replace(_HOLE, " ")).strip(" \n\t:：-")
    parts: dict[str, str] = {}
    pieces = _SEPARATOR.split(text[:1_024], maxsplit=6)
    wrapper = -1
    for index, piece in enumerate(pieces[:-1]):
        if _is_wrapper(piece.strip()):
            wrapper = index
    if wrapper >= 0:
        position = 0
        for _ in range(wrapper + 1):
            separator = _SEPARATOR.search(text, position)
            assert separator is not None
            position = separator.end()
        context = ": ".join(piece.strip() for piece in pieces[:wrapper])
        if context:
            parts["context"] = bounded(context, 500)
        parts["wrapper"] = pieces[wrapper].strip()[:200]
        text = text[position:]
    message = text.strip(" \n\t:：-,;")
    if message:
        parts["message"] = bounded(message, 2_048)
    if page:
        parts["remnant"] = bounded(page, 2_048)
    return parts


def _is_wrapper(piece: str) -> bool:
    return is_class_name(piece) or piece.lower() in forms().wrappers
