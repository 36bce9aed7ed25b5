"""Recorded failures with labels, and how often the verdicts agree with them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from failwise.classify.contract import answer

Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """The rows of a file beside the tests."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def given(row: Row) -> dict[str, Any]:
    """The verdict by the names of the labels."""
    verdict = answer(row)
    return {**verdict, "retry_after": verdict["retry_after_s"]}


def agrees(got: Any, wanted: Any) -> bool:
    """Is it the label, one of the labels, or the same wait?"""
    return bool(got in wanted if isinstance(wanted, list) else got == wanted)


def shares(recorded: list[Row]) -> tuple[dict[str, float], list[tuple[object, ...]]]:
    """Of each labelled field the share that is right, and all that is not."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    wrong: list[tuple[object, ...]] = []
    for row in recorded:
        got = given(row)
        for name, wanted in row["expect"].items():
            asked[name] += 1
            if agrees(got[name], wanted):
                right[name] += 1
            else:
                wrong.append((row["id"], name, got[name], got["rule"]))
    return {name: right[name] / number for name, number in asked.items()}, wrong


def called_failures(recorded: list[Row]) -> tuple[list[str], int]:
    """The successes that are called failures, and the number of all."""
    fine = [row for row in recorded if row["expect"]["category"] == ["success"]]
    return [row["id"] for row in fine if given(row)["category"] != "success"], len(fine)


def called_safe(recorded: list[Row]) -> list[str]:
    """Where the side effect may have happened, and something else is said."""
    open_ones = [row for row in recorded if row["expect"].get("effect") == ["unknown"]]
    return [row["id"] for row in open_ones if given(row)["effect"] != "unknown"]
