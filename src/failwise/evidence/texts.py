"""A log line or a pasted error, in any language, taken apart into facts."""

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from itertools import islice
from typing import Any, Final

from failwise.evidence.bodies import read_body
from failwise.evidence.bounds import both_ends, bounded, clean_url, host_of, plain
from failwise.evidence.classes import class_table, combined_phase, described
from failwise.evidence.facts import Evidence, ExceptionFact
from failwise.evidence.literals import Found, find_objects
from failwise.evidence.markup import page_title, split_page
from failwise.evidence.waits import told_waits
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import UNSET, record

FILE: Final = "texts.toml"
FACTS_LIMIT: Final = 16

_TOKEN = re.compile(r"[A-Za-z_$][\w$]{0,120}(?:(?:\.|::)[A-Za-z_$][\w$]{0,120}){0,12}", re.ASCII)
_CLASS_END = re.compile(
    r"(?:Error|Exception|Timeout|TimedOut|Refused|Fault|Failure|Disconnected|IncompleteRead|Interrupt|Redirects|Exhausted|Closed)$"
)
_NOT_A_CLASS: Final = frozenset(
    {
        "Error",
        "Exception",
        "Timeout",
        "Failure",
        "Fault",
        "Refused",
        "Closed",
        "Disconnected",
        "Interrupt",
    }
)
_AFTER_CLASS = re.compile(r"\s{0,4}(?:[:(\['\"<>\])},;{]|$|\n| ---> |- |\s?\[)")
_CODE_IN_BRACKETS = re.compile(r"\b(?:Error|Exception) \[([A-Z][A-Z0-9_]{2,48})\]")
_FRAME_LINE = re.compile(r"^\s{1,40}(?:at |File \"|\^|~|\.\.\. \d).*$", re.MULTILINE)
_PYTHON_TRACE = re.compile(
    r"^[ \t]*Traceback \(most recent call last\):\n(?:[ \t|]+.*\n?){0,400}", re.MULTILINE
)
_DIRECT_CAUSE = re.compile(
    r"\n*(?:The above exception was the direct cause of the following exception|During handling of the above exception, another exception occurred):?\s*\n*"
)
_SEPARATOR = re.compile(r"[:：]\s{0,8}")
_THREE_DIGITS = re.compile(r"[1-5](?<!\d.)\d\d(?!\d)")
_HOLE: Final = "{}"
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
_STANDS_ALONE: Final = frozenset({"McpError", "JsonRpcError", "grpc.RpcError", "Error"})
_STATUS_KEYS: Final = ("status", "statusCode", "status_code", "code")


@record
class Cause:
    """A form of `texts.toml` under which a cause with a number of its own is found."""

    name: str
    attribute: str
    pattern: re.Pattern[str]
    need: tuple[str, ...]


@record
class Forms:
    """The forms of `texts.toml`, compiled."""

    status: tuple[re.Pattern[str], ...]
    causes: tuple[Cause, ...]
    wrappers: frozenset[str]
    places: Mapping[str, re.Pattern[str]]
    needs: Mapping[str, tuple[str, ...]]

    def place(self, name: str, text: str, lowered: str) -> re.Match[str] | None:
        """Where the place of this name stands in a text, if one of its literals does."""
        if not any(literal in lowered for literal in self.needs[name]):
            return None
        return self.places[name].search(text)


@functools.cache
def forms() -> Forms:
    """The forms, read once. Raises `ConfigurationError` naming the pattern that is wrong."""
    import tomllib

    text = resources.files("failwise.evidence").joinpath(FILE).read_text("utf-8")
    data = tomllib.loads(text)
    try:
        return Forms(
            tuple(_compiled(pattern) for pattern in data["status"]),
            tuple(
                Cause(row["name"], row["attribute"], _compiled(row["pattern"]), tuple(row["need"]))
                for row in data["causes"]
            ),
            frozenset(data["wrappers"]),
            {name: _compiled(pattern) for name, pattern in data["places"].items()},
            {name: tuple(data["needs"][name]) for name in data["places"]},
        )
    except KeyError as error:
        raise ConfigurationError(f"{error} is missing", file=FILE) from error


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise ConfigurationError(f"{pattern!r}: {error}", file=FILE) from error


