"""Reports and comparisons as tables for a terminal, in English or Chinese."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from failwise.insight.compare import Comparison
from failwise.insight.figures import Report
from failwise.insight.tables import (
    ROWS,
    Paragraph,
    Table,
    comparison_parts,
    report_parts,
    report_words,
)
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from rich.console import Console


def render(
    report: Report, console: "Console", *, lang: Language = "en", rows: int | None = ROWS
) -> None:
    """Print a report, at most so many `rows` of each breakdown (None: all). What was recorded is shown
    as text: nothing in it is read as markup."""
    _print(report_words(lang)["title"], report_parts(report, lang, rows=rows), console)


def render_comparison(found: Comparison, console: "Console", *, lang: Language = "en") -> None:
    """Print a comparison."""
    _print(report_words(lang)["comparison_title"], comparison_parts(found, lang), console)


def _print(title: str, parts: "Iterable[Table | Paragraph]", console: "Console") -> None:
    from rich.text import Text

    console.rule(Text(title))
    for part in parts:
        if isinstance(part, Paragraph):
            style = "bold" if part.loud else "dim" if part.faint else ""
            console.print(Text(plain(part.text), style=style))
        else:
            _print_table(part, console)


def _print_table(table: Table, console: "Console") -> None:
    """Where it is narrow, other columns give way before the names do."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = [n for n, column in enumerate(table.columns) if console.width >= column.width]
    made = RichTable(
        box=box.SIMPLE_HEAD if table.headed else None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_header=table.headed,
        expand=any(table.columns[n].cut for n in shown),
    )
    if table.title:
        console.print()
        console.print(Text(table.title, style="bold"))
    for n in shown:
        column = table.columns[n]
        made.add_column(
            column.name,
            style="" if table.headed or n else "bold",
            justify="right" if column.right else "left",
            no_wrap=column.cut or n == shown[0],
            overflow="ellipsis" if column.cut else "fold",
            ratio=1 if column.cut else None,
        )
    for row in table.rows:
        made.add_row(*(Text(plain(row[n])) for n in shown))
    console.print(made)


def plain(text: str) -> str:
    """No control characters, which could steer the terminal; the text is that of others."""
    return "".join(
        character if character.isprintable() or character == "\n" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )
