"""What else than the words of a rule may speak of a failure in a text, and where it is looked for."""

import functools
import re
from typing import Final

from failwise.evidence.classes import class_table

WORDS: Final = frozenset((
    "error", "fail", "exception", "denied", "refused", "timeout", "timed out", "timedout", "time out", "invalid",
    "出了", "出现", "went wrong", "错误", "失败", "异常", "超时", "无效", "无法", "不支持", "拒绝", "过期", "cannot", "unable to",
    "could not", "not allowed", "errno", "sqlstate", "exit code", "traceback", "curl:", "grpc", "code",
    "erreur", "echec", "impossib", "fallo", "no se p", "no ha p", "no fue posible", "falha", "nao foi", "nao e possivel", "fehler",
    "konnte", "ошибк", "не удалось", "невозможно", "エラー", "できません", "오류", "실패", "수 없습니다", "못했습니다",
    # What else sentences that announce a failure begin with, or end with (`texts.announces_failure`).
    "fatal", "unable", "can't", "couldn't", "sorry", "unfortunately", "apologies", "regrettably", "try again",
    "err:", "err：", "err!", "err]", "err*", "err>", "err(", "err)", "出错", "报错", "未完成", "未成功", "不成功", "受限", "中断", "未能", "没能",
    "不能", "再试", "重试", "再操作", "再次尝试", "possibile", "riprova", "avons pas pu", "reessay", "no pudo", "no puede", "no pude", "intente",
    "erro ", "erro:", "tente novamente", "versuchen sie", "попробуйте", "に失败", "お试し", "다시 시도",
))  # fmt: skip
"""What the stages behind the gate look for beside the literals of the rules; in one spelling (`fold`)."""

_ENDINGS: Final = (
    "Fault", "Disconnected", "IncompleteRead", "Interrupt", "Redirects", "Exhausted", "Closed",
)  # fmt: skip
_CLASS: Final = re.compile(rf"(?:{'|'.join(_ENDINGS)})(?![a-z])")
_UPPER: Final = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def names_something(text: str) -> bool:
    """Is there the name of a class that failed, or of a cause (``ECONNREFUSED``)?"""
    return _CLASS.search(text) is not None or not _symbols().isdisjoint(_UPPER.findall(text))


@functools.cache
def names() -> frozenset[str]:
    """In lower case: without one of these no name stands in a text."""
    return frozenset(name.lower() for name in (*_ENDINGS, *filter(_UPPER.fullmatch, _symbols())))


@functools.cache
def literals() -> frozenset[str]:
    """In lower case: without one of these neither a word nor a name of this page stands in a text."""
    return WORDS | names()


@functools.cache
def _symbols() -> frozenset[str]:
    return frozenset(class_table().symbols)
