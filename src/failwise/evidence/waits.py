"""Waits that the upstream named, in any spelling: headers, body fields, text."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from failwise.evidence.durations import duration, http_date, iso_date, number, sane
from failwise.evidence.facts import ToldWait
from failwise.evidence.wait_forms import Places, phrases
from failwise.vocabulary.records import MAPPING, Unset

_EPOCH_SECONDS: Final = (1e9, 1e11)
_EPOCH_MILLISECONDS: Final = (1e12, 1e14)
_POLICY = re.compile(
    r"(?P<name>\"[^\"]{0,128}\"|[\w-]{1,64})?\s{0,4}(?P<parameters>(?:;\s{0,4}\w{1,8}=[^;,]{1,64}\s{0,4}){1,8})"
)
_DIGIT = re.compile(r"\d")
_PARAMETER = re.compile(r"(\w{1,8})=\s{0,2}\"?([0-9]{1,12})")
_TEXT_LIMIT: Final = 16_384
_DEPTH: Final = 3
_NAMES_LIMIT: Final = 64
"""Levels of a body, and names of one object, that are looked at for a message."""
_SECONDS_DIGITS: Final = 6
"""A longer number may be a moment."""
_REMEMBERED: Final = 2_048
"""Names of fields of which it is remembered whether they are a wait."""
_SEPARATORS: Final = re.compile(r"[_\-. ]{1,8}")
_DATA: Final = frozenset({"items", "results", "rows", "records", "choices"})
_SITUATIONS: Final = (429, 503)


def parse_retry_after(value: str, *, now: float) -> float | None:
    """The wait, in seconds, that a ``Retry-After`` field names (RFC 9110 §10.2.3).

    `now` is epoch seconds. Delay-seconds (decimals too, which some providers send) or an HTTP-date;
    beyond the RFC also a duration with its unit (``120s``), an RFC 3339 date, and epoch seconds. A
    date in the past is 0. None where it is nothing of these, so that ordinary backoff applies.
    """
    text = value.strip(" \t")[:512]
    plain = number(text)
    if plain is not None:
        if _EPOCH_SECONDS[0] <= plain < _EPOCH_SECONDS[1]:
            return sane(max(0.0, plain - now))
        return sane(plain)
    moment = http_date(text, now)
    if moment is None:
        moment = iso_date(text)
    if moment is not None:
        return sane(max(0.0, moment - now))
    return duration(text)


def told_waits(
    headers: Mapping[str, str],
    body: Any,
    text: str | None,
    *,
    now: float | None = None,
    status: int | None = None,
) -> tuple[ToldWait, ...]:
    """Every wait an answer names, the surest source first.

    `headers` with lower-case names, `body` parsed (UNSET: none), `now` epoch seconds (the clock when
    left out); dates are counted from the answer's own ``Date`` where it has one. Order:
    ``retry-after-ms`` and its like, ``Retry-After``, fields of the body, the reset of an empty bucket
    (``RateLimit`` of draft-ietf-httpapi-ratelimit-headers, and the ``x-ratelimit-*`` families),
    phrases of the text.
    """
    if not headers and isinstance(body, Unset) and not text:
        return ()
    waits: list[ToldWait] = []
    telling = tells_wait(headers)
    moment = _moment(headers, now) if telling or _may_tell(body) else 0.0
    if telling:
        waits.extend(_from_headers(headers, moment))
    if moment:
        waits.extend(_from_body(body, moment))
    if telling:
        waits.extend(_from_buckets(headers, moment, status))
    if not waits and isinstance(body, (dict, list)):
        failed = status is None or status >= 400
        held = body
        if not failed and isinstance(body, dict) and isinstance(body.get("error"), dict):
            held, failed = body["error"], True
        for value, unit, name in _named_fields(held, 0 if failed else _DEPTH):
            seconds = _told(value, unit, _moment(headers, now))
            if seconds is not None:
                waits.append(ToldWait(seconds, name))
    for piece in _spoken(text, body, status is not None and status >= 400):
        said = _of_phrase(piece)
        if said is not None:
            waits.append(ToldWait(said, "text"))
            break
    return tuple(waits)


def tells_wait(headers: Mapping[str, str]) -> bool:
    """Is there a header, of lower-case name, that tells a wait or when a limit ends?"""
    return bool(headers) and not phrases().header_names.isdisjoint(headers)


def tells_moment(headers: Mapping[str, str]) -> bool:
    """May one of these headers name a point in time, so that the wait depends on when it is asked?"""
    if not tells_wait(headers):
        return False
    for name in phrases().header_names.intersection(headers):
        value = headers[name].strip()
        if len(value) > _SECONDS_DIGITS or not (value.isascii() and value.isdigit()):
            return True
    return False


def _moment(headers: Mapping[str, str], now: float | None) -> float:
    if now is None:
        import time

        now = time.time()
    date = headers.get("date")
    told = http_date(date.strip(), now) if date else None
    return now if told is None else told


def _from_headers(headers: Mapping[str, str], now: float) -> Iterator[ToldWait]:
    for name, unit in phrases().headers:
        value = headers.get(name)
        if value is None:
            continue
        if unit == "ms":
            plain = number(value.strip())
            seconds = sane(plain / 1_000) if plain is not None else None
        else:
            seconds = parse_retry_after(value, now=now)
        if seconds is not None:
            yield ToldWait(seconds, name)


def _from_buckets(headers: Mapping[str, str], now: float, status: int | None) -> Iterator[ToldWait]:
    """The longest wait among the empty buckets: all of them must be filled again."""
    empty: list[ToldWait] = []
    policies = headers.get("ratelimit", "")
    for policy in _POLICY.finditer(policies[:1_024]):
        found = {key: int(value) for key, value in _PARAMETER.findall(policy["parameters"])}
        left = found.get("r", found.get("remaining"))
        after = found.get("t", found.get("reset"))
        if after is not None and left == 0:
            empty.append(ToldWait(float(after), "ratelimit"))
    for reset, remaining in phrases().buckets:
        value = headers.get(reset)
        if value is None:
            continue
        filled = headers.get(remaining)
        is_empty = number(filled.strip()) == 0 if filled is not None else status in _SITUATIONS
        seconds = _reset(value.strip(), now) if is_empty else None
        if seconds is not None:
            empty.append(ToldWait(seconds, reset))
    if empty:
        yield max(empty, key=lambda wait: wait.seconds)


def _reset(value: str, now: float) -> float | None:
    """A reset value: seconds to wait, epoch seconds or milliseconds, a duration, or a date."""
    plain = number(value)
    if plain is None:
        return parse_retry_after(value, now=now)
    if _EPOCH_MILLISECONDS[0] <= plain < _EPOCH_MILLISECONDS[1]:
        return sane(max(0.0, plain / 1_000 - now))
    return parse_retry_after(value, now=now)


def _may_tell(body: Any) -> bool:
    """Has a body any of the fields below which a wait may stand?"""
    if isinstance(body, list):
        body = body[0] if body else None
    return isinstance(body, MAPPING) and not phrases().fields.keys().isdisjoint(body)


def _from_body(body: Any, now: float) -> Iterator[ToldWait]:
    if isinstance(body, list):
        body = body[0] if body else None
    known = phrases().fields
    if not isinstance(body, MAPPING) or known.keys().isdisjoint(body):
        return
    found: list[tuple[int, ToldWait]] = []
    _look(body, known, now, found)
    found.sort(key=lambda one: one[0])  # keeps the order of a list's items
    for _, wait in found:
        yield wait


def _named_fields(body: Any, depth: int) -> list[tuple[Any, str, str]]:
    """Fields of an error whose name says that they are a wait, however it is written:
    ``RetryAfterSeconds``, ``retry_in``. With the unit and the name of each."""
    found: list[tuple[Any, str, str]] = []
    _collect_named(body, depth, found)
    return found


def _collect_named(body: Any, depth: int, found: list[tuple[Any, str, str]]) -> None:
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, dict):
        return
    for name, value in body.items() if len(body) <= _NAMES_LIMIT else _first_fields(body):
        if isinstance(value, (dict, list)):
            if value and depth < _DEPTH and name not in _DATA and isinstance(name, str):
                _collect_named(value, depth + 1, found)
        elif value is not None and isinstance(name, str):
            unit = _units.get(name, "")
            if unit == "":
                unit = _unit_of(name)
            if unit is not None:
                found.append((value, unit, name))


def _first_fields(body: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list(islice(body.items(), _NAMES_LIMIT))


_units: dict[str, str | None] = {}


def _unit_of(name: str) -> str | None:
    """The unit of a field whose name is a wait; None: the name is none. Answers of one service have
    the same names."""
    unit = phrases().named.get(_SEPARATORS.sub("", name[:40]).lower())
    if len(name) <= 40:
        if len(_units) >= _REMEMBERED:
            _units.clear()
        _units[name] = unit
    return unit


def _look(
    value: Any, places: Mapping[str, Places], now: float, found: list[tuple[int, ToldWait]]
) -> None:
    items: list[tuple[Any, Places]] = []
    if isinstance(value, MAPPING):
        items = [(value[name], place) for name, place in places.items() if name in value]
    elif isinstance(value, list) and "*" in places:
        items = [(item, places["*"]) for item in value[:32]]
    for inner, place in items:
        for rank, path, unit in place.units:
            seconds = _told(inner, unit, now)
            if seconds is not None:
                found.append((rank, ToldWait(seconds, path)))
        if place.below:
            _look(inner, place.below, now, found)


def _told(value: Any, unit: str, now: float) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        if unit == "ms":
            plain = number(value.strip())
            return sane(plain / 1_000) if plain is not None else None
        return parse_retry_after(value, now=now)
    if isinstance(value, (int, float)):
        if unit == "ms":
            return sane(value / 1_000)
        return parse_retry_after(f"{value:.6f}", now=now) if value >= 1e9 else sane(float(value))
    return None


def _messages(body: Any, failed: bool, found: list[str], depth: int = 0) -> None:
    """The messages of a body, and of the objects in it that hold one; in that of a `failed` answer
    any text may be one."""
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, MAPPING):
        return
    known = phrases()
    held = []
    for name, value in body.items() if len(body) <= _NAMES_LIMIT else _first_fields(body):
        if isinstance(value, str):
            if failed or name in known.spoken:
                found.append(value if len(value) <= _TEXT_LIMIT else value[:_TEXT_LIMIT])
        elif isinstance(value, (list, *MAPPING)) and (
            name in known.holders or (isinstance(name, str) and name.endswith("_response"))
        ):
            held.append(value)
    if depth < _DEPTH:
        for value in held:
            _messages(value, failed, found, depth + 1)


def _spoken(text: str | None, body: Any, failed: bool) -> list[str]:
    """The texts in which a wait may be spoken of: messages of the body, else the text itself."""
    if isinstance(body, (list, *MAPPING)):
        found: list[str] = []
        _messages(body, failed, found)
        return found
    return [text[:_TEXT_LIMIT]] if text else []


def may_tell_wait(lowered: str) -> bool:
    """May a text, in lower case, name a wait: has it a digit, and one of the literals?"""
    if _DIGIT.search(lowered) is None:
        return False
    return any(map(lowered.__contains__, phrases().need))


def _of_phrase(text: str) -> float | None:
    if _DIGIT.search(text) is None:
        return None
    known = phrases()
    lowered = text.lower()
    if known.some.search(lowered) is None:
        return None
    asked: dict[int, re.Pattern[str]] = {}
    for literal, forms in known.before_ascii if lowered.isascii() else known.before:
        if literal in lowered:
            asked.update(forms)
    starts = [
        (one.start(), order, one.end())
        for order, form in asked.items()
        for one in form.finditer(text)
    ]
    done = 0
    for start, _, end in sorted(starts):
        if start < done:
            continue  # inside of another phrase
        done = end
        until = text.find(";", end, end + 48)  # behind it somebody else may tell of his own plan
        if known.own.search(text, max(0, start - 24), until if until >= 0 else end + 48):
            continue
        seconds = _spoken_duration(text, end)
        if seconds is not None:
            return sane(seconds)
    return None


def _spoken_duration(text: str, position: int) -> float | None:
    """``20s``, ``3 seconds``, ``10h17m5.7s``, ``1 hour and 2 minutes``, ``20 秒`` from `position` on."""
    known = phrases()
    total: float | None = None
    for _ in range(5):
        amount = known.amount.match(text, position)
        if amount is None:
            break
        unit = amount.group(2)
        if unit is None:
            return float(amount.group(1)) * known.bare_unit if total is None else total
        total = (total or 0.0) + float(amount.group(1)) * known.factors[unit.lower()]
        position = amount.end()
        if text.startswith((" and ", ", "), position):
            position += 5 if text.startswith(" and ", position) else 2
    return total
