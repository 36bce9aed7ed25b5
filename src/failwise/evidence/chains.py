"""The exceptions behind an exception: causes, contexts, groups, and what libraries hide elsewhere."""

from typing import Final, TypeAlias

from failwise.evidence.exception_forms import LINKS_OF_CLASSES, ExceptionForm, form_of
from failwise.evidence.responses import attribute

EXCEPTIONS_LIMIT: Final = 32
"""Exceptions looked at behind one."""

Strand: TypeAlias = list[tuple[BaseException, ExceptionForm]]
"""Exceptions that tell of the same event, each with its form."""


def strands(error: BaseException) -> list[Strand]:
    """The exceptions behind `error`, outermost first, in strands.

    A strand holds exceptions that tell of the same event: along ``__cause__``, through the
    attributes where libraries keep the inner one, and ``args``. An exception that was merely being
    handled when the next was raised (``__context__``), and each member of a group, begins a strand
    of its own: it may tell of an earlier request. The strand of `error` comes first. Cycles and
    endless chains are cut.
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    result: list[Strand] = []
    for first in waiting:
        if len(seen) >= EXCEPTIONS_LIMIT:
            break
        strand: Strand = []
        stack = [first]
        while stack and len(seen) < EXCEPTIONS_LIMIT:
            current = stack.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            form = form_of(current)
            strand.append((current, form))
            causes = _causes(current, form)
            if causes:
                stack += causes[::-1]
            if form.group:
                waiting += current.exceptions[:EXCEPTIONS_LIMIT]  # type: ignore[attr-defined]
            context = current.__context__
            if (
                context is not None
                and current.__cause__ is None
                and not current.__suppress_context__
            ):
                waiting.append(context)
        if strand:
            result.append(strand)
    return result


def exceptions_behind(error: BaseException) -> list[BaseException]:
    """The exceptions of all strands, in one list."""
    return [one for strand in strands(error) for one, _ in strand]


def _causes(error: BaseException, form: ExceptionForm) -> list[BaseException]:
    causes = [error.__cause__] if error.__cause__ is not None else []
    if form.links:
        own = getattr(error, "__dict__", None) or {}
        for name in form.links:
            inner = own.get(name)
            if inner is None and name in LINKS_OF_CLASSES:
                inner = attribute(error, name)
            if isinstance(inner, BaseException):
                causes.append(inner)
    for one in error.args[:8]:
        if isinstance(one, BaseException):
            causes.append(one)  # noqa: PERF401 (hardly ever)
    if form.retried:
        causes.extend(_last_attempt(getattr(error, "last_attempt", None)))
    return causes


def _last_attempt(future: object) -> list[BaseException]:
    inner = getattr(future, "_exception", None)
    return [inner] if isinstance(inner, BaseException) else []
