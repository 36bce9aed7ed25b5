"""What a report or a comparison shows, as tables of words in English or Chinese.

One content for all that show it: a terminal (`render`), Markdown (`markdown`).
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from failwise.insight.compare import Change, Comparison
from failwise.insight.figures import ArgumentErrors, Figures, Report, Share
from failwise.insight.intervals import Interval
from failwise.insight.render_clusters import cluster_words, moment
from failwise.vocabulary import documents
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

_CLUSTERS: Final = 5
_MESSAGE: Final = 120


@record
class Column:
    """A column: its heading, and the width of the whole table from which it is shown. `right`: numbers.
    `cut`: long text gives way where it is narrow."""

    name: str
    width: int = 0
    right: bool = True
    cut: bool = False


@record
class Table:
    """A table with a heading of its own in the first column, or none; `title` stands above where it
    says more. `rows` hold one text a column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    headed: bool = True


@record
class Paragraph:
    """Words between tables. `loud` is the answer itself, `faint` a note."""

    text: str
    loud: bool = False
    faint: bool = False


@functools.cache
def report_words(lang: Language) -> Mapping[str, str]:
    """The words of reports, comparisons and charts in one language."""
    words: Mapping[str, str] = documents.read("failwise.insight", "words.toml")[1][lang]
    return words


ROWS: Final = 30
"""Rows of a breakdown that are shown beside others; of one that was asked for all are."""


def report_parts(
    report: Report, lang: Language = "en", *, rows: int | None = ROWS
) -> Iterator[Table | Paragraph]:
    """A report from top to bottom: the verdict, the largest clusters, the figures, the breakdowns, of
    each at most so many `rows` (None: all)."""
    say = report_words(lang)
    if not report.total.calls:
        yield Paragraph(say["empty"])
        return
    if report.where:
        yield Paragraph(say["where"].format(where=_where(report.where)), faint=True)
    if report.verdict is not None and report.verdict.parts:
        yield Paragraph(report.verdict.text(lang), loud=True)
    if report.clusters:
        yield _clusters(report, lang)
    yield Table(
        (Column(say["figure"], right=False), Column(""), Column("")),
        tuple(_summary(report, say)),
        headed=False,
    )
    rounds = report.corrections
    if rounds.corrected or rounds.open:
        line = say["rounds_value"].format(
            mean=f"{rounds.mean_rounds:.1f}", corrected=rounds.corrected, open=rounds.open
        )
        yield Paragraph(f"{say['rounds']}{say['colon']}{line}")
    yield Table(
        (Column(say["worth"], right=False), Column(""), Column("", right=False)),
        tuple(_worth(report, say)),
        say["worth"],
        headed=False,
    )
    if report.drag is not None:
        yield Paragraph(
            say["drag"].format(
                tool=report.drag.tool,
                failures=report.drag.failures,
                share=percent(report.drag.share),
                without=percent(report.drag.success_rate_without),
            )
        )
    if report.top_errors:
        yield _shares(report.top_errors, "top", say, examples=True)
    for name, groups in (
        ("tool", report.tools),
        ("upstream", report.upstreams),
        ("model", report.models),
        ("hour", report.hours),
        ("day", report.days),
        ("run", report.runs),
    ):
        if groups:
            yield _groups(groups[:rows], name, say)
            yield from _left_out(groups, rows, name, say)
    for name, shares in (
        ("category", report.categories),
        ("code", report.codes),
        ("provider", report.providers),
    ):
        if shares:
            yield _shares(shares[:rows], name, say)
            yield from _left_out(shares, rows, name, say)
    for name, errors in (
        ("tool", report.argument_tools),
        ("parameters", report.argument_parameters),
    ):
        if any(one.wrong or one.refused or one.repaired for one in errors):
            yield _arguments(errors[:rows], name, say)
            yield from _left_out(errors, rows, "arguments", say)
    if report.total.refusals:
        yield Paragraph(say["refusals_note"], faint=True)


def comparison_parts(found: Comparison, lang: Language = "en") -> Iterator[Table | Paragraph]:
    """A comparison: what is beyond chance in one line, the totals, the breakdowns."""
    say = report_words(lang)
    yield Paragraph(
        say["compared"].format(
            before=_stretch(found.before, say),
            after=_stretch(found.after, say),
            calls_before=f"{found.calls_before:,}",
            calls=f"{found.calls:,}",
        )
    )
    if found.where:
        yield Paragraph(say["where"].format(where=_where(found.where)), faint=True)
    if not found.calls_before or not found.calls:
        yield Paragraph(say["nothing_to_compare"], loud=True)
        return
    worse = [one for one in found.beyond_chance if one.direction == "worse"]
    better = [one for one in found.beyond_chance if one.direction == "better"]
    if not worse and not better:
        yield Paragraph(say["nothing_beyond"], loud=True)
    for name, changes in (("are_worse", worse), ("are_better", better)):
        if changes:
            listed = say["and"].join(say.get(one.name, one.name) for one in changes[:8])
            yield Paragraph(say[name].format(names=listed), loud=True)
    yield _changes(found.total, say["figure"], say)
    for name, table in found.tables.items():
        if table:
            yield _changes(table, say["failures_by"].format(name=say[name]), say)
    yield Paragraph(say["confidence_note"].format(confidence=percent(found.confidence)), faint=True)


