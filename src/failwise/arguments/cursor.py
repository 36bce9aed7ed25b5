"""A place in a text that is read tolerantly: white space, delimiters, and the list of edits."""

import re
import string
from collections.abc import Collection
from typing import Any, Literal

from failwise.arguments.decode import MAXIMUM_DEPTH, Malformed
from failwise.arguments.validators import pointer
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair

Context = Literal["root", "key", "member", "item", "argument"]
"""Where a value stands: what may follow it depends on that."""

EDITS = 1000
"""Edits made to one text; one that needs more is refused."""

_SPACE = re.compile(r"[ \t\r\n]*")
_SOLID = frozenset("{}[]()\"',:=-0123456789") | frozenset(string.ascii_letters)
"""What certainly is neither white space nor the start of a comment."""
_COMMENT_LENGTH = 10_000
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*")
COLONS, COMMAS = ":：", ",，"
OPEN_OBJECT, CLOSE_OBJECT = "{｛", "}｝"
OPEN_LIST, CLOSE_LIST = "[［", "]］"


class Cursor:
    """Where reading stands in a text, which brackets are open, and which edits were made."""

    def __init__(
        self,
        text: str,
        position: int = 0,
        *,
        may_close: bool = True,
        names: Collection[str] = (),
    ) -> None:
        self.text, self.position = text, position
        self.edits: list[Repair] = []
        self.bare: set[str] = set()
        self.spellings: dict[float, set[str]] = {}
        self.inner_quotes = False
        self._may_close, self._names = may_close, names
        self._path: list[str | int] = []
        self._open: list[str] = []

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _next(self) -> str:
        """The mark that stands after white space and comments; afterwards `position` is there."""
        mark = self.text[self.position : self.position + 1]
        if mark == " ":
            self.position += 1
            mark = self.text[self.position : self.position + 1]
        if mark in _SOLID:
            return mark
        self._skip()
        return self.text[self.position : self.position + 1]

    def _skip(self) -> None:
        """Past white space and comments."""
        while True:
            match = _SPACE.match(self.text, self.position)
            if match is not None:
                self.position = match.end()
            mark = self._peek()
            if mark and (mark.isspace() or mark in "\ufeff\u200b"):
                self._edit("space", mark, " ")
                self.position += 1
            elif mark and mark in "/#" and (end := self._comment_end()):
                self._edit("comment", self.text[self.position : min(end, self.position + 60)], "")
                self.position = end
            else:
                return

    def _comment_end(self) -> int:
        """Just past the comment that begins here; 0 where none does."""
        if self.text.startswith("/*", self.position):
            end = self.text.find("*/", self.position + 2, self.position + _COMMENT_LENGTH)
            return end + 2 if end >= 0 else 0
        match = _COMMENT.match(self.text, self.position)
        return match.end() if match else 0

    def _colon(self) -> None:
        mark = self._peek()
        if not mark or mark not in COLONS + "=":
            raise self._malformed("syntax" if mark else "cut_off")
        if mark != ":":
            self._edit("delimiter", mark, ":")
        self.position += 1

    def _unescaped(self, name: str) -> str:
        """Markdown writes an underscore in a name as ``\\_``."""
        if "\\" not in name:
            return name
        plain = name.replace("\\_", "_")
        self._edit("escape", name, plain)
        return plain

    def _comma(self) -> None:
        if self._peek() != ",":
            self._edit("delimiter", self._peek(), ",")
        self.position += 1

    def _bracket(self, due: str) -> None:
        if self._peek() != due:
            self._edit("delimiter", self._peek(), due)
        self.position += 1

    def _enter(self, mark: str) -> None:
        if len(self._open) >= MAXIMUM_DEPTH:
            raise self._malformed("too_deep")
        self._open.append(mark)

    def _leave(self) -> None:
        self._open.pop()

    def _edit(self, kind: str, before: Any, after: Any) -> None:
        if len(self.edits) >= EDITS:
            raise self._malformed("ambiguous")
        place = pointer(self._path) if self._path else ""
        self.edits.append(Repair(kind, place, before, after, Grade.LOSSLESS))

    def _malformed(self, reason: str, position: int | None = None) -> Malformed:
        place = self.position if position is None else position
        return Malformed(reason, place, self.text[place : place + 20])
