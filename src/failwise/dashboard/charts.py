"""Drawings: small SVG without styles of its own, so that the strictest policy lets it pass and light
and dark are the style sheet's. Every drawing says in words what it shows; labels are text beside it.

A drawing stretches to the width it is given; heights are the style sheet's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup, escape

from failwise.drawing.svg import nice

SLOTS: Final = 96
"""Points of a course that are drawn: more are put together."""
_TALL: Final = 100.0


def thinned(
    course: Sequence[Mapping[str, Any]], keys: Sequence[str]
) -> list[tuple[float, dict[str, int]]]:
    """A course as at most `SLOTS` points: (epoch seconds, count by key)."""
    width = max(1, -(-len(course) // SLOTS))
    points: list[tuple[float, dict[str, int]]] = []
    for start in range(0, len(course), width):
        part = course[start : start + width]
        points.append(
            (part[0]["at"], {key: sum(_of(point, key) for point in part) for key in keys})
        )
    return points


def _of(point: Mapping[str, Any], key: str) -> int:
    by_category = point.get("by_category", {})
    value: int = by_category[key] if key in by_category else point.get(key, 0)
    return value


def most_of(points: Sequence[tuple[float, Mapping[str, int]]]) -> float:
    """The top of the scale: a round number that no point passes."""
    return nice(max((sum(counts.values()) for _, counts in points), default=0))


def stacked(
    points: Sequence[tuple[float, Mapping[str, int]]],
    keys: Sequence[str],
    words: str,
    notes: Sequence[str],
) -> Markup:
    """Areas stacked on each other, in steps; key ``k`` has the class ``fill-k``. `words` say what it
    is, `notes` what each point is, shown where the pointer rests."""
    most = most_of(points)
    width = max(len(points), 1)
    floors = [0.0] * len(points)
    paths: list[str] = []
    for key in keys:
        steps: list[str] = []
        for place, (_, counts) in enumerate(points):
            tall = _TALL * counts.get(key, 0) / most
            if tall:
                top = _TALL - floors[place] - tall
                steps.append(f"M{place} {top:.2f}h1v{tall:.2f}h-1z")
                floors[place] += tall
        if steps:
            paths.append(f'<path class="fill-{escape(key)}" d="{"".join(steps)}"/>')
    return _svg(
        f"0 0 {width} {_TALL:g}", "area", words, _grid(width) + "".join(paths) + _hot(notes)
    )


def _grid(width: int) -> str:
    return "".join(
        f'<path class="grid" vector-effect="non-scaling-stroke" d="M0 {y}H{width}"/>'
        for y in (0, 50, 100)
    )


def _hot(notes: Sequence[str]) -> str:
    """What is said where the pointer rests, a column for each point."""
    return "".join(
        f'<rect class="hot" x="{place}" y="0" width="1" height="{_TALL:g}">'
        f"<title>{escape(note)}</title></rect>"
        for place, note in enumerate(notes)
    )


def line(
    points: Sequence[tuple[float, Mapping[str, int]]],
    above: str,
    below: str,
    most: float,
    words: str,
    notes: Sequence[str],
) -> Markup:
    """One count for each of another over time, as a line from 0 to `most`; broken where there is none
    of the other."""
    width = max(len(points), 1)
    steps: list[str] = []
    drawing = False
    for place, (_, counts) in enumerate(points):
        if not counts[below]:
            drawing = False
            continue
        y = _TALL * (1 - min(1.0, counts[above] / counts[below] / most))
        steps.append(f"{'L' if drawing else 'M'}{place} {y:.2f}h1")
        drawing = True
    drawn = f'<path class="line" vector-effect="non-scaling-stroke" d="{"".join(steps)}"/>'
    return _svg(f"0 0 {width} {_TALL:g}", "area", words, _grid(width) + drawn + _hot(notes))


def most_each(points: Sequence[tuple[float, Mapping[str, int]]], above: str, below: str) -> float:
    """The top of the scale of `line`: a round number that no point passes."""
    return nice(max((one[above] / one[below] for _, one in points if one[below]), default=0.0))


def spark(counts: Sequence[int], words: str) -> Markup:
    """A few counts as bars, as small as a word."""
    most = max(counts, default=0)
    bars = "".join(
        f'<rect class="bar" x="{place + 0.1:g}" width="0.8" y="{_TALL * (1 - one / most):.1f}"'
        f' height="{max(4.0, _TALL * one / most):.1f}"/>'
        for place, one in enumerate(counts)
        if one
    )
    return _svg(f"0 0 {max(len(counts), 1)} {_TALL:g}", "spark", words, bars)


def timeline(parts: Sequence[Mapping[str, Any]], words: str, notes: Sequence[str]) -> Markup:
    """What a call's time was spent on, to scale: attempts thick, waits thin."""
    whole = max((part["to"] for part in parts), default=0.0) or 1.0
    drawn: list[str] = []
    for part, note in zip(parts, notes, strict=True):
        begin = 1000 * part["from"] / whole
        wide = max(1000 * (part["to"] - part["from"]) / whole, 0.0)
        thin = part["what"] in ("wait", "rest")
        if not thin:
            wide = max(wide, 3.0)
            begin = min(begin, 1000 - wide)
        top, tall = (44, 12) if thin else (12, 76)
        drawn.append(
            f'<rect class="part-{escape(part["what"])}" x="{begin:.1f}" y="{top}" width="{wide:.1f}"'
            f' height="{tall}"><title>{escape(note)}</title></rect>'
        )
    return _svg("0 0 1000 100", "timeline", words, "".join(drawn))


def heat(count: int, most: int) -> str:
    """The class of a cell of a map: ``heat-0`` for nothing to ``heat-5`` for the most."""
    if not count:
        return "heat-0"
    return f"heat-{max(1, min(5, -(-5 * count // max(most, 1))))}"


def _svg(box: str, kind: str, words: str, drawn: str) -> Markup:
    return Markup(  # noqa: S704 - every text in it was escaped
        f'<svg class="{kind}" viewBox="{box}" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(words)}" focusable="false">{drawn}</svg>'
    )
