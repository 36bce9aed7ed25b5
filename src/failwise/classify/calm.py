"""Lines of logs that name a failure and say in the same breath that it is none.

Programs log at the level of information what they lacked and what they did instead ("not found, using
defaults"), what was there already ("exists, skipping"), what they cleared away ("removed 42 expired tokens"),
what they are ready for ("exception handler registered"), and counts of nothing ("failed 0 times"). The words
are those of failures; how calm lines look stands in ``rules/calm.toml``.
"""

import re
from typing import Final

from failwise.classify.folding import fold
from failwise.classify.forms import Place
from failwise.classify.texts import speaks_of_trouble

LIMIT: Final = 400
"""Characters of a line; a longer one holds more than such a sentence."""
_FILE: Final = "calm.toml"
_LEVELS: Final = Place(_FILE, "levels")
_STEPS: Final = Place(_FILE, "steps")
_MENDED: Final = Place(_FILE, "mended")
_MENDED_CHINESE: Final = Place(_FILE, "mended_chinese")
_MENDED_LOCALISED: Final = Place(_FILE, "mended_localised")
_WORSE: Final = Place(_FILE, "worse")
_DENIALS: Final = Place(_FILE, "denials")
_CALM_SIGN: Final = re.compile(
    r"INFO|DEBUG|TRACE|NOTICE|VERBOSE|info|debug|trace|notice|Info|Debug|INF\]|DBG\]|VRB\]|LOG:  |CRON\[|##\[|[ID]\d{4} |: \[| [23]\d\d(?!\d)"
)
"""One of these stands in every line that is calm."""
_LINES: Final = 12
_SETTING: Final = re.compile(
    r"\s{1,8}(?!error|err|cause|caused|reason|exception|failure)[a-z][\w.-]{1,80} ?[=:] ?[^\n]{0,800}",
    re.IGNORECASE,
)
"""How programs print what they were set up with."""
_TIMEOUT: Final = re.compile(r"\b[\w.-]{0,40}timeout[\w.-]{0,20}[=:] ?\d\w{0,8}", re.IGNORECASE)
_DENIABLE: Final = re.compile(r"[\u4e00-\u9fff]|[Tt]ime")
"""One of these stands in all that is a denial."""


def is_calm(text: str) -> bool:
    """Lines of a log that each say of themselves that they are no failure: by their level, or the
    status that an access log has behind the request. Settings may follow one, a line each."""
    lines = text.strip().split("\n", _LINES)
    return (
        len(lines) <= _LINES
        and _CALM_SIGN.search(lines[0]) is not None
        and _LEVELS.match(lines[0]) is not None
        and all(_LEVELS.match(line) or _SETTING.fullmatch(line) for line in lines if line.strip())
    )


def is_mended(line: str) -> bool:
    """Does a line of a log, at a level that is calm, say that what it names is no failure?"""
    if len(line) > LIMIT or "\n" in line.strip() or _WORSE.search(line):
        return False
    found = (
        _MENDED.search(line)
        or _MENDED_LOCALISED.search(line)
        or (None if line.isascii() else _MENDED_CHINESE.search(line))
    )
    return found is not None and not speaks_of_trouble(_TIMEOUT.sub("", line[found.end() :]))


def is_step(line: str) -> bool:
    """Is a line what a program prints of a step that went well, whatever the step is named?"""
    return len(line) <= LIMIT and "\n" not in line and _STEPS.match(line) is not None


def without_denials(text: str) -> str:
    """The text without what it says did not happen, or is only set up: 未超时, 无异常, 限流配置."""
    if text.isascii():
        return text
    folded = fold(text)
    return _DENIALS.pattern.sub(" ", folded) if _DENIABLE.search(folded) else folded
