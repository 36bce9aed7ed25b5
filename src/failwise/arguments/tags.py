"""Calls written as tags: ``<function=f><parameter=a>1</parameter></function>`` and its kin.

Values are text between tags; what type they have is for the schema to say.
"""

import re
from collections.abc import Iterator
from typing import Any

_CALL = re.compile(
    r"<function=([\w.-]{1,200})>|<(?:antml:)?invoke name=\"([\w.-]{1,200})\"\s*>"
    r"|<tool_call>\s*([\w.-]{1,200})\s*(?=<arg_key>)"
)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]{1,200})>|<(?:antml:)?parameter name=\"([\w.-]{1,200})\"[^<>]{0,80}>"
    r"|<arg_key>\s*([\w.-]{1,200})\s*</arg_key>\s*<arg_value>"
)
_ENDS = ("</parameter>", "</" + "antml:parameter>", "</arg_value>")
_STOP = re.compile(r"</function>|</(?:antml:)?invoke>|</tool_call>")
_LIMIT = 100


def tagged_calls(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """``(name, arguments)`` of each complete call in tags; a call that was cut off is left out."""
    position = 0
    for _ in range(_LIMIT):
        call = _CALL.search(text, position)
        if call is None:
            return
        name = call[1] or call[2] or call[3]
        stop = _STOP.search(text, call.end())
        position = call.end()
        if stop is None:
            return
        arguments, end = _parameters(text, call.end())
        stop = _STOP.match(text, end) if end is not None else None
        if arguments is not None and stop is not None and (arguments or call[1] is None):
            position = stop.end()
            yield name, arguments


def _parameters(text: str, position: int) -> tuple[dict[str, Any] | None, int | None]:
    arguments: dict[str, Any] = {}
    while True:
        position += len(text[position : position + 200]) - len(
            text[position : position + 200].lstrip()
        )
        start = _PARAMETER.match(text, position)
        if start is None:
            return arguments, position
        key = start[1] or start[2] or start[3]
        ends = [(text.find(end, start.end()), end) for end in _ENDS]
        ends = [(place, end) for place, end in ends if place >= 0]
        if not ends or key in arguments:
            return None, None
        place, end = min(ends)
        arguments[key] = _text(text[start.end() : place])
        position = place + len(end)


def _text(value: str) -> str:
    """One line break at each end belongs to the tags."""
    return value.removeprefix("\n").removesuffix("\n")
