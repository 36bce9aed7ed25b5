"""Paragraphs for a terminal. Text with Chinese in it may break between any two characters.

Rich breaks at spaces only. No line begins with closing punctuation or ends with an opening one
(the rule of GB/T 15834 and of every typesetter).
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = "\u2e80-\uffef"
_TOKEN = re.compile(
    rf"\s+|[“（《]*(?:[{_WIDE}]|[^\s{_WIDE}“”]+)[，。：；、！？）》”…]*|.", re.DOTALL
)
_CHINESE = re.compile(rf"[{_WIDE}]")


def paragraph(console: "Console", text: str, indent: int = 1, style: str = "") -> None:
    """Print a text with `indent` columns before it and one after."""
    from rich.padding import Padding
    from rich.text import Text

    body = Text(folded(text, console.width - indent - 1), style=style)
    console.print(Padding(body, (0, 1, 0, indent), expand=False))


def folded(text: str, width: int) -> str:
    """The text in lines of at most `width` columns; as it is where no Chinese stands in it."""
    if not _CHINESE.search(text):
        return text
    return "\n".join(_line(line, max(width, 8)) for line in text.split("\n"))


def _line(text: str, width: int) -> str:
    from rich.cells import cell_len

    lines, line, used = [], "", 0
    for token in _TOKEN.findall(text):
        size = cell_len(token)
        if line and used + size > width:
            lines.append(line.rstrip())
            line, used = "", 0
            if token.isspace():
                continue
        line += token
        used += size
    return "\n".join([*lines, line.rstrip()])
