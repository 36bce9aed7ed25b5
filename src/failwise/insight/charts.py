"""The charts of a stretch of records: failures by category, the hours, latency, requests per call.

Each is an SVG file of its own, drawn from rollups (`drawing.svg`).
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from failwise.drawing.svg import SERIES, Panel, document, line, nice, points, text
from failwise.insight.figures import rate
from failwise.insight.report import HOURLY
from failwise.insight.tables import duration, percent, report_words
from failwise.journal.latency import quantiles
from failwise.journal.reader import Filter, Place, Reader, open_reader
from failwise.journal.rollups import DAY, HOUR
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

_WIDTH, _LEFT, _RIGHT, _TOP, _TALL = 960, 76, 24, 64, 320
_LEGEND: Final = 22
_LABELS: Final = 8
_STEPS: Final = 480
"""Steps of a chart at most; beyond it they become days, then weeks."""
_WEEK: Final = 7 * DAY
_DAYS: Final = 31
"""Days that have a row each in the heat map; of more, the days of the week have one."""
_SHADES: Final = 5
_QUANTILES: Final = (0.5, 0.9, 0.99)


@record
class Series:
    """What the charts show, as data: `steps` begin at these moments (epoch s) and are `width` seconds
    long, the lists have one value for each.

    `failures` by category, most frequent first; `calls`, `failed` and `requests` are totals, `latency`
    p50, p90, p99 in ms (None: no calls). `heat`: calls and failures by (day, hour of the day), the day
    as epoch seconds, or of long stretches the day of the week, Monday is 0.
    """

    steps: tuple[int, ...]
    width: int
    calls: tuple[int, ...]
    failed: tuple[int, ...]
    requests: tuple[int, ...]
    failures: Mapping[str, tuple[int, ...]]
    latency: Mapping[str, tuple[float | None, ...]]
    overall: tuple[float, ...]
    heat: Mapping[tuple[int, int], tuple[int, int]]
    weekdays: bool


def series(
    journal: Place = None,
    *,
    since: float | None = None,
    until: float | None = None,
    where: Filter | None = None,
) -> Series:
    """The data of the charts; `since`, `until` and `where` as for `report`. Hours and days are UTC."""
    with open_reader(journal) as reader:
        first, last = reader.span(since, until)
        span = last - first
        hourly = span <= HOURLY
        width = HOUR if hourly else DAY if span <= _STEPS * DAY else _WEEK
        start = int(first // width * width)
        steps = tuple(range(start, int(last), width)) if span else ()
        by_time = _by_time(reader, since, until, where, "hour" if hourly else "day")
        heat, weekdays = _heat(reader, since, until, where, first, last)
    count = len(steps)
    totals = {name: [0] * count for name in ("calls", "failed", "requests")}
    categories: dict[str, list[int]] = {}
    for row in by_time[0]:
        step = (row["at"] - start) // width
        totals["requests"][step] += row["requests"]
        if not row["asked"]:
            continue
        totals["calls"][step] += row["calls"]
        totals["failed"][step] += row["failures"]
        if row["failures"]:
            counts = categories.setdefault(row["category"] or "unknown", [0] * count)
            counts[step] += row["failures"]
    buckets: list[dict[int, int]] = [{} for _ in steps]
    every: dict[int, int] = {}
    for at, found in by_time[1].items():
        for into in (buckets[(at - start) // width], every):
            for bucket, calls in found.items():
                into[bucket] = into.get(bucket, 0) + calls
    lines = [quantiles(one.items(), _QUANTILES) if one else None for one in buckets]
    order = sorted(categories, key=lambda name: (-sum(categories[name]), name))
    return Series(
        steps,
        width,
        tuple(totals["calls"]),
        tuple(totals["failed"]),
        tuple(totals["requests"]),
        {name: tuple(categories[name]) for name in order},
        {
            name: tuple(one[place] if one else None for one in lines)
            for place, name in enumerate(("p50", "p90", "p99"))
        },
        quantiles(every.items(), _QUANTILES),
        heat,
        weekdays,
    )


def _by_time(
    reader: Reader,
    since: float | None,
    until: float | None,
    where: Filter | None,
    period: Any,
) -> tuple[list[dict[str, Any]], dict[int, dict[int, int]]]:
    rows = reader.figures(since, until, (period, "asked", "category"), where, latency=False)
    found = reader.latencies(since, until, (period, "asked"), where)
    latencies = {at: buckets for (at, asked), buckets in found.items() if asked}
    return [row | {"at": row[period]} for row in rows], latencies


def _heat(
    reader: Reader,
    since: float | None,
    until: float | None,
    where: Filter | None,
    first: float,
    last: float,
) -> tuple[dict[tuple[int, int], tuple[int, int]], bool]:
    weekdays = (last - first) > _DAYS * DAY
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for row in reader.figures(since, until, ("hour", "asked"), where, latency=False):
        if not row["asked"]:
            continue
        day = row["hour"] // DAY * DAY
        # The first day of all was a Thursday.
        key = ((day // DAY + 3) % 7 if weekdays else day), row["hour"] % DAY // HOUR
        calls, failures = found.get(key, (0, 0))
        found[key] = calls + row["calls"], failures + row["failures"]
    return found, weekdays


def charts(data: Series, lang: Language = "en") -> dict[str, str]:
    """The charts as the text of SVG files, by the names that the files should have."""
    return {
        "failures.svg": _failures(data, lang),
        "hours.svg": _hours(data, lang),
        "latency.svg": _latency(data, lang),
        "requests.svg": _requests(data, lang),
    }


def _failures(data: Series, lang: Language) -> str:
    """Failures by category over time, as areas on each other."""
    say = report_words(lang)
    names = list(data.failures)[: len(SERIES) - 1]
    areas = {name: list(data.failures[name]) for name in names}
    rest = [
        sum(counts[step] for name, counts in data.failures.items() if name not in areas)
        for step in range(len(data.steps))
    ]
    if any(rest):
        areas[say["chart_rest"]] = rest
    top = max((sum(column) for column in zip(*areas.values(), strict=True)), default=0)
    panel = _panel(nice(max(1, top)))
    sums = {name: sum(counts) for name, counts in areas.items()}
    note = say["chart_failures_note"].format(
        period=_period(data, say),
        names=", ".join(f"{name} {count:,}" for name, count in list(sums.items())[:3]),
    )
    parts, floor = [], [0] * len(data.steps)
    for place, (name, counts) in enumerate(areas.items()):
        ceiling = [low + count for low, count in zip(floor, counts, strict=True)]
        path = _area(data, panel, floor, ceiling)
        parts.append(f'<path class="c{place} area" fill="url(#h{place})" d="{path}"/>')
        y = panel.bottom + 50 + _LEGEND * place
        parts.append(
            f'<rect class="c{place} area" fill="url(#h{place})" x="{_LEFT}" y="{y - 11}" '
            'width="36" height="14"/>'
        )
        parts.append(text(_LEFT + 46, y + 1, f"{name}: {sums[name]:,}"))
        floor = ceiling
    frame = panel.frame(say["chart_calls"], _marks(panel, "{:,.0f}"))
    return _file(say["chart_failures"], note, [*parts, *frame], data, panel, lang, len(areas))


def _latency(data: Series, lang: Language) -> str:
    """Three lines on a logarithmic scale, and the bands between them."""
    say = report_words(lang)
    known = [value for line_ in data.latency.values() for value in line_ if value]
    low, high = _decades(known)
    panel = _panel(high, least=low, log=True)
    figures = ", ".join(
        f"{name} {duration(value)}" for name, value in zip(data.latency, data.overall, strict=True)
    )
    note = say["chart_latency_note"].format(period=_period(data, say), figures=figures)
    parts = []
    quantile = dict(data.latency)
    for place, (below, above) in enumerate((("p50", "p90"), ("p90", "p99"))):
        lows, highs = quantile[below], quantile[above]
        path = _area(data, panel, lows, highs)
        parts.append(f'<path class="f{place} band" d="{path}"/>')
    marks, value = [], low
    while value <= high:
        marks.append((value, duration(value)))
        value *= 10
    parts += panel.frame(say["chart_latency"], marks)
    for place, (name, values) in enumerate(data.latency.items()):
        parts.append(line(place, _line(data, panel, values)))
        y = panel.bottom + 50 + _LEGEND * place
        parts.append(line(place, f"M{_LEFT} {y}h36"))
        parts.append(text(_LEFT + 46, y + 5, f"{name}: {duration(data.overall[place])}"))
    return _file(say["chart_latency"], note, parts, data, panel, lang, 0, legend=3)


def _requests(data: Series, lang: Language) -> str:
    """Requests for each call over time."""
    say = report_words(lang)
    values = [
        rate(requests, calls) if calls else None
        for requests, calls in zip(data.requests, data.calls, strict=True)
    ]
    known = [(value, step) for value, step in zip(values, data.steps, strict=True) if value]
    highest, at = max(known, default=(0.0, 0))
    overall = rate(sum(data.requests), sum(data.calls))
    panel = _panel(max(1.5, nice(highest)))
    note = say["chart_amplification_note"].format(
        period=_period(data, say),
        figure=f"{overall:.2f}",
        highest=f"{highest:.2f}",
        at=_moment(at, "%Y-%m-%d %H:%MZ") if known else "–",
    )
    one = panel.y(1.0)
    parts = panel.frame(say["chart_amplification"], _marks(panel, "{:.2f}"))
    parts.append(
        f'<path class="axis" stroke-dasharray="2 4" d="M{_LEFT} {one:.1f}H{_WIDTH - _RIGHT}"/>'
    )
    parts.append(line(0, _line(data, panel, values)))
    y = panel.bottom + 50
    parts.append(line(0, f"M{_LEFT} {y}h36"))
    parts.append(text(_LEFT + 46, y + 5, f"{say['chart_amplification']}: {overall:.2f}"))
    return _file(say["chart_amplification"], note, parts, data, panel, lang, 0, legend=1)


def _hours(data: Series, lang: Language) -> str:
    """A row for each day, a cell for each hour: the share of calls that failed, in shade and number."""
    say = report_words(lang)
    rows = sorted({day for day, _ in data.heat})
    if data.weekdays and rows:
        rows = list(range(7))
    names = say["weekdays"].split(",")
    wide, tall, top = (_WIDTH - _LEFT - _RIGHT) / 24, 24, _TOP + 26
    most = max((rate(failed, calls) for calls, failed in data.heat.values()), default=0.0)
    parts = [
        text(_LEFT + wide * (hour + 0.5), top - 8, f"{hour:02}", anchor="middle")
        for hour in range(24)
    ]
    worst: tuple[float, str] = (0.0, "–")
    for place, row in enumerate(rows):
        y = top + tall * place
        name = names[row] if data.weekdays else _moment(row, "%m-%d")
        parts.append(text(_LEFT - 8, y + 16, name, anchor="end"))
        for hour in range(24):
            calls, failed = data.heat.get((row, hour), (0, 0))
            x, share = _LEFT + wide * hour, rate(failed, calls)
            if share > worst[0]:
                worst = share, f"{name} {hour:02}:00, {percent(share)}"
            shade = round(_SHADES * share / most) if most and calls else 0
            told = f"{name} {hour:02}:00: {failed:,} / {calls:,}"
            parts.append(
                f'<g><title>{told}</title><rect class="cell s{shade}" x="{x:.1f}" y="{y}" '
                f'width="{wide - 2:.1f}" height="{tall - 2}"/>'
                + (
                    text(x + wide / 2 - 1, y + 15, _short(share), anchor="middle", kind=f"t{shade}")
                    if calls
                    else ""
                )
                + "</g>"
            )
    note = say["chart_heat_note"].format(
        rows=say["rows_weekdays" if data.weekdays else "rows_days"], worst=worst[1]
    )
    title = say["chart_heat"]
    if not rows:
        parts = [text(_LEFT, top, say["chart_nothing"])]
    height = top + tall * max(1, len(rows)) + 40
    parts = [text(_LEFT, 26, title, kind="title"), text(_LEFT, 48, note), *parts]
    style = ".cell { fill: #c5221f } text.t5 { fill: #ffffff } .t0, .t1, .t2, .t3, .t4, .t5 { font-size: 11px }"
    style += "".join(
        f" .s{n} {{ fill-opacity: {0.03 + n * 0.17:.2f} }}" for n in range(_SHADES + 1)
    )
    dark = ".cell { fill: #f28b82 } text.t4, text.t5 { fill: #202124 }"
    return document(_WIDTH, height, title, note, parts, lang=lang, style=style, dark=dark)


def _panel(most: float, *, least: float = 0.0, log: bool = False) -> Panel:
    return Panel(_LEFT, _TOP + 26, _WIDTH - _LEFT - _RIGHT, _TALL, most, least=least, log=log)


def _marks(panel: Panel, form: str) -> list[tuple[float, str]]:
    return [
        (panel.most * quarter / 4, form.format(panel.most * quarter / 4)) for quarter in range(5)
    ]


def _file(
    title: str,
    note: str,
    parts: Sequence[str],
    data: Series,
    panel: Panel,
    lang: Language,
    hatched: int,
    *,
    legend: int = 0,
) -> str:
    say = report_words(lang)
    head = [text(_LEFT, 26, title, kind="title"), text(_LEFT, 48, note)]
    form = "%m-%d %Hh" if data.width == HOUR else "%Y-%m-%d"
    every = max(1, -(-len(data.steps) // _LABELS))
    below = [
        panel.below((place + 0.5) / len(data.steps), _moment(at, form))
        for place, at in enumerate(data.steps)
        if place % every == 0
    ]
    if not data.steps:
        parts, below = [text(_LEFT, panel.top + 20, say["chart_nothing"])], []
    height = panel.bottom + 50 + _LEGEND * max(hatched, legend, 1) + 12
    style = ".area { stroke-width: 1 } .band { opacity: .18; stroke: none }"
    return document(
        _WIDTH,
        height,
        title,
        note,
        [*head, *parts, *below],
        lang=lang,
        style=style,
        hatched=hatched,
    )


def _x(data: Series, panel: Panel, place: int) -> float:
    return panel.x((place + 0.5) / len(data.steps))


def _line(data: Series, panel: Panel, values: Sequence[float | None]) -> str:
    return points(
        None if value is None else (_x(data, panel, place), panel.y(value))
        for place, value in enumerate(values)
    )


def _area(
    data: Series,
    panel: Panel,
    lows: Sequence[float | None],
    highs: Sequence[float | None],
) -> str:
    """What lies between two lines; where nothing is known it is broken. A step that stands alone is as
    wide as it is."""
    path, run = [], []
    half = panel.wide / max(1, len(data.steps)) / 2
    known = [
        (place, low, high)
        for place, (low, high) in enumerate(zip(lows, highs, strict=True))
        if low is not None and high is not None
    ]
    for number, one in enumerate(known):
        run.append(one)
        if number + 1 == len(known) or known[number + 1][0] != one[0] + 1:
            first, last = _x(data, panel, run[0][0]), _x(data, panel, run[-1][0])
            around = [(_x(data, panel, place), panel.y(high)) for place, _, high in run]
            around += [(_x(data, panel, place), panel.y(low)) for place, low, _ in reversed(run)]
            if first == last:
                (_, high), (_, low) = around
                around = [(first - half, high), (first + half, high)]
                around += [(first + half, low), (first - half, low)]
            path.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in around) + "Z")
            run = []
    return "".join(path)


def _decades(values: Iterable[float]) -> tuple[float, float]:
    """The powers of ten around values."""
    some = list(values)
    low, high = (min(some), max(some)) if some else (1.0, 1_000.0)
    least, most = 1e-3, 1e-2
    while least * 10 <= low:
        least *= 10
    most = least * 10
    while most < high:
        most *= 10
    return least, most


def _period(data: Series, say: Mapping[str, str]) -> str:
    return say[{HOUR: "by_hour", DAY: "by_day"}.get(data.width, "by_week")]


def _moment(at: float, form: str) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(form)


def _short(share: float) -> str:
    """Percent in at most three characters; nothing for none."""
    if not share:
        return ""
    return "<1" if share < 0.01 else f"{share * 100:.0f}"