def from_text(text: str, *, now: float | None = None) -> Evidence:
    """The facts of a free text: never raises, and takes bounded time.

    Terminal colours are dropped; of a long text the beginning and the end are read. A page pasted
    into it is split off (`parts["remnant"]`, `title`), objects in it become `body`, class names,
    errno forms, and codes become `exceptions` with names only. `status` is set only where the text
    calls the number a status. `parts` has ``context``, ``wrapper``, ``message``.
    """
    cleaned = plain(both_ends(text)).strip()
    evidence = Evidence(source="text", text=bounded(cleaned))
    if not cleaned:
        return evidence
    prose, page = split_page(cleaned)
    if page:
        evidence.title = page_title(page)
    if cleaned[:1] in "{[" and not page:
        evidence.body = read_body(cleaned).value
    found = list(find_objects(prose))
    if evidence.body is UNSET:
        evidence.body = _best(found)
    spoken = _without(prose, found)
    _add_headers(evidence, prose, found)
    whole = isinstance(evidence.body, (dict, list)) and not spoken.strip(" \n\t.,;:-{}")
    evidence.status = _status(spoken) or (_status(evidence.title or "") if page else None)
    if evidence.status is None:
        evidence.status = next((s for s in map(_status_of_object, found) if s), None)
    _add_request(evidence, prose)
    if not whole:
        _add_exceptions(evidence, prose, spoken)
    evidence.parts = _parts(spoken, page)
    waits = told_waits(evidence.headers, evidence.body, None, now=now, status=evidence.status)
    evidence.waits = waits or told_waits({}, UNSET, prose, now=now)
    return evidence


def _best(found: list[Found]) -> Any:
    """The object that looks most like an error body: it has one of the usual keys."""
    for one in found:
        value = one.value[0] if isinstance(one.value, list) else one.value
        if isinstance(value, Mapping) and not _ERROR_KEYS.isdisjoint(value):
            return one.value
    return found[0].value if found else UNSET


def _without(text: str, found: list[Found]) -> str:
    pieces, position = [], 0
    for one in found:
        pieces.append(text[position : one.start])
        position = one.end
    pieces.append(text[position:])
    return _HOLE.join(pieces)


def _status(text: str) -> int | None:
    if _THREE_DIGITS.search(text) is None:
        return None
    for pattern in forms().status:
        match = pattern.search(text)
        if match:
            return int(match.group(1))
    return None


def _status_of_object(found: Found) -> int | None:
    """The status of an HTTP client's error object: one that has headers beside it."""
    value = found.value
    if not isinstance(value, Mapping) or not isinstance(value.get("headers"), Mapping):
        return None
    for name in _STATUS_KEYS:
        status = value.get(name)
        if isinstance(status, int) and 100 <= status <= 599:
            return status
    return None


def _add_headers(evidence: Evidence, text: str, found: list[Found]) -> None:
    headers: dict[str, str] = {}
    for one in found:
        if isinstance(one.value, Mapping) and isinstance(one.value.get("headers"), Mapping):
            for name, value in list(one.value["headers"].items())[:64]:
                headers[str(name).lower()] = bounded(str(value), 2_048)
    known = forms()
    lowered = text.lower()
    named = any(literal in lowered for literal in known.needs["headers"])
    for match in known.places["headers"].finditer(text) if named else ():
        if len(headers) >= 64:
            break
        headers.setdefault(match.group(1).lower(), match.group(2).strip(" ,"))
    evidence.headers = headers
    evidence.content_type = headers.get("content-type")


def _add_request(evidence: Evidence, text: str) -> None:
    place, lowered = forms().place, text.lower()
    url = place("url", text, lowered)
    if url:
        evidence.url = clean_url(url.group(1).rstrip(".,;:"))
        evidence.host = host_of(evidence.url)
    if evidence.host is None:
        host = place("host", text, lowered)
        evidence.host = host.group(1).lower() if host else None
    method = place("method", text, lowered)
    evidence.method = method.group(1).upper() if method else None
    limit = place("limit", text, lowered)
    if limit:
        seconds = float(limit.group(1) or limit.group(2))
        unit = (limit.group(3) or "s").lower()
        evidence.limit = seconds / 1_000 if unit.startswith("m") else seconds


