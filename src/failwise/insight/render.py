"""A report as tables for a terminal, in English or Chinese."""

import functools
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import TYPE_CHECKING

from failwise.insight.figures import Figures, Report, Share
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from rich.console import Console


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
    from rich.table import Table
    from rich.text import Text

    groups = tuple(groups)
    if not groups:
        return
    table = Table(words[column])
    for name in ("calls", "success", "first_try", "recovered", "degraded", "faults", "refusals"):
        table.add_column(words[name], justify="right")
    for name in ("amplification", "mean", "p50", "p90", "p99"):
        table.add_column(words.get(name, name), justify="right")
    for group in groups:
        table.add_row(
            Text(group.name),
            str(group.calls),
            _percent(group.success_rate),
            _percent(group.first_try_rate),
            _percent(group.recovered_rate),
            _percent(group.degraded_rate),
            str(group.faults),
            str(group.refusals),
            f"{group.amplification:.2f}",
            _duration(group.mean_ms),
            _duration(group.p50_ms),
            _duration(group.p90_ms),
            _duration(group.p99_ms),
        )
    console.print(table)


def _shares(
    console: "Console", words: Mapping[str, str], column: str, shares: Iterable[Share]
) -> None:
    from rich.table import Table
    from rich.text import Text

    shares = tuple(shares)
    if not shares:
        return
    table = Table(words[column])
    for name in ("failed", "share", "attempts", "cured"):
        table.add_column(words[name], justify="right")
    table.add_column(words["kind"])
    if column == "top":
        table.add_column(words["example"])
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
