"""A report as tables for a terminal, in English or Chinese."""

import functools
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import TYPE_CHECKING

from failwise.insight.figures import Figures, Report, Share
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@functools.cache
def _words(lang: Language) -> Mapping[str, str]:
    import tomllib

    text = resources.files("failwise.insight").joinpath("words.toml").read_text("utf-8")
    words: Mapping[str, str] = tomllib.loads(text)[lang]
    return words


def render(report: Report, console: "Console", *, lang: Language = "en") -> None:
    """Print a report. What was recorded is shown as text: nothing in it is read as markup."""
    from rich.text import Text

    words = _words(lang)
    console.rule(Text(words["title"]))
    if not report.total.calls:
        console.print(Text(words["empty"]))
        return
    _summary(report, console, words)
    if report.drag is not None:
        console.print(
            Text(
                words["drag"].format(
                    tool=report.drag.tool,
                    failures=report.drag.failures,
                    share=_percent(report.drag.share),
                    without=_percent(report.drag.success_rate_without),
                )
            )
        )
    _shares(console, words, "top", report.top_errors)
    for column, groups in (("tool", report.tools), ("hour", report.hours), ("day", report.days)):
        _groups(console, words, column, groups)
    for column, shares in (
        ("category", report.categories),
        ("code", report.codes),
        ("provider", report.providers),
    ):
        _shares(console, words, column, shares)
    if report.total.refusals:
        console.print(Text(words["refusals_note"]), style="dim")


def _summary(report: Report, console: "Console", words: Mapping[str, str]) -> None:
    from rich.table import Table
    from rich.text import Text

    total, rounds = report.total, report.corrections
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(justify="right", style="dim")
    for name, value, note in (
        ("calls", str(total.calls), ""),
        ("success", _percent(total.success_rate), str(total.successes)),
        ("first_try", _percent(total.first_try_rate), str(total.first_try)),
        ("recovered", _percent(total.recovered_rate), str(total.recovered)),
        ("degraded", _percent(total.degraded_rate), str(total.degraded)),
        ("faults", _percent(total.fault_rate), str(total.faults)),
        ("refusals", _percent(total.refusal_rate), str(total.refusals)),
        ("retry_rate", _percent(total.retry_rate), str(total.retried)),
        ("amplification", f"{total.amplification:.2f}", str(total.requests)),
        ("wasted", _percent(total.wasted_rate), str(total.wasted)),
        ("repaired", str(total.repaired), ""),
        ("duplicates", str(report.duplicates_prevented), ""),
        ("open_effects", str(report.open_effects), ""),
        ("mean", _duration(total.mean_ms), ""),
        ("p50", _duration(total.p50_ms), ""),
        ("p90", _duration(total.p90_ms), ""),
        ("p99", _duration(total.p99_ms), ""),
    ):
        table.add_row(words.get(name, name), value, note)
    console.print(table)
    if rounds.corrected or rounds.open:
        line = words["rounds_value"].format(
            mean=f"{rounds.mean_rounds:.1f}", corrected=rounds.corrected, open=rounds.open
        )
        console.print(Text(f"{words['rounds']}: {line}"))


def _groups(
    console: "Console", words: Mapping[str, str], column: str, groups: Iterable[Figures]
) -> None:
    from rich.text import Text

    groups = tuple(groups)
    if not groups:
        return
    table = _table(words[column])
    shown = [(name, show) for name, width, show in _COLUMNS if console.width >= width]
    for name, _ in shown:
        table.add_column(words.get(name, name), justify="right", overflow="fold")
    for group in groups:
        table.add_row(Text(group.name), *(show(group) for _, show in shown))
    console.print(table)


def _shares(
    console: "Console", words: Mapping[str, str], column: str, shares: Iterable[Share]
) -> None:
    from rich.text import Text

    shares = tuple(shares)
    if not shares:
        return
    table = _table(words[column])
    for name in ("failed", "share", "attempts", "cured"):
        table.add_column(words[name], justify="right", no_wrap=True)
    table.add_column(words["kind"], no_wrap=True)
    if column == "top":
        table.expand = True
        table.add_column(words["example"], ratio=1, no_wrap=True, overflow="ellipsis")
    for share in shares:
        row = [
            Text(share.name),
            Text(str(share.failures)),
            Text(_percent(share.share)),
            Text(str(share.attempts)),
            Text(str(share.cured)),
            Text(words["refusal" if share.refusal else "fault"]),
        ]
        if column == "top":
            row.append(Text(share.example))
        table.add_row(*row)
    console.print(table)


def _table(name: str) -> "Table":
    """A table by name: where it is narrow, other columns give way before the names do."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(name, no_wrap=True)
    return table


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _duration(milliseconds: float) -> str:
    if milliseconds < 1000:
        return f"{milliseconds:.3g} ms"
    return (
        f"{milliseconds / 1000:.3g} s"
        if milliseconds < 1_000_000
        else f"{milliseconds / 1000:.0f} s"
    )


_COLUMNS: tuple[tuple[str, int, Callable[[Figures], str]], ...] = (
    ("calls", 0, lambda group: str(group.calls)),
    ("success", 0, lambda group: _percent(group.success_rate)),
    ("first_try", 100, lambda group: _percent(group.first_try_rate)),
    ("recovered", 110, lambda group: _percent(group.recovered_rate)),
    ("degraded", 120, lambda group: _percent(group.degraded_rate)),
    ("faults", 0, lambda group: str(group.faults)),
    ("refusals", 0, lambda group: str(group.refusals)),
    ("amplification", 0, lambda group: f"{group.amplification:.2f}"),
    ("mean", 140, lambda group: _duration(group.mean_ms)),
    ("p50", 0, lambda group: _duration(group.p50_ms)),
    ("p90", 140, lambda group: _duration(group.p90_ms)),
    ("p99", 0, lambda group: _duration(group.p99_ms)),
)
"""Figures of a group: name, console width from which they are shown, and how."""
