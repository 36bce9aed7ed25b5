"""A glance at what a tool gave back: is it plainly good? Most answers are, and need no more."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from failwise.classify.marks import Marks

_SCALARS: Final = frozenset({type(None), bool, int, float, bytes})
"""Values that cannot hold a failure."""
_HOLDING: Final = frozenset({dict, list, tuple})
_TEXT: Final = 20_000
"""A longer text is no glance any more."""


def plainly_good(value: Any) -> bool:
    """Certainly a success at a glance: nothing at the root that could speak of a failure.

    False means only that it must be looked at.
    """
    kind = value.__class__
    if kind in _SCALARS:
        return True
    if kind is str:
        return len(value) <= _TEXT and (_is_content or _known_texts())(value)
    if kind not in _HOLDING:
        return False
    marks = _marks or _known_marks()
    return marks.none_in(value) if kind is dict else marks.none_in_any(value)


_marks: "Marks | None" = None
_is_content: "Callable[[str], bool] | None" = None


def _known_marks() -> "Marks":
    """Imported by whoever first gives back data."""
    global _marks  # noqa: PLW0603 - an import statement costs half of what a glance does
    from failwise.classify.marks import MARKS

    _marks = MARKS
    return MARKS


def _known_texts() -> "Callable[[str], bool]":
    """The same for texts."""
    global _is_content  # noqa: PLW0603
    from failwise.classify.texts import is_content

    _is_content = is_content
    return is_content
