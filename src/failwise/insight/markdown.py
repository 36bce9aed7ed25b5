"""Reports and comparisons as Markdown, for a ticket or a page."""

import re
from collections.abc import Iterable
from typing import Final

from failwise.insight.compare import Comparison
from failwise.insight.figures import Report
from failwise.insight.render import plain
from failwise.insight.tables import (
    ROWS,
    Paragraph,
    Table,
    comparison_parts,
    report_parts,
    report_words,
)
from failwise.vocabulary.result import Language

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#|~&!])")
"""What Markdown would read; ``-`` and ``+`` only begin a list at the start of a line, which a cell is
not and a paragraph of ours never has."""


def report_markdown(report: Report, lang: Language = "en", *, rows: int | None = ROWS) -> str:
    """A report as Markdown, at most so many `rows` of each breakdown (None: all). What was recorded
    stays text: none of it becomes a link or markup."""
    return _text(report_words(lang)["title"], report_parts(report, lang, rows=rows))


def comparison_markdown(found: Comparison, lang: Language = "en") -> str:
    """A comparison as Markdown."""
    return _text(report_words(lang)["comparison_title"], comparison_parts(found, lang))


def _text(title: str, parts: "Iterable[Table | Paragraph]") -> str:
    blocks = [f"# {escaped(title)}"]
    for part in parts:
        if isinstance(part, Table):
            if part.title:
                blocks.append(f"## {escaped(part.title)}")
            blocks.append(_table(part))
            continue
        lines = [escaped(line) for line in part.text.splitlines()]
        mark = "**" if part.loud else "_" if part.faint else ""
        blocks.append("  \n".join(f"{mark}{line}{mark}" for line in lines))
    return "\n\n".join(blocks) + "\n"


def _table(table: Table) -> str:
    rows = [[escaped(column.name) if table.headed else "" for column in table.columns]]
    rows.append(["---:" if column.right else ":---" for column in table.columns])
    rows += [[escaped(cell) for cell in row] for row in table.rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", plain(text).replace("\n", " "))