def _add_exceptions(evidence: Evidence, text: str, spoken: str) -> None:
    facts: list[ExceptionFact] = []
    phases = []
    for segment in _segments(text):
        for name, message, attributes in _marks(segment):
            if len(facts) >= FACTS_LIMIT:
                break
            fact, sure = described(name, (), message, attributes)
            facts.append(fact)
            phases.append((fact.phase, sure))
    evidence.exceptions = tuple(facts)
    evidence.phase = combined_phase(phases)


def _segments(text: str) -> Iterator[str]:
    """The exceptions of a chain, outermost first: Python prints the outermost one last."""
    pieces = _DIRECT_CAUSE.split(text)
    for piece in reversed([piece for piece in pieces if piece.strip()]):
        yield _FRAME_LINE.sub("", _PYTHON_TRACE.sub("", piece))


def _marks(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Class names and coded causes of one exception's text, in order: (name, message, attributes)."""
    table = class_table()
    marks: list[tuple[int, str, dict[str, Any]]] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        short = token.rpartition("::")[2].rpartition(".")[2]
        if short in table.symbols and short.isupper():
            marks.append((match.start(), "OSError", {"symbol": short}))
        elif _is_class(token, short) and _AFTER_CLASS.match(text, match.end()):
            marks.append((match.start(), token, {}))
        if len(marks) > FACTS_LIMIT * 4:
            break
    marks.extend(
        (match.start(), "Error", {"code": match.group(1)})
        for match in _CODE_IN_BRACKETS.finditer(text)
        if match.group(1) not in table.symbols
    )
    lowered = text.lower()
    for cause in forms().causes:
        if not any(literal in lowered for literal in cause.need):
            continue
        marks.extend(
            (match.start(), cause.name, _value(cause, match.group(1)))
            for match in islice(cause.pattern.finditer(text), FACTS_LIMIT)
        )
    marks.sort(key=lambda mark: mark[0])
    return _joined(text, marks)


def _is_class(token: str, short: str) -> bool:
    if token in class_table().by_name and "." in token:
        return True
    return (
        short[:1].isupper()
        and short not in _NOT_A_CLASS
        and _CLASS_END.search(short) is not None
        and not short.isupper()
    )


def _joined(
    text: str, marks: list[tuple[int, str, dict[str, Any]]]
) -> list[tuple[str, str, dict[str, Any]]]:
    """An errno or code belongs to the class name before it on the same line."""
    joined: list[tuple[str, str, dict[str, Any]]] = []
    last_position = -1
    for position, name, attributes in marks:
        same_line = joined and "\n" not in text[last_position:position]
        if attributes and same_line and name not in _STANDS_ALONE:
            previous = joined[-1]
            if previous[2].keys().isdisjoint(attributes):
                previous[2].update(attributes)
                continue
            if attributes.items() <= previous[2].items():
                continue
        end = text.find("\n", position)
        line = text[position : end if end >= 0 else len(text)]
        message = line[len(name) :].lstrip(" :(") if line.startswith(name) else line
        if joined and (joined[-1][0], joined[-1][2]) == (name, attributes):
            continue
        joined.append((name, bounded(message.strip(), 500), attributes))
        last_position = position
    return joined


def _value(cause: Cause, text: str) -> dict[str, Any]:
    """The attributes of one coded cause, with the platform's number turned into its name."""
    table = class_table()
    if cause.attribute == "sqlstate":
        return {"sqlstate": text.upper()}
    if cause.attribute == "grpc_status":
        return {"grpc_status": re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).upper()}
    number = int(text)
    attributes: dict[str, Any] = {cause.attribute: number}
    symbol = None
    if cause.attribute == "errno":
        symbol = table.by_number.get(number)
    elif cause.attribute == "curl_code":
        symbol = table.by_curl_code.get(number)
    if symbol is not None:
        attributes["symbol"] = symbol.name
    return attributes


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
    token = _TOKEN.fullmatch(piece)
    if token and _is_class(piece, piece.rpartition("::")[2].rpartition(".")[2]):
        return True
    return piece.lower() in forms().wrappers
