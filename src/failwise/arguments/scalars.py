"""Keys, numbers, words and texts as models write them."""

import re
from typing import Any

from failwise.arguments.cursor import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMAS,
    Context,
    Cursor,
)
from failwise.arguments.decode import read_float
from failwise.arguments.validators import pointer

_INNER_QUOTES = 100
_WIDE_SPACE = re.compile(r"[\s\ufeff\u200b]+")
_PLAIN = {quote: re.compile(rf"{quote}([^\"'\\\x00-\x1f]*){quote}") for quote in "\"'"}
_NUMBER = re.compile(r"[-+]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_WORD = re.compile(r"[^\W\d][\w$]*(?:[.-][\w$]+)*")
NAME = re.compile(r"[^\W\d$](?:[\w$]|\\_|-(?=\w))*|\$[\w$]+")
MEMBER = re.compile(
    r"""\s*(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|“[^”\n]{0,200}”|[^\W\d][\w$-]{0,80})\s*[:：=]"""
)
_ARGUMENT = re.compile(r"\s*[^\W\d](?:\w|\\_){0,80}\s*[=:]")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_LITERALS = {"true": True, "false": False, "null": None, "none": None}
_DOUBTFUL = {"undefined", "tru", "fals", "nul"}
"""Words without quotes that hardly stand for themselves."""
_NOT_FINITE = {"nan", "infinity", "inf"}
QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”“",
    "”": "”",
    "‘": "’",
    "＂": "＂",
    "＇": "＇",
}
_CHUNKS = {quote: re.compile(rf"[^\\{closers}]*") for quote, closers in QUOTES.items()}
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_DAMAGED = re.compile(
    r"""\s*(?:[:：]|[+]\s*["'/]|[,，]\s*(?:["'“]|["'“]?[\w$ .-]{1,80}["'”]?\s{0,20}[:：]))"""
)
"""After a quote inside a text: as if the text had ended here, and a key, a comma, a sum went on."""
_OPENS_KEY = re.compile(r"""(["'])[^"'\n]{0,200}\1\s{0,20}[:：]""")
"""A quote inside a text with which a key may begin."""


