"""Colours that can be told apart, and numbers as people write them."""

import re
from importlib import resources

import pytest

from failwise.dashboard import charts, look
from failwise.vocabulary.kinds import Category

CSS = resources.files("failwise.dashboard").joinpath("static", "dashboard.css").read_text("utf-8")
THEMES = {
    "light": r"^:root \{(.*?)\}",
    "dark": r"^:root\[data-theme=\"dark\"\] \{(.*?)\}",
    "system": r":root:not\(\[data-theme=\"light\"\]\) \{(.*?)\}",
}
TEXT = [
    (ink, ground)
    for ground in ("ground", "surface", "raised")
    for ink in ("ink", "soft", "link")
] + [
    ("good", "good-ground"), ("warn", "warn-ground"), ("bad", "bad-ground"), ("button-ink", "button"),
    ("heat-ink", "heat-1"), ("heat-ink", "heat-2"), ("heat-ink", "heat-3"),
    ("heat-ink-strong", "heat-4"), ("heat-ink-strong", "heat-5"),
]  # fmt: skip
"""What is written in what on what: 4.5 to 1 (WCAG 2.2, 1.4.3)."""


def colours(theme: str) -> dict[str, str]:
    found = re.search(THEMES[theme], CSS, re.MULTILINE | re.DOTALL)
    assert found is not None
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", found[1]))


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2: (L1 + 0.05) / (L2 + 0.05) of relative luminances."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_can_be_read(theme: str) -> None:
    """Every pair of ink and ground has a contrast of 4.5 or more."""
    known = colours(theme)
    weak = {
        (ink, ground): round(contrast(known[ink], known[ground]), 2)
        for ink, ground in TEXT
        if contrast(known[ink], known[ground]) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawings_can_be_seen(theme: str) -> None:
    """Every colour of a drawing, the focus and the borders of fields stand out by 3 or more (1.4.11)."""
    known = colours(theme)
    drawn = [name for name in known if name.startswith("c-")] + ["focus", "soft"]
    weak = {name for name in drawn if contrast(known[name], known["surface"]) < 3}
    assert weak == set()


def test_themes_have_the_same_colours() -> None:
    """What the system chooses and what a person chooses is the same dark."""
    assert colours("system") == colours("dark")
    assert colours("light").keys() == colours("dark").keys()
    used = set(re.findall(r"var\(--([\w-]+)\)", CSS))
    assert used == set(colours("light"))


def test_every_category_has_its_colour() -> None:
    """A category looks the same in every drawing."""
    for category in Category:
        assert f".fill-{category} {{" in CSS


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (look.count(1_234_567), "1,234,567"),
        (look.percent(0), "0 %"),
        (look.percent(1), "100 %"),
        (look.percent(0.99999), "> 99.9 %"),
        (look.percent(0.00001), "< 0.1 %"),
        (look.percent(0.123), "12.3 %"),
        (look.duration(0), "0 ms"),
        (look.duration(0.2), "< 1 ms"),
        (look.duration(999), "999 ms"),
        (look.duration(1_230), "1.23 s"),
        (look.duration(61_000), "61.0 s"),
        (look.duration(600_000), "10 min"),
        (look.duration(3 * 3_600_000), "3.0 h"),
        (look.moment(0.0), "1970-01-01 00:00:00"),
        (look.moment(1e30), ""),
        (look.ago("zh", 7_300), "2 小时前"),
        (look.plain("a\u202eb\x00c\nd\u2028e"), "a⟨U+202E⟩b⟨U+0000⟩c\nd e"),
        (look.plain("x" * 12, 10), "x" * 10 + "… (+2)"),
        (look.plain("订单 ok 👍"), "订单 ok 👍"),
    ],
)
def test_numbers_and_texts(made: str, wanted: str) -> None:
    """Never 100 % where it is not quite; what cannot be seen is spelt out."""
    assert made == wanted


def test_drawings_are_bounded_and_escaped() -> None:
    """However long a course is, a drawing has at most `SLOTS` points; nothing of it is lost."""
    course = [
        {"at": float(at), "failures": 1, "by_category": {"network": 2}} for at in range(10_000)
    ]
    points = charts.thinned(course, ("failures", "network"))
    assert len(points) <= charts.SLOTS
    assert sum(counts["failures"] for _, counts in points) == 10_000
    drawn = charts.stacked(points, ("failures", "network"), '<b>&"', ["<i>"] * len(points))
    assert "<b>" not in drawn
    assert "<i>" not in drawn
    assert "style=" not in drawn
    assert charts.spark([], "nothing")
    parts = [{"what": "failed", "from": 0.0, "to": 0.0}, {"what": "wait", "from": 0.0, "to": 9.0}]
    assert "part-wait" in charts.timeline(parts, "x", ["a", "b"])
