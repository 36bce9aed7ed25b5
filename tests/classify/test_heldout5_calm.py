"""Lines of logs and JSON answers that speak of failures and are none, each kind beside its failing twin.

Written before the rules met them; lines of forty products at calm levels, steps of tests and installers,
answers whose fields are named like errors. First right: 270 of 304, then 56 of 70, then 51 of 69 (the last
mostly lines of tests and builds). The rules have seen them since.
"""

from collections import Counter

import pytest

from failwise.classify.calm import is_mended, is_step
from tests.classify import recorded

_ROWS = recorded.rows("heldout5_calm.jsonl")


def _right(row: recorded.Row) -> bool:
    return bool((recorded.given(row)["category"] == "success") == row["fine"])


def test_what_was_right_at_first() -> None:
    """The figures of the first runs are those of the rows, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_try"]) == {1: 270, 2: 56, 3: 51}


def test_fine_ones_are_no_failures() -> None:
    """Of 353 at most 10 are called failures."""
    fine = [row for row in _ROWS if row["fine"]]
    assert len(fine) >= 340
    wrong = [row["id"] for row in fine if not _right(row)]
    assert len(wrong) <= 10, wrong


def test_their_twins_are_failures() -> None:
    """Of 90 that failed at most 3 are missed."""
    failed = [row for row in _ROWS if not row["fine"]]
    assert len(failed) >= 85
    wrong = [row["id"] for row in failed if not _right(row)]
    assert len(wrong) <= 3, wrong


@pytest.mark.parametrize(
    ("mended", "worse"),
    [
        (
            "config not found, using defaults",
            "config not found, using defaults failed: access denied",
        ),
        ("removed 42 expired tokens", "removed 42 tokens: token store timed out"),
        ("rate limit: 4998/5000 remaining", "rate limit exceeded: 0/5000 remaining"),
        ("未找到缓存, 从数据库加载", "未找到缓存, 从数据库加载失败"),
        (
            "Konfiguration nicht gefunden, Standardwerte werden verwendet",
            "Konfiguration nicht gefunden",
        ),
    ],
)
def test_what_follows_decides(mended: str, worse: str) -> None:
    """What was done about it must be the end of the story."""
    assert is_mended(mended)
    assert not is_mended(worse)


@pytest.mark.parametrize(
    ("step", "other"),
    [
        ("ok 3 - rejects invalid input", "not ok 3 - rejects invalid input"),
        (
            "tests/test_a.py::test_timeout PASSED [ 42%]",
            "tests/test_a.py::test_timeout FAILED [ 42%]",
        ),
        ("--- PASS: TestTimeout (0.00s)", "--- FAIL: TestTimeout (0.00s)"),
        (
            "Successfully installed async-timeout-4.0.3",
            "ERROR: Failed building wheel for async-timeout",
        ),
        ("Compiling thiserror v1.0.56", "error: could not compile `thiserror` (lib)"),
    ],
)
def test_names_of_steps_are_no_news(step: str, other: str) -> None:
    """A test, a package or a page may be named after a failure."""
    assert is_step(step)
    assert not is_step(other)
