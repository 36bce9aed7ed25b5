"""Objects that record one call of a tool: what was asked, beside what came of it.

Runners keep a call whole (``{"tool": ..., "input": ..., "output": null, "exception": "..."}``), name it by
what it was about (``{"/w/a.md": {"result": "error", "reason": ...}}``), or give a single field a sentence
in place of its value (``{"symbol": "Stock not found"}``).
"""

import re
from typing import Any, Final

from failwise.classify import outputs
from failwise.classify.envelopes import FAILED_STATUS, error_object
from failwise.classify.rows import is_record
from failwise.classify.shape import (
    Body,
    Shape,
    as_status,
    empty,
    first_text,
    good_message,
    is_bad,
    message_of,
    only_envelope,
    plain,
)
from failwise.vocabulary.records import MAPPING

_ERRORS: Final = (
    "error",
    "Error",
    "exception",
    "Exception",
    "err",
    "errorMessage",
    "error_message",
)
_ANSWERS: Final = (
    "output", "result", "response", "data", "value", "content", "return", "return_value", "observation", "answer", "results",
)  # fmt: skip
_NONE: Final = frozenset({"none", "null", "false", "0", "no", "n/a", "nil", "-"})
_WORD: Final = re.compile(r"[A-Za-z\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af]{3}|[\u4e00-\u9fff]{2}")
_ECHO: Final = re.compile(
    r".{0,30}(?:id|no|num|number|page|limit|count|size|offset|attempt|attempts|retries|time|timestamp|date|line|index|port|code|step|duration|elapsed|duration_ms|ms|year|month|day|version|amount|quantity|lat|lon|latitude|longitude)",
    re.IGNORECASE,
)
"""Numbers by which a caller names what it asks for, or that say how long it took; others are answers."""
_FIELDS: Final = 8
_ECHOED: Final = 160
"""Characters of a text that a caller may have sent; a longer one is an answer."""
_FETCHED: Final = frozenset(
    {
        "status", "status_code", "statusCode", "http_status", "body", "text", "content", "data", "headers", "url", "final_url",
        "reason", "statusText", "status_text", "error", "message", "ok", "json", "elapsed", "content_type", "contentType", "method", "title",
    }
)  # fmt: skip
_STATUSES: Final = ("status", "status_code", "statusCode", "http_status")
_TEXTS: Final = frozenset(
    {
        "content", "text", "file_content", "title", "name", "description", "body", "summary", "translation", "log", "logs", "lines",
        "comment", "note", "notes", "subject", "question", "answer", "terminal_output", "stdout", "transcript", "caption", "quote", "tweet",
        "joke", "fact", "advice", "lyrics", "definition", "meaning", "example", "word", "phrase", "sentence", "headline",
    }
)  # fmt: skip
"""Fields that hold any sentence, such as a file's or a person's."""
_NOTES: Final = frozenset({"information", "note", "notice"})
_TOLD: Final = ("details", "detail", "reason", "cause", "message", "info", "hint")
_WORD_AND_REASON: Final = 2
_SENTENCE: Final = 120
_TIMED_OUT: Final = frozenset({"timeout", "timed_out", "timedout", "超时"})
_ENDED_BADLY: Final = (FAILED_STATUS - {"failed", "false", "ng"}) | _TIMED_OUT


def call_record(root: Body, status: int | None) -> Shape | None:
    """S24: the record of one call, which failed; None for anything else."""
    if is_bad(status) or not root:
        return None
    if len(root) == 1:
        return _single(root)
    exited = _exited(root)
    if exited is not None:
        return exited
    return (
        _flagged(root)
        or _listed(root)
        or _with_error(root)
        or _raised(root)
        or _fetched(root)
        or _said_only(root)
    )


def _exited(root: Body) -> Shape | None:
    """A command's output with its exit code in the metadata beside it, at the root or in the state of the call."""
    kept = root if "output" in root else root.get("state")
    if not isinstance(kept, MAPPING) or "output" not in kept:
        return None
    metadata = kept.get("metadata")
    if not isinstance(metadata, MAPPING):
        return None
    code = next((metadata[name] for name in _EXIT_CODES if name in metadata), None)
    if not isinstance(code, int) or isinstance(code, bool) or code == 0:
        return None
    return Shape("S24", True, f"exit {code}", plain(kept["output"]) or f"exit code {code}")


