"""A tolerant JSON parser: what models write instead of JSON, where it can be read in one way only.

Recursive descent in one pass, with an edit list: every departure from RFC 8259 is an edit with its
place, what stood there and what it was read as. Nothing is closed that was cut off inside a value,
and a slip with two readings raises `Malformed`.
"""

from typing import Any

from failwise.arguments.cursor import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMAS,
    OPEN_LIST,
    OPEN_OBJECT,
    Context,
)
from failwise.arguments.decode import Malformed, same
from failwise.arguments.scalars import MEMBER, NAME, QUOTES, Scalars


class Parser(Scalars):
    """Parses one value of `text` from `position` on; afterwards `position` is where it ended.

    `edits` are the departures made, `bare` the paths of words that stood without quotes,
    `spellings` the floats as they were written, `inner_quotes` whether quotes stood inside a text.
    `may_close`: an outermost object may lack its last brace. `names` are the outermost object's
    known keys: they tell where a closed object would have gone on.
    """

    # What is read

    def value(self, context: Context = "root") -> Any:
        """The value at `position`. Raises `Malformed`."""
        mark = self._next()
        if mark == "":
            raise self._malformed("cut_off")
        if mark in OPEN_OBJECT:
            return self._object()
        if mark in OPEN_LIST:
            return self._list(CLOSE_LIST)
        if mark == "(":
            return self._tuple()
        if mark in QUOTES:
            return self._string(context)
        if mark in "-+." or mark.isdigit():
            return self._number(context)
        return self._word(context)

    def call(self) -> dict[str, Any] | None:
        """The arguments of a call whose opening parenthesis stands at `position`: ``(a=1, b=2)``.

        One object in place of the named arguments counts as the arguments. None for ``()``.
        """
        self._enter("(")
        self.position += 1
        if self._next() == ")":
            self.position += 1
            self._leave()
            return None
        if self._peek() in OPEN_OBJECT:
            value: Any = self._object()
            self._skip()
            if self._peek() != ")":
                raise self._malformed("syntax")
            self.position += 1
            self._leave()
            return value if isinstance(value, dict) else None
        arguments: dict[str, Any] = {}
        while True:
            if self._next() == ")":
                break
            name = NAME.match(self.text, self.position)
            if name is None:
                raise self._malformed("syntax")
            self.position = name.end()
            self._skip()
            if self._peek() not in ("=", ":"):
                raise self._malformed("syntax")
            self.position += 1
            key = self._unescaped(name[0])
            self._path.append(key)
            self._member(arguments, key, self.value("argument"))
            self._path.pop()
            if self._next() == ")":
                break
            if self._peek() not in COMMAS or not self._peek():
                raise self._malformed("cut_off" if not self._peek() else "syntax")
            self._comma()
        self.position += 1
        self._leave()
        return arguments

    # Containers

    def _object(self) -> dict[str, Any]:
        self._bracket("{")
        self._enter("{")
        members: dict[str, Any] = {}
        mark = self._next()
        if mark and mark in OPEN_OBJECT:
            return self._doubled()
        if mark and mark in COMMAS:
            self._edit("extra_comma", mark, "")
            self.position += 1
        while True:
            mark = self._next()
            if mark == "":
                raise self._malformed("cut_off")
            if mark in CLOSE_OBJECT:
                self._bracket("}")
                break
            key = self._key()
            self._next()
            self._path.append(key)
            self._colon()
            self._member(members, key, self.value("member"))
            self._path.pop()
            if self._after_member(members, key):
                break
        self._leave()
        return members

    def _after_member(self, members: dict[str, Any], key: str) -> bool:
        """Past what follows a member; True when the object ends here."""
        mark = self._next()
        if mark == "":
            self._close(members[key])
            return True
        if mark in COMMAS:
            self._comma()
            mark = self._next()
            if mark and mark in COMMAS:
                self._edit("extra_comma", mark, "")
                self.position += 1
            elif mark and mark in CLOSE_OBJECT:
                self._edit("trailing_comma", ",", "")
            return False
        if mark in CLOSE_OBJECT:
            self._bracket("}")
            return True
        if mark in CLOSE_LIST:
            if "[" in self._open:
                self._edit("missing_brace", "", "}")
                return True
            following = self.text[self.position + 1 : self.position + 40].lstrip()[:1]
            if following and following in ",，}｝":
                self._edit("stray_bracket", mark, "")
                self.position += 1
                return self._after_member(members, key)
            raise self._malformed("syntax")
        if mark in QUOTES and MEMBER.match(self.text, self.position):
            self._edit("missing_comma", "", ",")
            return False
        raise self._malformed("syntax")

    def _doubled(self) -> dict[str, Any]:
        """``{{...}}``, or ``{ {...}``: one brace too many around an object."""
        start = self.position
        inner = self._object()
        self._edit("stray_brace", "{", "")
        self._skip()
        if self._peek() and self._peek() in CLOSE_OBJECT:
            self.position += 1
        elif len(self._open) > 1 or self._peek():
            raise self._malformed("syntax", start)
        self._leave()
        return inner

    def _close(self, last: Any) -> None:
        """The text ended after a member: only the last brace of the outermost object may lack."""
        # A number is known to have ended only where something follows it.
        ended = not isinstance(last, int | float) or isinstance(last, bool)
        ended = ended or self.text[-1:].isspace()
        nested = isinstance(last, dict) and any(key in self._names for key in last)
        if not self._may_close or len(self._open) > 1 or not ended or nested:
            raise self._malformed("cut_off")
        self._edit("missing_brace", "", "}")

    def _list(self, closers: str) -> list[Any]:
        self._bracket("[")
        self._enter("[")
        items: list[Any] = []
        while True:
            mark = self._next()
            if mark == "":
                raise self._malformed("cut_off")
            if mark in closers:
                self._bracket("]")
                break
            self._path.append(len(items))
            items.append(self.value("item"))
            self._path.pop()
            mark = self._next()
            if mark == "":
                raise self._malformed("cut_off")
            if mark in COMMAS:
                self._comma()
                mark = self._next()
                if mark and mark in closers:
                    self._edit("trailing_comma", ",", "")
            elif mark in CLOSE_OBJECT and "{" in self._open:
                self._edit("missing_bracket", "", "]")
                break
            elif (mark == '"' and isinstance(items[-1], str)) or (
                mark in OPEN_OBJECT and isinstance(items[-1], dict)
            ):
                self._edit("missing_comma", "", ",")
            elif mark not in closers:
                raise self._malformed("syntax")
        self._leave()
        return items

    def _tuple(self) -> list[Any]:
        """A Python tuple. One value in parentheses is an expression, and refused."""
        start = self.position
        self._enter("(")
        self.position += 1
        items: list[Any] = []
        comma = False
        while True:
            if self._next() == ")":
                break
            self._path.append(len(items))
            items.append(self.value("item"))
            self._path.pop()
            if self._next() == ",":
                comma = True
                self.position += 1
            elif self._peek() != ")":
                raise self._malformed("syntax")
        if items and not comma:
            raise self._malformed("syntax", start)
        self.position += 1
        self._leave()
        self._edit(
            "python_tuple", self.text[start : start + 20], items if len(items) < 10 else "[…]"
        )
        return items

    def _member(self, members: dict[str, Any], key: str, value: Any) -> None:
        if key in members:
            if not same(members[key], value):
                raise self._malformed("duplicate_key")
            self._edit("duplicate_key", key, "")
        members[key] = value


def parse(text: str, *, may_close: bool = False) -> Any:
    """The one value that the whole text is, read tolerantly.

    Raises `Malformed`.
    """
    parser = Parser(text, may_close=may_close)
    value = parser.value()
    if text[parser.position :].strip():
        raise Malformed("syntax", parser.position)
    return value
