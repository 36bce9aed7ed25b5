"""The exceptions behind an exception: causes, contexts, groups, and what libraries hide elsewhere."""

from typing import Final

from failwise.evidence.attributes import may_have
from failwise.evidence.responses import attribute

EXCEPTIONS_LIMIT: Final = 32
"""Exceptions looked at behind one."""

# Where libraries keep the exception behind theirs: urllib and urllib3 (`reason`), aiohttp
# (`os_error`, `certificate_error`), SQLAlchemy (`orig`), and the customs of many others.
_LINKS: Final = (
    "reason",
    "os_error",
    "certificate_error",
    "orig",
    "original_error",
    "original_exception",
    "inner_exception",
    "exception",
    "exc",
    "error",
    "cause",
)
_LINK_NAMES: Final = frozenset(_LINKS)
_OF_CLASSES: Final = frozenset({"reason", "os_error", "certificate_error"})
"""Those that a class may have as properties, beside its objects' own."""


def strands(error: BaseException) -> list[list[BaseException]]:
    """The exceptions behind `error`, outermost first, in strands.

    A strand holds exceptions that tell of the same event: along ``__cause__``, through the
    attributes where libraries keep the inner one, and ``args``. An exception that was merely being
    handled when the next was raised (``__context__``), and each member of a group, begins a strand
    of its own: it may tell of an earlier request. The strand of `error` comes first. Cycles and
    endless chains are cut.
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    result: list[list[BaseException]] = []
    while waiting and len(seen) < EXCEPTIONS_LIMIT:
        strand: list[BaseException] = []
        stack = [waiting.pop(0)]
        while stack and len(seen) < EXCEPTIONS_LIMIT:
            current = stack.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            strand.append(current)
            stack.extend(reversed(_causes(current)))
            if isinstance(current, BaseExceptionGroup):
                waiting.extend(current.exceptions[:EXCEPTIONS_LIMIT])
            if (
                current.__cause__ is None
                and not current.__suppress_context__
                and current.__context__
            ):
                waiting.append(current.__context__)
        if strand:
            result.append(strand)
    return result


def _causes(error: BaseException) -> list[BaseException]:
    causes = [error.__cause__] if error.__cause__ is not None else []
    state = getattr(error, "__dict__", None) or {}
    if may_have(error, _LINK_NAMES):
        for name in _LINKS:
            inner = state.get(name)
            if inner is None and name in _OF_CLASSES:
                inner = attribute(error, name)
            if isinstance(inner, BaseException):
                causes.append(inner)
    for one in error.args[:8]:
        if isinstance(one, BaseException):
            causes.append(one)  # noqa: PERF401 (hardly ever)
    cls = type(error)
    if cls.__qualname__ == "RetryError" and cls.__module__.startswith("tenacity"):
        causes.extend(_last_attempt(state.get("last_attempt")))
    return causes


def _last_attempt(future: object) -> list[BaseException]:
    inner = getattr(future, "_exception", None)
    return [inner] if isinstance(inner, BaseException) else []