_EXIT_CODES: Final = ("exit_code", "exitCode", "exit")


def _with_error(root: Body) -> Shape | None:
    """An error where an answer was due, or beside nothing but what was asked."""
    name = next(
        (one for one in _ERRORS if isinstance(root.get(one), str) and _tells(root[one])), None
    )
    if name is None or is_record(root):
        return None
    answers = [root[one] for one in _ANSWERS if one in root and one != name]
    if answers:
        missing = all(empty(answer) or _says_failed(answer) for answer in answers)
    else:
        beside = {one: value for one, value in root.items() if one not in _ERRORS}
        missing = len(root) <= _FIELDS and all(_is_echo(*item) for item in beside.items())
    if not missing:
        return None
    told = plain(root[name])
    said = first_text(root, ("message", "msg"))
    if told is not None and said is not None and " " not in told:
        told = f"{told}: {said}"  # the name of what was raised, and its words
    return Shape("S24", True, first_text(root, ("code", "errorcode", "type", "error_type")), told)


def _flagged(root: Body) -> Shape | None:
    """The result of a tool as an agent keeps it, with its flag or its state beside the text."""
    told = first_text(root, ("content", "output", "result", "text"))
    flag = root.get("is_error", root.get("isError"))
    state = root.get("status")
    if told is None or not root.keys() <= _KEPT:
        return None
    if flag is True or (isinstance(state, str) and state.lower() in _ENDED_BADLY):
        return Shape("S24", True, None, told)
    return None


_KEPT: Final = frozenset(
    {"type", "role", "name", "tool", "tool_name", "function", "tool_use_id", "tool_call_id", "call_id", "id", "content", "output", "result",
     "text", "is_error", "isError", "status", "error_type", "duration", "duration_ms", "step", "args", "arguments", "input",
     "error", "elapsed", "elapsed_ms", "latency_ms"}
)  # fmt: skip


def _listed(root: Body) -> Shape | None:
    """Errors by field or in a list, where no answer stands beside them; JSend's ``fail`` with its reasons."""
    for name in ("errors", "errorMessages"):
        errors = root.get(name)
        first = next(iter(errors.items()), None) if isinstance(errors, MAPPING) else None
        if isinstance(errors, list) and name == "errorMessages" and errors:
            first = (name, errors[0])
        if first is None or any(not empty(root.get(one)) for one in _ANSWERS) or is_record(root):
            continue
        message = plain(first[1][0] if isinstance(first[1], list) and first[1] else first[1])
        if message is not None and _tells(message):
            return Shape(
                "S24", True, None, message, str(first[0]) if isinstance(errors, MAPPING) else None
            )
    flags = [one for one, value in root.items() if value is False and str(one).endswith("_status")]
    if flags and all(
        value is False or empty(value) or _REASON.search(str(one)) for one, value in root.items()
    ):
        reason = next(
            (plain(value) for one, value in root.items() if _REASON.search(str(one))), None
        )
        return Shape("S24", True, None, reason or f"{flags[0]}: false")
    data = root.get("data")
    if root.get("status") == "fail" and isinstance(data, MAPPING) and data and len(root) <= _JSEND:
        message = first_text(data, tuple(map(str, data)))
        return Shape("S24", True, None, message, str(next(iter(data)))) if message else None
    return None


_JSEND: Final = 3
_REASON: Final = re.compile(r"(?:failure|reason|error|message|msg|cause)$", re.IGNORECASE)


def _tells(error: str) -> bool:
    """Is it a sentence or a name, not a placeholder and not a margin of error?"""
    return (
        _WORD.search(error) is not None
        and error.strip().lower() not in _NONE
        and not good_message(error)
    )


def _says_failed(answer: Any) -> bool:
    return isinstance(answer, MAPPING) and all(
        empty(value) or (isinstance(value, str) and value.lower() in FAILED_STATUS)
        for value in answer.values()
    )


def _is_echo(name: str, value: Any) -> bool:
    if empty(value) or value is True:
        return True
    if isinstance(value, str):
        return len(value) <= _ECHOED
    if isinstance(value, int | float):
        return _ECHO.fullmatch(str(name)) is not None
    return str(name) in _ASKED and isinstance(value, (list, *MAPPING))


_ASKED: Final = frozenset(
    {"input", "inputs", "args", "arguments", "params", "parameters", "kwargs", "query", "request", "tool_input", "action_input"}
)  # fmt: skip


