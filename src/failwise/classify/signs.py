"""What else than the words of a rule may speak of a failure in a text, and where it is looked for."""

import functools
import re
from typing import Final

from failwise.evidence.classes import class_table

WORDS: Final = frozenset((
    "error", "fail", "exception", "denied", "refused", "timeout", "timed out", "timedout", "time out", "invalid",
    "出了", "出现", "went wrong", "错误", "失败", "异常", "超时", "无效", "无法", "不支持", "拒绝", "过期", "cannot", "unable to",
    "could not", "not allowed", "errno", "sqlstate", "exit code", "traceback", "curl:", "grpc", "code",
))  # fmt: skip
"""What the stages behind the gate look for beside the literals of the rules."""

_ENDINGS: Final = (
    "Fault", "Disconnected", "IncompleteRead", "Interrupt", "Redirects", "Exhausted", "Closed",
)  # fmt: skip
_CLASS: Final = re.compile(rf"(?:{'|'.join(_ENDINGS)})(?![a-z])")
_UPPER: Final = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def names_something(text: str) -> bool:
    """Is there the name of a class that failed, or of a cause (``ECONNREFUSED``)?"""
    return _CLASS.search(text) is not None or not _symbols().isdisjoint(_UPPER.findall(text))


@functools.cache
def literals() -> frozenset[str]:
    """In lower case: without one of these neither a word nor a name of this page stands in a text."""
    names = (*_ENDINGS, *filter(_UPPER.fullmatch, _symbols()))
    return WORDS.union(name.lower() for name in names)


@functools.cache
def _symbols() -> frozenset[str]:
    return frozenset(class_table().symbols)
