"""The first stage for log lines: is there anything at all in a text that could speak of a failure?

Most lines of a log are fine. Every rule of the text needs one of its literals, a class name its
ending, a status its digits, a body its bracket: where none of these stands, no stage behind this one
can find a failure, and none is asked.
"""

import functools
import re
from typing import Final

from failwise.classify.text import TEXT_LIMIT, match
from failwise.evidence.classes import class_table

_LEVELS: Final = "INFO|DEBUG|NOTICE|TRACE|VERBOSE|GET|POST|PUT|PATCH|DELETE|HEAD|OK"
_SUSPECT: Final = re.compile(
    # a status, the opening of a body or page, a code at the beginning of the line
    rf"(?<![\d.])(?<!\" [23]\d\d )[45]\d\d(?![\d.]\d|\d)|[{{<\x1b]|\[\s{{0,8}}{{|^-?(?!(?:{_LEVELS})\b)[A-Z]{{2,}} |^\d{{3}}[ -]"
    # names of exceptions
    r"|(?:Timeout|TimedOut|Fault|Failure|Disconnected|IncompleteRead|Interrupt|Redirects|Exhausted|Closed)(?![a-z])"
)
_UPPER: Final = re.compile(r"[A-Z][A-Z0-9_]{3,}")
_WORDS: Final = (
    "error", "fail", "exception", "denied", "refused", "timeout", "timed out", "time out", "invalid",
    "错误", "失败", "异常", "超时", "无效", "无法", "不支持", "拒绝", "过期", "cannot", "unable to",
    "could not", "not allowed", "errno", "sqlstate", "exit code", "traceback", "curl:", "grpc", "code",
)  # fmt: skip
"""What the later stages look for beside the literals of the rules."""


def plainly_fine(text: str) -> bool:
    """True only where the whole classification would find a success; False proves nothing."""
    if len(text) > TEXT_LIMIT or _SUSPECT.search(text) is not None:
        return False
    lowered = text.lower()
    if any(word in lowered for word in _WORDS):
        return False
    symbols = _symbols()
    return not any(word in symbols for word in _UPPER.findall(text)) and not match(text)


@functools.cache
def _symbols() -> frozenset[str]:
    return frozenset(class_table().symbols)