def _fetched(root: Body) -> Shape | None:
    """What a tool that fetches pages gives back: the status of the answer, and whatever came with it."""
    if not root.keys() <= _FETCHED:
        return None
    own = next((root[one] for one in _STATUSES if one in root), None)
    number = as_status(own) if isinstance(own, int) and not isinstance(own, bool) else None
    if number is None:
        return None
    text = first_text(
        root, ("error", "message", "reason", "statusText", "status_text", "text", "body", "content")
    )
    return Shape("S24", True, None, text or f"status {number}", status=number)


_THROWN: Final = frozenset({"message", "stack", "headers", "body", "responseBody", "config"})
"""One of these is with every error that was thrown; an entry of a list of errors only describes one."""


def _raised(root: Body) -> Shape | None:
    """The error of a client as its own fields make it JSON: its name, the status it met, and the body it got."""
    name, own = root.get("name"), root.get("status", root.get("statusCode"))
    if not isinstance(name, str) or not name.endswith(("Error", "Exception")):
        return None
    if _THROWN.isdisjoint(root):
        return None
    number = as_status(own) if isinstance(own, int) and not isinstance(own, bool) else None
    if number is None:
        return None
    text = first_text(root, ("message", "body", "responseBody")) or f"status {number}"
    return Shape("S24", True, plain(root.get("code")), text, status=number)


def _said_only(root: Body) -> Shape | None:
    """Nothing but the word that it failed."""
    words = [value for value in root.values() if not empty(value)]
    told = first_text(root, _TOLD)
    if told is not None and len(words) == _WORD_AND_REASON:
        word = first_text(root, ("status", "result", "outcome"))
        if word is not None and word.lower() in _ENDED_BADLY:
            return Shape("S24", True, None, told)
    if len(words) != 1 or not only_envelope(root):
        return None
    name = next(one for one, value in root.items() if value is words[0])
    return _single({name: words[0]})


def _single(root: Body) -> Shape | None:
    """An object of one field: its value is the failure, or says it."""
    name, value = next(iter(root.items()))
    if value is True and name in ("error", "is_error", "isError", "failed"):
        return Shape("S24", True, None, f"{name}: true")
    if isinstance(value, int) and name in _STATUSES:
        number = as_status(value)
        return (
            None if number is None else Shape("S24", True, None, f"status {number}", status=number)
        )
    if isinstance(value, str):
        if name == "exception" and _tells(value):
            return Shape("S24", True, None, plain(value))
        if (
            name in ("status", "result", "outcome", "message", "msg")
            and value.lower() in _ENDED_BADLY
        ):
            return Shape("S24", True, None, value)
        if str(name).lower() in _NOTES and len(value) <= outputs.SHORT and outputs.fails(value):
            return Shape("S24", None, None, value)
        return _sentence(str(name), value)
    if isinstance(value, MAPPING) and value:
        return _named(str(name), value)
    return None


def _sentence(name: str, value: str) -> Shape | None:
    if len(value) > _SENTENCE or "\n" in value or name in _TEXTS or name in _ERRORS:
        return None
    return Shape("S24", True, None, value) if outputs.is_missing(value) else None


def _named(name: str, value: Body) -> Shape | None:
    """What became of one thing, under its name."""
    error = value.get("error")
    if (
        error
        and isinstance(error, MAPPING)
        and all(empty(held) for one, held in value.items() if one != "error")
    ):
        return error_object(value, None)
    word = value.get("result", value.get("status"))
    if not isinstance(word, str) or word.lower() not in _ENDED_BADLY:
        return None
    if is_record({one: held for one, held in value.items() if one != "status"}):
        return None
    message = message_of(value) or plain(value.get("error"))
    return Shape("S24", True, None, message) if message else None


_NAMED: Final = frozenset({"result", "status", "error"})
FIELDS: Final = frozenset({"errorMessages", *_ERRORS, *_STATUSES, "is_error", "failed", "outcome"})
"""Fields of the root that one of these shapes asks for."""


def may_be_call(value: Any) -> bool:
    """May the value of an object's only field make it the record of a call that failed?"""
    if isinstance(value, str):
        return (len(value) <= _SENTENCE and outputs.is_missing(value)) or outputs.fails(value)
    return isinstance(value, MAPPING) and not _NAMED.isdisjoint(value)
