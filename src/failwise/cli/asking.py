"""Asking the person at the terminal whether a guessed repair may be applied."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.terminal import clean, say
from failwise.vocabulary.result import Language, Repair

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE: Final = 25
"""Seconds an answer is waited for, below what the runtime grants a callback."""
_SHOWN: Final = 200
_YES: Final = frozenset({"y", "yes", "是", "好"})


def can_ask() -> bool:
    """Somebody sits at both ends: the answer comes from a terminal, and the question is seen."""
    try:
        return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    except ValueError:  # one of them is closed
        return False


class Asker:
    """A `confirm` for `Runtime`: shows the difference, and takes only a plain yes for one."""

    def __init__(self, out: "Console", lang: Language) -> None:
        self._out, self._lang = out, lang

    def __call__(self, tool: str, repairs: tuple[Repair, ...]) -> bool:
        from rich.text import Text

        self._out.print(Text(clean(say(self._lang, "confirm_guess", tool=tool)), style="bold"))
        show_difference(self._out, repairs)
        _forget_typed()
        question = say(self._lang, "confirm_question", seconds=_PATIENCE)
        self._out.print(Text(question), end=" ")
        answer = _answer(_PATIENCE)
        if answer is None:
            self._out.print()
        return (answer or "").strip().casefold() in _YES


def show_difference(out: "Console", repairs: Iterable[Repair]) -> None:
    """Every edit: where, what stood there, what stands there now."""
    from rich.text import Text

    for repair in repairs:
        place = f"{repair.path or '/'}  {repair.kind} ({repair.grade})"
        out.print(Text(clean(place), style="cyan"))
        out.print(Text(f"- {_excerpt(repair.before)}", style="red"))
        out.print(Text(f"+ {_excerpt(repair.after)}", style="green"))


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return clean(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _forget_typed() -> None:
    """What was typed before the question is no answer to it."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _answer(seconds: float) -> str | None:
    """The next line typed; None when none came in time."""
    if sys.platform == "win32":
        return sys.stdin.readline()  # the runtime stops waiting by itself
    import select

    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.readline() if ready else None