class Scalars(Cursor):
    """Reads what is no container at the cursor."""

    def _key(self) -> str:
        mark = self._peek()
        if mark in QUOTES:
            return self._string("key")
        word = NAME.match(self.text, self.position)
        if word is None:
            raise self._malformed("syntax")
        self.position = word.end()
        self._edit("unquoted_key", word[0], word[0])
        return self._unescaped(word[0])

    def _number(self, context: Context) -> int | float:
        match = _NUMBER.match(self.text, self.position)
        if match is None:
            raise self._malformed("syntax")
        written, end = match[0], match.end()
        following = self.text[end : end + 1]
        if following and (following.isalnum() or following in "_.%'\""):
            raise self._malformed("syntax", end)
        if not following and context != "root":
            raise self._malformed("cut_off", end)
        strict = _JSON_NUMBER.fullmatch(written)
        text = written
        if strict is None:
            text = written.lstrip("+").replace("_", "")
            if re.match(r"-?0\d", text):
                raise self._malformed("ambiguous")
            text = re.sub(r"^(-?)\.", r"\g<1>0.", text)
            text = re.sub(r"\.(?=[eE]|$)", ".0", text)
            self._edit("number_form", written, text)
        self.position = end
        if re.search(r"[.eE]", text) is None:
            try:
                return int(text)
            except ValueError:
                raise self._malformed("not_finite") from None
        value = read_float(text)
        self.spellings.setdefault(value, set()).add(written)
        return value

    def _word(self, context: Context) -> Any:
        match = _WORD.match(self.text, self.position)
        if match is None:
            raise self._malformed("syntax")
        word, start, end = match[0], self.position, match.end()
        lowered = word.casefold()
        if lowered in _LITERALS:
            self.position = end
            value = _LITERALS[lowered]
            if word not in ("true", "false", "null"):
                self._edit("python_literal", word, value)
            return value
        if lowered in _NOT_FINITE:
            raise self._malformed("not_finite")
        self.position = end
        self._skip()
        following = self._peek()
        if not following:
            raise self._malformed("cut_off")
        if (
            context not in ("member", "item")
            or following not in ",，}｝]］"
            or lowered in _DOUBTFUL
        ):
            raise self._malformed("ambiguous", start)
        self._edit("unquoted_text", word, word)
        self.bare.add(pointer(self._path))
        return word

    def _string(self, context: Context) -> str:
        text, start = self.text, self.position
        quote = text[start]
        plain = _PLAIN.get(quote)
        match = plain.match(text, start) if plain else None
        if match is not None and self._closes(match.end(), context):
            self.position = match.end()
            if quote != '"':
                self._edit("quotes", match[0][:60], match[1][:60])
            return match[1]
        chunk, closers = _CHUNKS[quote], QUOTES[quote]
        parts: list[str] = []
        inner, letters, kept, position = 0, False, False, start + 1
        while True:
            run = chunk.match(text, position)
            assert run is not None
            parts.append(run[0])
            position = run.end()
            mark = text[position : position + 1]
            if not mark:
                raise self._malformed("cut_off", position)
            if mark != "\\":
                position += 1
                if self._closes(position, context):
                    break
                inner += 1
                if context in ("key", "item") or inner > _INNER_QUOTES:
                    raise self._malformed("ambiguous", position)
                if _DAMAGED.match(text, position) or _OPENS_KEY.match(text, position - 1):
                    raise self._malformed("ambiguous", position)
                if run[0].rstrip()[-1:] == "+":
                    raise self._malformed("ambiguous", position)
                parts.append(mark)
                continue
            following = text[position + 1 : position + 2]
            if following == "u" and _HEX.match(text, position + 2):
                parts.append(chr(int(text[position + 2 : position + 6], 16)))
                position += 6
            elif following in _ESCAPES and following:
                letters = letters or following.isalpha()
                parts.append(_ESCAPES[following])
                position += 2
            elif following and following in closers + "'":
                parts.append(following)
                position += 2
                self._edit("escape", "\\" + following, following)
            elif following and following.isprintable() and following not in "xuU_":
                kept = True
                parts.append("\\" + following)
                position += 2
                self._edit("escape", "\\" + following, "\\\\" + following)
            else:
                raise self._malformed("ambiguous", position)
        if (kept and letters) or (inner == 1 and not parts[0]):
            raise self._malformed("ambiguous", start)
        value = "".join(parts)
        self.position = position
        self._check_string(value, quote, inner, start)
        return _joined(value)

    def _check_string(self, value: str, quote: str, inner: int, start: int) -> None:
        excerpt = self.text[start : min(self.position, start + 60)]
        if quote != '"':
            self._edit("quotes", excerpt, value[:60])
        if inner:
            self.inner_quotes = True
            self._edit("inner_quote", excerpt, value[:60])
        if any(letter < " " for letter in self.text[start : self.position]):
            self._edit("raw_control", excerpt, value[:60])
        try:
            _joined(value).encode("utf-8")
        except UnicodeEncodeError:
            raise self._malformed("surrogate", start) from None

    def _closes(self, position: int, context: Context) -> bool:
        """Whether a quote that ends at `position` closes its text, by what follows it."""
        text = self.text
        match = _WIDE_SPACE.match(text, position)
        after = match.end() if match else position
        mark = text[after : after + 1]
        if not mark or context == "root":
            return not mark or context == "root"
        if context == "key":
            return mark in ":：="
        if mark == "#" or text.startswith(("//", "/*"), after):
            return True
        if context == "item":
            return mark in ",，]］)" or (mark in '"}｝' and (mark == '"' or "{" in self._open))
        if context == "argument":
            return mark == ")" or (
                mark in COMMAS
                and (
                    _ARGUMENT.match(text, after + 1) is not None
                    or text[after + 1 : after + 40].lstrip()[:1] == ")"
                )
            )
        if mark in COMMAS:
            rest = _WIDE_SPACE.match(text, after + 1)
            start = rest.end() if rest else after + 1
            then = text[start : start + 2]
            return (
                then[:1] in ("", "}", "｝", "#", ",", "，")
                or then in ("//", "/*")
                or MEMBER.match(text, after + 1) is not None
            )
        if mark in CLOSE_OBJECT:
            return True
        if mark in CLOSE_LIST or mark == ")":
            return "[" in self._open or "(" in self._open
        return mark in QUOTES and MEMBER.match(text, after) is not None


def _joined(value: str) -> str:
    """Surrogate pairs that came as two escapes, joined to one character; halves stay halves."""
    if not any("\ud800" <= letter <= "\udfff" for letter in value):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
