"""The first stage for log lines: is there anything at all in a text that could speak of a failure?

Most lines of a log are fine. Every rule of the text needs one of its literals, a class name its
ending, a status its digits, a body its bracket: where none of these stands, no stage behind this one
can find a failure, and none is asked.
"""

import re
from typing import Any, Final

from failwise.classify import texts
from failwise.classify.marks import MARKS
from failwise.classify.shapes import recognise
from failwise.classify.signs import WORDS, names, names_something
from failwise.classify.text import TEXT_LIMIT, matcher, speaks
from failwise.evidence.literals import find_objects
from failwise.evidence.texts import body_of, unprefixed
from failwise.vocabulary.records import UNSET

_LEVELS: Final = "INFO|DEBUG|NOTICE|TRACE|VERBOSE|GET|POST|PUT|PATCH|DELETE|HEAD|OK"
# The digits first, the look behind them afterwards: so the scan is quick. A number with a
# unit, of a field that is no status, or the size that access logs have after theirs, is none; neither
# is a piece of an identifier.
_STATUS: Final = re.compile(
    r"[45]\d\d(?<![\d./a-f]...)(?<!(?<!status)=...)(?<!\" [23]\d\d ...)(?!(?<=-\d\d\d)[a-f]|[\d.]\d|\d|\s?(?:ms|us|[kKMG]i?B|bytes|rows|lines|items|%))"
)
_BEGINNING: Final = re.compile(rf"-?(?!(?:{_LEVELS})\b)[A-Z]{{2,}} |\d{{3}}[ -]")


def plainly_fine(text: str) -> bool:
    """True only where the whole classification would find a success; False proves nothing."""
    if len(text) > TEXT_LIMIT:
        return False
    if "|" in text:
        text = unprefixed(text.strip())
    lowered, found = matcher().found(text)
    if found and not WORDS.isdisjoint(found):
        return _ends_well(text)
    if "<" in text or "\x1b" in text or _BEGINNING.match(text) or _STATUS.search(text):
        return False
    if found and ((not names().isdisjoint(found) and names_something(text)) or speaks(text)):
        return False
    return "{" not in text or _objects_are_fine(text, lowered)


def _ends_well(text: str) -> bool:
    """What judges texts looks at this first, whatever else stands in them."""
    if not text.isprintable() or text[:1].isspace() or text[-1:].isspace():
        return False
    return texts.is_listing(text) or (texts.ends_well(text) and not texts.announces_failure(text))


_BESIDE: Final = frozenset({"msg", "message", "trace_id", "traceId", "request_id", "requestId"})
"""Fields of records of logs that answers have too; without any other of an answer they say nothing."""
_FEW: Final = 3
"""An object of so few fields may be nothing but its message."""
_SOME: Final = 2
"""And one of which a single field has a value a sentence in its place."""


def _is_record(body: Any) -> bool:
    """A record of a log, as a glance tells: data, one value a field, with a message and ids beside."""
    if body.__class__ is not dict or len(body) > _FIELDS:
        return False
    is_data, data, beside = MARKS.is_data, 0, False
    for name, value in body.items():
        if value.__class__ not in _SCALARS or value is False:
            return False
        if is_data(name):
            data += bool(value)  # one without a value says nothing of what stands beside it
        elif name not in _BESIDE:
            return False
        else:
            beside = True
    return data > _FEW or (data >= _SOME and not beside)


_FIELDS: Final = 40
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _objects_are_fine(text: str, lowered: str) -> bool:
    """Objects in a line, as structured logs have them: none of a shape that errors have, and none
    that any provider sends."""
    from failwise.profiles.document import Document
    from failwise.profiles.library import Profiles

    if "headers" in lowered or not text.isprintable():
        return False
    body = body_of(text, list(find_objects(text)))
    if body is UNSET or _is_record(body):
        return True
    if recognise(body, None) is not None:
        return False
    profiles = Profiles.default()
    if isinstance(body, dict) and not any(map(profiles.asks_for, body)):
        return True
    return not profiles.hits(Document(body=body))
