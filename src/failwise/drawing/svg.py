"""An SVG file that reads in light and dark, without colours, and aloud.

Every series has a colour for light and one for dark, a dash and a hatching of its own; every file a
title and a description. All that comes from outside is escaped. Coordinates are in pixels.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from failwise.vocabulary.result import Language


class Style(NamedTuple):
    """How one series looks: colour on light, colour on dark, dashes of its line."""

    light: str
    dark: str
    dashes: str


SERIES: Final = (
    Style("#0b57d0", "#8ab4f8", ""),
    Style("#c5221f", "#f28b82", "6 3"),
    Style("#7a4a00", "#fdd663", "2 3"),
    Style("#188038", "#81c995", "10 3 2 3"),
    Style("#8430ce", "#c58af9", "14 4"),
    Style("#007b83", "#78d9ec", "4 2 1 2"),
    Style("#b80672", "#ff8bcb", "1 4"),
    Style("#5f6368", "#bdc1c6", "8 2 2 2 2 2"),
)
_HATCHES: Final = (
    "M0 4H8",
    "M0 8L8 0",
    "M4 0V8",
    "M0 0L8 8",
    "M0 4H8M4 0V8",
    "M0 8L8 0M0 0L8 8",
    "M3 4H5",
    "M0 2H8M0 6H8",
)
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #202124 }
.title { font-size: 17px; font-weight: 600 }
.axis, .grid { stroke: #80868b; fill: none } .grid { opacity: .25 }
.event { fill: #80868b; opacity: .16 }
.line { fill: none; stroke-width: 2 }
.ground { fill: #ffffff }
"""
_DARK: Final = "text { fill: #e8eaed } .ground { fill: #202124 }"


def document(
    width: float,
    height: float,
    title: str,
    description: str,
    parts: Iterable[str],
    *,
    lang: Language = "en",
    style: str = "",
    dark: str = "",
    hatched: int = 0,
) -> str:
    """A whole SVG file. Series number n has the class ``cN`` (lines) and ``fN`` (areas); with
    `hatched` areas are filled with a pattern of their own, for as many series. `style` and `dark`
    are further rules, the latter where the reader wants dark."""
    light = "".join(
        f".c{n} {{ stroke: {one.light} }} .f{n} {{ fill: {one.light} }} "
        for n, one in enumerate(SERIES)
    )
    night = "".join(
        f".c{n} {{ stroke: {one.dark} }} .f{n} {{ fill: {one.dark} }} "
        for n, one in enumerate(SERIES)
    )
    patterns = "".join(
        f'<pattern id="h{n}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect class="f{n % len(SERIES)}" width="8" height="8" opacity=".55"/>'
        f'<path class="c{n % len(SERIES)}" d="{_HATCHES[n % len(_HATCHES)]}"/></pattern>'
        for n in range(hatched)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" aria-labelledby="title what" '
            f"xml:lang={quoteattr(lang)}>",
            f'<title id="title">{escape(plain(title))}</title>',
            f'<desc id="what">{escape(plain(description))}</desc>',
            f"<style>{_STYLE}{light}{style}"
            f"@media (prefers-color-scheme: dark) {{ {_DARK} {night}{dark} }}</style>",
            *([f"<defs>{patterns}</defs>"] if patterns else []),
            f'<rect class="ground" width="{width:g}" height="{height:g}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def text(x: float, y: float, words: str, *, anchor: str = "", kind: str = "") -> str:
    """A line of text that begins at (x, y); `anchor`: ``middle`` or ``end`` instead."""
    said = f' text-anchor="{anchor}"' if anchor else ""
    said += f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{said}>{escape(plain(words))}</text>'


def line(series: int, path: str) -> str:
    """A line of a series, with its colour and dashes."""
    number = series % len(SERIES)
    dashes = SERIES[number].dashes
    said = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path class="line c{number}"{said} d="{path}"/>'


def points(values: Iterable[tuple[float, float] | None]) -> str:
    """A path through points; at None it is broken, and a point that stands alone is a short line."""
    path: list[str] = []
    run: list[tuple[float, float]] = []

    def flush() -> None:
        if len(run) == 1:
            path.append(f"M{run[0][0] - 2:.1f} {run[0][1]:.1f}h4")
        elif run:
            path.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run))
        run.clear()

    for value in values:
        if value is None:
            flush()
        else:
            run.append(value)
    flush()
    return "".join(path)


class Panel:
    """One field of a chart: where it is, and its scale. `top` and `left` are its upper left corner;
    `most` is the value at its top, `least` at its bottom; `log`: a logarithmic scale."""

    def __init__(
        self,
        left: float,
        top: float,
        wide: float,
        tall: float,
        most: float,
        *,
        least: float = 0.0,
        log: bool = False,
    ) -> None:
        self.left, self.top, self.wide, self.tall = left, top, wide, tall
        self.most, self.least, self.log = most, least, log

    @property
    def bottom(self) -> float:
        return self.top + self.tall

    def x(self, share: float) -> float:
        """Where a share, 0 to 1, of the width lies."""
        return self.left + self.wide * min(1.0, max(0.0, share))

    def y(self, value: float) -> float:
        """Where a value lies."""
        if self.log:
            low, high = math.log(self.least), math.log(self.most)
            share = (math.log(max(value, self.least)) - low) / (high - low)
        else:
            share = (value - self.least) / (self.most - self.least)
        return self.bottom - self.tall * min(1.0, max(0.0, share))

    def frame(self, name: str, marks: Sequence[tuple[float, str]]) -> list[str]:
        """Its name, a grid line with a label for each mark of the scale, and the axes."""
        right = self.left + self.wide
        parts = [text(self.left, self.top - 10, name)] if name else []
        for value, label in marks:
            y = self.y(value)
            parts.append(f'<path class="grid" d="M{self.left:g} {y:.1f}H{right:g}"/>')
            parts.append(text(self.left - 8, y + 4, label, anchor="end"))
        axes = f"M{self.left:g} {self.top:g}V{self.bottom:g}H{right:g}"
        parts.append(f'<path class="axis" d="{axes}"/>')
        return parts

    def below(self, share: float, label: str) -> str:
        """A label under the axis, at a share of the width."""
        return text(self.x(share), self.bottom + 18, label, anchor="middle")


def nice(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if value <= power * step * 1.000001)


def plain(words: str) -> str:
    """Text that XML allows: no control characters, no half of a pair."""
    return "".join(
        character if character.isprintable() or character == "\n" else "\N{REPLACEMENT CHARACTER}"
        for character in words
    )
