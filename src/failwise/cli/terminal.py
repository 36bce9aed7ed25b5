"""What every command shares: language, words, the console, JSON out."""

import argparse
import functools
import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from failwise.vocabulary import documents

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from failwise.vocabulary.result import Language

_PIPED_WIDTH = 160
_LOCALE = ("FAILWISE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


def add_common(
    parser: argparse.ArgumentParser, *, json_help: str = "print JSON", nested: bool = False
) -> None:
    """The options that every command has: ``--json`` and ``--lang``.

    `nested`: below a command that has them too, so that they may stand before or after its name.
    """
    default = argparse.SUPPRESS if nested else None
    parser.add_argument("--json", action="store_true", default=default or False, help=json_help)
    parser.add_argument(
        "--lang", choices=("en", "zh"), default=default, help="language of what people read"
    )


def language(given: str | None) -> "Language":
    """The language to speak: as given, else the first of FAILWISE_LANG and the locale that is set."""
    found = given or next(filter(None, map(os.environ.get, _LOCALE)), "")
    return "zh" if found.lower().startswith("zh") else "en"


@functools.cache
def _all_words() -> Mapping[str, Mapping[str, str]]:
    return documents.read("failwise.cli", "words.toml")[1]


def say(lang: "Language", sentence: str, /, **facts: object) -> str:
    """A sentence of ``words.toml``, filled in."""
    return _all_words()[lang][sentence].format(**facts)


def named(lang: "Language", kind: str, value: str) -> str:
    """What a word of a closed vocabulary (``effect``, ``retry``, ...) is called; itself if unknown."""
    return _all_words()[lang].get(f"{kind}_{value}", value)


def console() -> "Console":
    """Where people read. Not a terminal: 160 columns, no colours."""
    made = _console_type()(highlight=False, emoji=False, markup=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _PIPED_WIDTH
    return made


@functools.cache
def _console_type() -> "type[Console]":
    """rich's console, which leaves it to the command what a broken pipe means."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return _Console


def facts(rows: Iterable[tuple[str, object]]) -> "Table":
    """Names and values, one a line; what has no value is left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None and value != "":
            table.add_row(Text(name), value if isinstance(value, Text) else Text(clean(str(value))))
    return table


def table(*columns: str, right: Collection[int] = (), whole: Collection[int] = (0,)) -> "Table":
    """A table with these headings; nothing is cut off.

    The columns at the places `right` are aligned right, those at `whole` never broken.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        made.add_column(
            name,
            justify="right" if place in right else "left",
            overflow="fold",
            no_wrap=place in whole,
        )
    return made


def clean(text: str) -> str:
    """Text of others as it may be shown: no control characters, which could steer the terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


_LINE_ENDS = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"})
"""What JSON allows inside a text, but many readers take for the end of a line."""


_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


def json_text(data: Any) -> str:
    """A JSON value without an end of a line in it, whoever splits the lines."""
    if type(data) is int:  # as most ids are: an encoder is made anew for each value
        return str(data)
    text = _encode(data)
    return text if text.isascii() else text.translate(_LINE_ENDS)


def json_line(data: Any) -> str:
    """One JSON value on one line, with its end."""
    return f"{json_text(data)}\n"


def print_json(data: Any) -> None:
    """One JSON value on one line, at once."""
    sys.stdout.write(json_line(data))
    sys.stdout.flush()
