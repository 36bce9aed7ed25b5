"""What charts are drawn with."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.drawing.svg import SERIES, Panel, document, line, nice, points, text

SVG = "{http://www.w3.org/2000/svg}"


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_makes_sound_svg(title: str, words: str) -> None:
    """Markup, quotes and control characters are shown as text or marked, never obeyed."""
    file = document(100, 50, title, words, [text(1, 2, words)], hatched=2)
    root = ElementTree.fromstring(file)
    assert root.find(f"{SVG}title") is not None
    assert [one.tag for one in root.iter(f"{SVG}script")] == []


def test_series_differ_in_more_than_colour() -> None:
    """Each has dashes of its own; beyond the last they begin anew."""
    assert len({style.dashes for style in SERIES}) == len(SERIES)
    assert line(len(SERIES), "M0 0") == line(0, "M0 0")


def test_a_panel_maps_values_to_places() -> None:
    """Linear and logarithmic; what is outside lies on the edge."""
    panel = Panel(10, 20, 100, 200, 4.0)
    assert (panel.x(0), panel.x(1), panel.x(2)) == (10, 110, 110)
    assert (panel.y(0), panel.y(4), panel.y(1), panel.y(9)) == (220, 20, 170, 20)
    log = Panel(0, 0, 100, 100, 1_000, least=1, log=True)
    assert [round(log.y(value), 6) for value in (1, 10, 1_000, 0)] == [100, 66.666667, 0, 100]


def test_lines_break_where_nothing_is_known() -> None:
    """A point that stands alone is a short line; runs are joined."""
    assert points([(1, 2), (3, 4), None, (5, 6)]) == "M1.0 2.0L3.0 4.0M3.0 6.0h4"
    assert points([None]) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 1), (0.03, 0.05), (1, 1), (1.2, 2), (23, 25), (260, 500), (999, 1000)],
)
def test_scales_end_at_round_numbers(value: float, expected: float) -> None:
    """1, 2, 2.5, 5 or 10 times a power of ten."""
    assert nice(value) == pytest.approx(expected)