def _left_out(
    groups: Sequence[object], rows: int | None, name: str, say: Mapping[str, str]
) -> Iterator[Paragraph]:
    """How many rows are not shown, and how to see them."""
    if rows is not None and len(groups) > rows:
        yield Paragraph(say["left_out"].format(count=len(groups) - rows, name=name), faint=True)


def _summary(report: Report, say: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    total = report.total
    for name, value, note in (
        ("calls", f"{total.calls:,}", ""),
        ("success", percent(total.success_rate), f"{total.successes:,}"),
        ("first_try", percent(total.first_try_rate), f"{total.first_try:,}"),
        ("recovered", percent(total.recovered_rate), f"{total.recovered:,}"),
        ("degraded", percent(total.degraded_rate), f"{total.degraded:,}"),
        ("faults", percent(total.fault_rate), f"{total.faults:,}"),
        ("refusals", percent(total.refusal_rate), f"{total.refusals:,}"),
        ("retry_rate", percent(total.retry_rate), f"{total.retried:,}"),
        ("amplification", f"{total.amplification:.2f}", f"{total.requests:,}"),
        ("mean", duration(total.mean_ms), ""),
        ("p50", duration(total.p50_ms), ""),
        ("p90", duration(total.p90_ms), ""),
        ("p99", duration(total.p99_ms), ""),
    ):
        yield say.get(name, name), value, note


def _worth(report: Report, say: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    worth, total = report.worth, report.total
    yield say["recovered_calls"], f"{worth.recovered:,}", say["recovered_note"]
    yield (
        say["cured_retries"],
        f"{worth.cured_retries:,}",
        say["wasted_note"].format(wasted=f"{worth.wasted:,}", rate=percent(total.wasted_rate)),
    )
    yield (
        say["waits_obeyed"],
        f"{worth.waits_obeyed:,}",
        say["waits_note"].format(told=f"{worth.told_waits:,}", early=f"{worth.early_requests:,}"),
    )
    states = say["and"].join(
        f"{say.get('prevented_' + state, state)} {count:,}"
        for state, count in worth.prevented.items()
    )
    yield say["duplicates"], f"{worth.duplicates_prevented:,}", states
    yield say["repaired"], f"{worth.repaired:,}", ""
    yield (
        say["saved_tokens"],
        f"{worth.saved_tokens:,}",
        say["tokens_note"].format(body=f"{worth.body_tokens:,}", fed=f"{worth.fed_tokens:,}"),
    )
    yield say["open_effects"], f"{worth.open_effects:,}", ""


def _clusters(report: Report, lang: Language) -> Table:
    say = cluster_words(lang)
    columns = (
        Column(say["cluster"], right=False),
        Column(say["count"]),
        Column(say["share"]),
        Column(say["code"], right=False),
        Column(say["turn"], 110, right=False),
        Column(say["where"], 90, right=False, cut=True),
        Column(say["what"], right=False, cut=True),
    )
    rows = []
    for one in report.clusters[:_CLUSTERS]:
        names = ", ".join(name for name, _ in (one.upstreams or one.tools)[:3])
        what = (one.name or one.template)[:_MESSAGE]
        turn = say[f"turn_{one.turn}"]
        rows.append((one.id, f"{one.count:,}", percent(one.share), one.code, turn, names, what))
    return Table(columns, tuple(rows))


def _groups(groups: Sequence[Figures], name: str, say: Mapping[str, str]) -> Table:
    columns = [Column(say[name], right=False)]
    columns += [Column(say.get(one, one), width) for one, width, _ in _FIGURES]
    rows = tuple((group.name, *(show(group) for _, _, show in _FIGURES)) for group in groups)
    return Table(tuple(columns), rows)


def _shares(
    shares: Sequence[Share], name: str, say: Mapping[str, str], *, examples: bool = False
) -> Table:
    columns = [Column(say[name], right=False)]
    columns += [Column(say[one]) for one in ("failed", "share", "attempts", "cured")]
    columns.append(Column(say["kind"], right=False))
    if examples:
        columns.append(Column(say["example"], right=False, cut=True))
    rows = []
    for share in shares:
        row = [share.name, f"{share.failures:,}", percent(share.share)]
        row += [f"{share.attempts:,}", f"{share.cured:,}"]
        row.append(say["refusal" if share.refusal else "fault"])
        if examples:
            row.append(share.example[:_MESSAGE])
        rows.append(tuple(row))
    return Table(tuple(columns), tuple(rows))


def _arguments(errors: Sequence[ArgumentErrors], name: str, say: Mapping[str, str]) -> Table:
    columns = [Column(say[name], right=False)]
    columns += [Column(say[one]) for one in ("calls", "error_rate", "wrong", "refused", "repaired")]
    rows = tuple(
        (
            one.name,
            f"{one.calls:,}",
            percent(one.error_rate),
            f"{one.wrong:,}",
            f"{one.refused:,}",
            f"{one.repaired:,}",
        )
        for one in errors
    )
    return Table(tuple(columns), rows, say["argument_errors"])


def _changes(changes: Sequence[Change], heading: str, say: Mapping[str, str]) -> Table:
    columns = (
        Column(heading, right=False),
        Column(say["before"]),
        Column(say["after"]),
        Column(say["difference"]),
        Column(say["interval"], 100),
        Column(say["of_calls"], 120),
        Column(say["finding"], right=False),
    )
    rows = []
    for one in changes:
        show = _shown(one)
        finding = (
            say["too_few"]
            if one.direction is None and one.interval is None and one.part is not None
            else say["not_judged"]
            if one.direction is None and not one.beyond_chance
            else say["changed"]
            if one.direction is None
            else say[one.direction]
        )
        rows.append(
            (
                say.get(one.name, one.name),
                show(one.before),
                show(one.after),
                _signed(one.difference, show, points=one.part is not None),
                _interval(one, show),
                f"{one.whole_before:,} / {one.whole:,}",
                finding,
            )
        )
    return Table(columns, tuple(rows))


def _shown(change: Change) -> Callable[[float], str]:
    if change.part is not None:
        return percent
    return duration if change.name.endswith("_ms") else (lambda value: f"{value:.3f}")


def _signed(value: float, show: Callable[[float], str], *, points: bool) -> str:
    if points:
        return f"{value * 100:+.1f}"
    return ("+" if value >= 0 else "−") + show(abs(value))


def _interval(change: Change, show: Callable[[float], str]) -> str:
    points = change.part is not None
    if change.interval is not None:
        low, high = change.interval.low, change.interval.high
        return f"{_signed(low, show, points=points)} … {_signed(high, show, points=points)}"
    sides = (change.interval_before, change.interval_after)
    if points or None in sides:
        return ""
    return " → ".join(
        f"{show(one.low)} … {show(one.high)}" for one in sides if isinstance(one, Interval)
    )


def _stretch(stretch: tuple[float | None, float | None], say: Mapping[str, str]) -> str:
    first, last = (moment(one) if one is not None else say["open_end"] for one in stretch)
    return f"{first} – {last}"


def _where(where: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} = {'|'.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in where.items()
    )


def percent(share: float) -> str:
    """``12.3 %``"""
    return f"{share * 100:.1f} %"


def duration(milliseconds: float) -> str:
    """``0.25 ms``, ``12.3 s``, in three figures."""
    if milliseconds < 1000:
        return f"{milliseconds:.3g} ms"
    return (
        f"{milliseconds / 1000:.3g} s"
        if milliseconds < 1_000_000
        else f"{milliseconds / 1000:.0f} s"
    )


_FIGURES: Final[tuple[tuple[str, int, Callable[[Figures], str]], ...]] = (
    ("calls", 0, lambda group: f"{group.calls:,}"),
    ("success", 0, lambda group: percent(group.success_rate)),
    ("first_try", 100, lambda group: percent(group.first_try_rate)),
    ("recovered", 110, lambda group: percent(group.recovered_rate)),
    ("degraded", 120, lambda group: percent(group.degraded_rate)),
    ("faults", 0, lambda group: f"{group.faults:,}"),
    ("refusals", 0, lambda group: f"{group.refusals:,}"),
    ("amplification", 0, lambda group: f"{group.amplification:.2f}"),
    ("mean", 140, lambda group: duration(group.mean_ms)),
    ("p50", 0, lambda group: duration(group.p50_ms)),
    ("p90", 140, lambda group: duration(group.p90_ms)),
    ("p99", 0, lambda group: duration(group.p99_ms)),
)
"""Figures of a group: name, width from which they are shown, and how."""
