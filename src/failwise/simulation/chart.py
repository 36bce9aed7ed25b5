"""A simulation as an SVG chart: requests a second, and the share of calls that succeed, over time."""

import math
from collections.abc import Sequence

from failwise.drawing.svg import Panel, document, line, nice, points, text
from failwise.simulation.scenario import Scenario
from failwise.simulation.tally import Outcome
from failwise.simulation.wording import figures, words
from failwise.vocabulary.result import Language

_WIDTH, _LEFT, _RIGHT = 960, 70, 24
_TOP, _HEIGHT, _GAP, _SHARE_HEIGHT = 64, 300, 48, 140
_LEGEND_LINE = 22
_POINTS = 480
"""Points of a line at most; beyond it steps are joined."""


def chart(scenario: Scenario, outcomes: Sequence[Outcome], *, lang: Language = "en") -> str:
    """The chart of these outcomes as the text of an SVG file."""
    said = words(lang)
    shares_top = _TOP + _HEIGHT + _GAP
    legend_top = shares_top + _SHARE_HEIGHT + 58
    height = legend_top + _LEGEND_LINE * len(outcomes) + 16
    events = (
        ", ".join(dict.fromkeys(said[f"event_{event.kind}"] for event in scenario.events))
        or said["nothing_wrong"]
    )
    description = [said["chart_note"].format(events=events)]
    description += [f"{_name(o, lang)}: {_summary(o, lang)}." for o in outcomes]
    title = scenario.title(lang)
    highest = nice(max((rate for o in outcomes for rate in o.timeline.rates), default=1.0))
    wide = _WIDTH - _LEFT - _RIGHT
    requests = Panel(_LEFT, _TOP, wide, _HEIGHT, highest)
    shares = Panel(_LEFT, shares_top, wide, _SHARE_HEIGHT, 1.0)
    parts = [
        text(_LEFT, 26, title, kind="title"),
        *_field(scenario, requests, said["requests_chart"], "{:g}"),
        *_field(scenario, shares, said["success_chart"], "{:.0%}"),
        text(_WIDTH - _RIGHT, shares.bottom + 34, said["time_axis"], anchor="end"),
    ]
    for place, outcome in enumerate(outcomes):
        timeline = outcome.timeline
        succeeded = [timeline.share(step) for step in range(len(timeline.ended))]
        for values, panel in ((timeline.rates, requests), (succeeded, shares)):
            parts.append(line(place, _path(values, timeline.step, scenario.seconds, panel)))
        y = legend_top + _LEGEND_LINE * place
        parts.append(line(place, f"M{_LEFT} {y}h36"))
        parts.append(text(_LEFT + 46, y + 5, f"{_name(outcome, lang)}: {_summary(outcome, lang)}"))
    return document(_WIDTH, height, title, " ".join(description), parts, lang=lang)


def _field(scenario: Scenario, panel: Panel, name: str, form: str) -> list[str]:
    """One field of the chart: its name, grid, axes and the shaded time of its events."""
    parts = []
    for event in scenario.events:
        start, end = panel.x(event.start / scenario.seconds), panel.x(event.end / scenario.seconds)
        parts.append(
            f'<rect class="event" x="{start:.1f}" y="{panel.top}" width="{end - start:.1f}" '
            f'height="{panel.tall}"/>'
        )
    values = [panel.most * quarter / 4 for quarter in range(5)]
    parts += panel.frame(name, [(value, form.format(value)) for value in values])
    minutes = scenario.seconds / 60
    every = nice(minutes / 6)
    for number in range(int(minutes / every + 1e-9) + 1):
        parts.append(panel.below(number * every / minutes, f"{number * every:g}"))
    return parts


def _path(values: "Sequence[float | None]", step: float, seconds: float, panel: Panel) -> str:
    """A line through the middles of the steps; where nothing is known it is broken."""
    joined = max(1, math.ceil(len(values) / _POINTS))
    found: list[tuple[float, float] | None] = []
    for place in range(0, len(values), joined):
        known = [value for value in values[place : place + joined] if value is not None]
        if not known:
            found.append(None)
            continue
        x = panel.x((place + joined / 2) * step / seconds)
        found.append((x, panel.y(sum(known) / len(known))))
    return points(found)


def _name(outcome: Outcome, lang: Language) -> str:
    return outcome.titles.get(lang) or outcome.titles["en"]


def _summary(outcome: Outcome, lang: Language) -> str:
    said, shown = words(lang), figures(outcome, lang)
    names = ("per_call", "in_trouble", "success", "recovery")
    return ", ".join(f"{said[name]} {shown[name]}" for name in names)
