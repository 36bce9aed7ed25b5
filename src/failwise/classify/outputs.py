"""Outputs of tools that say by their form that the call failed, or that it only reports failures.

What a tool gave back is content, whatever words it holds, unless it begins or ends as failures do. The
forms stand in ``rules/outputs.toml``.
"""

import functools
import re
from typing import Final

from failwise.classify.forms import Form, Place, read

FILES: Final = ("outputs.toml", "refusals.toml", "refusals_chinese.toml")
"""Forms by which outputs are told apart; single sentences have a file of their own."""
SHORT: Final = 600
"""Characters of a text whose first words alone may say that it failed."""
_SHORT_LINES: Final = 12
_LINE: Final = 250
_BEGINNING: Final = 400
"""Characters in which the words stand that a text of any length may begin with."""
_TAIL: Final = 1_200
_LAST: Final = 3
"""Lines at the end of which one may say that it failed, within so many characters."""
_ROOM: Final = 6_000
"""Characters at either end of which one may hold the summary of a run of tests."""
_TRACE: Final = "Traceback (most recent call last)"
_RAISED: Final = re.compile(
    r"(?:[A-Za-z_][\w.]{0,120}:\s[^\n]*|(?=[\w.]{0,120}(?:[a-z][A-Z]|\.\w))[A-Za-z_][\w.]{0,120})\s*\Z",
    re.ASCII,
)
_RAISED_LAST: Final = re.compile(
    r"(?:[A-Za-z_]\w{0,40}\.){0,5}[A-Z]\w{1,60}(?:Error|Exception): [^\n]{1,300}", re.ASCII
)
_ERROR_LAST: Final = re.compile(r"(?:error|fatal)(?:\[\w{1,20}\])?: \S", re.IGNORECASE)
_TROUBLE: Final = re.compile(
    r"error (?:during|in|while)|failed|failure|[✗✖❌]|^> \w", re.IGNORECASE
)
_LOG_LINE: Final = re.compile(
    r"\W{0,3}(?:\d{2,4}[-/.:]\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:|\d{1,6}[:→\t]|(?:INFO|DEBUG|WARN|ERROR|TRACE)\b|[\w./-]{1,200}:\d{1,6}:)"
)
"""How lines of logs, numbered lines of files and hits of a search begin: what they end with is content."""
_PROMPT: Final = re.compile(
    r"(?:\n\((?:Open file|Current directory): [^\n]{0,200}\)){1,2}\n?bash-\$\s{0,4}\Z"
)
"""What an agent's shell prints under each answer."""
_SUMMARY_WORDS: Final = ("pass", "fail", "Ran ", "PASS", "FAIL", "Fail", "tests", "OK ", "ok", "error")  # fmt: skip
"""One of these stands in every summary of a run of tests."""
_LETTERS: Final = bytes(byte if chr(byte) in "abcdefghijklmnopqrstuvwxyz" else 32 for byte in range(256))  # fmt: skip
"""Turns whatever is no ASCII letter, byte by byte, into a blank."""
_FOREIGN: Final = "汉"
_ASKED: Final = ("heads", "lines", "starts")
_TAILS: Final = Place(FILES[0], "tails")
_REPORTS: Final = Place(FILES[0], "reports")


def fails(text: str) -> bool:
    """Does a text say by its form that what was asked for was not done?"""
    short = len(text) <= SHORT
    words = _words(text if short else text[:_BEGINNING])
    if not words.isdisjoint(_asked_words()):
        if short and text.count("\n") <= _SHORT_LINES and _has("heads", text, words):
            return True
        if _has("starts", text, words):
            return True
        if len(text) <= _LINE and "\n" not in text and _has("lines", text.strip(), words):
            return True
    return _ends_badly(text)


