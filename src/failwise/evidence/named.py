"""Names of exceptions and of causes in a free text, with the numbers that stand beside them."""

import functools
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from failwise.evidence.bounds import bounded
from failwise.evidence.classes import class_table
from failwise.evidence.forms import Cause, forms, needed
from failwise.vocabulary.alternation import any_of

FACTS_LIMIT: Final = 16

Mark: TypeAlias = tuple[str, str, dict[str, Any]]
"""What stood in a text: a class name, its message, and the attributes beside it."""

_TOKEN = re.compile(r"[A-Za-z_$][\w$]{0,120}(?:(?:\.|::)[A-Za-z_$][\w$]{0,120}){0,12}", re.ASCII)
_CLASS_ENDINGS: Final = (
    "Error|Exception|Timeout|TimedOut|Refused|Fault|Failure|Disconnected|IncompleteRead|Interrupt"
    "|Redirects|Exhausted|Closed"
)
_CLASS_END = re.compile(rf"(?:{_CLASS_ENDINGS})$")
_RUN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.:"
)  # what a name with its modules is made of
_RUN_ON = re.compile(r"[\w$.:]{0,2048}", re.ASCII)
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
_STANDS_ALONE: Final = frozenset({"McpError", "JsonRpcError", "grpc.RpcError", "Error"})


def segments(text: str) -> Iterator[str]:
    """The exceptions of a chain, outermost first: Python prints the outermost one last."""
    if "\n" not in text and "exception" not in text:
        yield text  # one line: it has neither frames nor a chain
        return
    pieces = _DIRECT_CAUSE.split(text)
    for piece in reversed([piece for piece in pieces if piece.strip()]):
        yield _FRAME_LINE.sub("", _PYTHON_TRACE.sub("", piece))


def marks_of(text: str) -> list[Mark]:
    """Class names and coded causes of one exception's text, in order: (name, message, attributes)."""
    marks = _named(text)
    lowered = text.lower()
    if "error [" in lowered or "exception [" in lowered:
        symbols = class_table().symbols
        marks.extend(
            (match.start(), "Error", {"code": match.group(1)})
            for match in _CODE_IN_BRACKETS.finditer(text)
            if match.group(1) not in symbols
        )
    known = forms()
    for cause in known.causes if known.causes_need.search(lowered) else ():
        if needed(cause.need, lowered):
            for match in islice(cause.pattern.finditer(text), FACTS_LIMIT):
                if cause.attribute == "class":
                    marks.append((match.start(), f"{cause.name}.{match.group(1)}", {}))
                else:
                    marks.append((match.start(), cause.name, _value(cause, match.group(1))))
    if not marks:
        return []
    marks.sort(key=lambda mark: mark[0])
    return _joined(text, marks)


def _named(text: str) -> list[tuple[int, str, dict[str, Any]]]:
    """Names of classes and of causes (``ECONNREFUSED``). Only words that hold the end of one, or
    all of one, are looked at: of most texts that is none."""
    table = class_table()
    marks: list[tuple[int, str, dict[str, Any]]] = []
    done = 0
    for hint in _hints().finditer(text):
        start = hint.start()
        if start < done:
            continue
        while start > done and text[start - 1] in _RUN:
            start -= 1
        run = _RUN_ON.match(text, hint.end())
        done = run.end() if run else hint.end()
        for match in _TOKEN.finditer(text, start, done):
            token = match.group()
            short = token.rpartition("::")[2].rpartition(".")[2]
            if short in table.symbols and short.isupper():
                marks.append((match.start(), "OSError", {"symbol": short}))
            elif _is_class(token, short) and _AFTER_CLASS.match(text, match.end()):
                marks.append((match.start(), token, {}))
        if len(marks) > FACTS_LIMIT * 4:
            break
    return marks


@functools.cache
def _hints() -> re.Pattern[str]:
    """What the name of a class or of a cause ends in, or is."""
    table = class_table()
    whole = {name for name in table.symbols if name.isupper()}
    dotted = {f".{name.rpartition('.')[2]}" for name in table.by_name if "." in name}
    others = {name for name in dotted if _CLASS_END.search(name) is None}
    names = {*_CLASS_ENDINGS.split("|"), *whole, *others}
    return re.compile(rf"{any_of(names)}(?![\w$])", re.ASCII)


def _is_class(token: str, short: str) -> bool:
    if token in class_table().by_name and "." in token:
        return True
    return (
        short[:1].isupper()
        and short not in _NOT_A_CLASS
        and _CLASS_END.search(short) is not None
        and not short.isupper()
    )


def _joined(text: str, marks: list[tuple[int, str, dict[str, Any]]]) -> list[Mark]:
    """An errno or code belongs to the class name before it on the same line."""
    joined: list[Mark] = []
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


def is_class_name(text: str) -> bool:
    """Is the whole text the name of an exception's class?"""
    token = _TOKEN.fullmatch(text)
    return token is not None and _is_class(text, text.rpartition("::")[2].rpartition(".")[2])
