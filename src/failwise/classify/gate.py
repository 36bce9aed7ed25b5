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
# The first character first, the look behind it afterwards: so the scan is quick. A number with a
# unit, of a field that is no status, or the size that access logs have after theirs, is none.
_STATUS: Final = re.compile(
    r"[45](?<![\d./a-f].)(?<!(?<!status)=.)(?<!\" [23]\d\d .)\d\d(?![\d.]\d|\d|\s?(?:ms|us|[kKMG]i?B|bytes|rows|lines|items|%))"
)
_BEGINNING: Final = re.compile(rf"-?(?!(?:{_LEVELS})\b)[A-Z]{{2,}} |\d{{3}}[ -]")
_BODY: Final = re.compile(r"[{<\x1b]|\[\s{0,8}\{")
_CLASS: Final = re.compile(
    r"(?:Fault|Disconnected|IncompleteRead|Interrupt|Redirects|Exhausted|Closed)(?![a-z])"
)
_UPPER: Final = re.compile(r"[A-Z][A-Z0-9_]{3,}")
_WORDS: Final = (
    "error", "fail", "exception", "denied", "refused", "timeout", "timed out", "timedout", "time out", "invalid",
    "错误", "失败", "异常", "超时", "无效", "无法", "不支持", "拒绝", "过期", "cannot", "unable to",
    "could not", "not allowed", "errno", "sqlstate", "exit code", "traceback", "curl:", "grpc", "code",
)  # fmt: skip
"""What the later stages look for beside the literals of the rules."""


def plainly_fine(text: str) -> bool:
    """True only where the whole classification would find a success; False proves nothing."""
    if len(text) > TEXT_LIMIT or _BEGINNING.match(text) or _BODY.search(text):
        return False
    lowered = text.lower()
    for word in _WORDS:
        if word in lowered:
            return False
    if _STATUS.search(text) or _CLASS.search(text):
        return False
    return _symbols().isdisjoint(_UPPER.findall(text)) and not match(text)


@functools.cache
def _symbols() -> frozenset[str]:
    return frozenset(class_table().symbols)