def refusal(text: str) -> Form | None:
    """The form of a single sentence, where it is one of those that tell what a refusal is about."""
    if len(text) > _LINE or "\n" in text:
        return None
    words = _words(text)
    forms, waiting = _waiting("lines")
    for index in sorted({index for word in words.intersection(waiting) for index in waiting[word]}):
        form = forms[index]
        if form.code is not None and _pattern_of("lines", index).fullmatch(text.strip()):
            return form
    return None


@functools.cache
def form_origins() -> dict[str, str]:
    """Where the words of each such form come from, by the id of its rule."""
    return {f"form.{form.id}": form.origin for form in _waiting("lines")[0]}


def begins_badly(text: str) -> bool:
    """Does it begin with words after which nothing counts that it may hold: an exit code, an editor's refusal?"""
    return _has("starts", text, _words(text[:_BEGINNING]))


def is_missing(text: str) -> bool:
    """Is a short sentence nothing but that something is not there, or is there already?"""
    return _has("lines", text.strip(), _words(text))


def reports_tests(text: str) -> bool:
    """Is it what a run of tests printed, with its summary? That some failed is what was asked for."""
    if not any(map(text.__contains__, _SUMMARY_WORDS)) or begins_badly(text):
        return False
    ends = text if len(text) <= 2 * _ROOM else f"{text[:_ROOM]}\n{text[-_ROOM:]}"
    return _REPORTS.search(ends) is not None


def _ends_badly(text: str) -> bool:
    """Says one of the last lines that the command failed, or is it where a traceback ends?"""
    if "\n" not in text:
        return len(text) <= _LINE and _is_tail(text.strip())
    end = _without_prompt(text[-_TAIL:]).rstrip()
    last = [line.strip() for line in end.rsplit("\n", _LAST)[-_LAST:]]
    if any(map(_is_tail, last)):
        return True
    if len(last) > 1 and not _LOG_LINE.match(text):
        if _RAISED_LAST.fullmatch(last[-1]):
            return True
        if _ERROR_LAST.match(last[-1]) and any(map(_TROUBLE.search, last[:-1])):
            return True
    traced = text.rfind(_TRACE)
    if traced < 0:
        return False
    raised = _without_prompt(text[traced:]).rstrip().rpartition("\n")[2]
    return _RAISED.match(raised) is not None


def _is_tail(line: str) -> bool:
    return _TAILS.pattern.fullmatch(line) is not None


def _without_prompt(text: str) -> str:
    return _PROMPT.sub("", text) if text.rstrip().endswith("bash-$") else text


def _has(where: str, text: str, words: set[str]) -> bool:
    """Has a text, in which these words stand, one of the forms of a place?"""
    _, waiting = _waiting(where)
    if words.isdisjoint(waiting):
        return False
    for index in {index for word in words.intersection(waiting) for index in waiting[word]}:
        pattern = _pattern_of(where, index)
        if (pattern.fullmatch if where == "lines" else pattern.match)(text):
            return True
    return False


def _words(text: str) -> set[str]:
    """The words of a text in lower case, and a sign for any outside of ASCII."""
    lowered = text.lower()
    words = set(lowered.encode("utf-8", "replace").translate(_LETTERS).decode("ascii").split())
    if not lowered.isascii():
        words.add(_FOREIGN)
    return words


@functools.cache
def _asked_words() -> frozenset[str]:
    """Without one of these a text has none of the forms that its beginning may have."""
    return frozenset(word for where in _ASKED for word in _waiting(where)[1])


@functools.cache
def _waiting(where: str) -> tuple[list[Form], dict[str, list[int]]]:
    """The forms of a place, and which of them wait for which word."""
    at = [form for file in FILES for form in read(file)[1] if form.place == where]
    waiting: dict[str, list[int]] = {}
    for index, form in enumerate(at):
        for word in form.need:
            waiting.setdefault(word, []).append(index)
    return at, waiting


@functools.cache
def _pattern_of(where: str, index: int) -> re.Pattern[str]:
    """Compiled when the first text holds one of its words: most forms are never asked for."""
    form = _waiting(where)[0][index]
    return form.setting.compiled([form.pattern])
