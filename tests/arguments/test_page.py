"""The tables of `docs/arguments.md` say what really happens."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from failwise.arguments import ArgumentReader, fix_from_violations
from failwise.classify.violations import violations

PAGE = Path(__file__).parents[2] / "docs" / "arguments.md"
TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": TEXT,
        "limit": {"type": "integer"},
        "fast": {"type": "boolean"},
        "tags": {"type": "array", "items": TEXT},
        "day": {"type": "string", "format": "date"},
        "sort": {"enum": ["price", "name"]},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without their backticks."""
    text = PAGE.read_text("utf-8").split(f"\n## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [
        [cell[1:-1].replace("↵", "\n") if cell[:1] == cell[-1:] == "`" else cell for cell in row]
        for row in cells
    ]


@pytest.mark.parametrize("heading", ["Syntax: lossless", "Values: unique"])
def test_what_is_repaired(heading: str) -> None:
    """Each text is read as the page says, with the repair and the grade it names."""
    table = rows(heading)
    assert len(table) > 10
    grade = heading.partition(": ")[2]
    for written, due, kind in table:
        reading = ArgumentReader(SCHEMA, "search").read(written)
        assert reading.arguments == json.loads(due), written
        assert (kind, grade) in {(r.kind, r.grade.value) for r in reading.repairs}, written


def test_what_goes_back() -> None:
    """None of these texts gives arguments."""
    table = rows("What goes back to the model")
    assert len(table) > 10
    for written, _ in table:
        assert ArgumentReader(SCHEMA, "search").read(written).failure is not None, written


def test_what_an_upstream_said() -> None:
    """Each sentence leads to the correction that the page names, of that grade."""
    for said, sent, due, grade in rows("When the upstream refuses"):
        (violation,) = violations({}, said)
        value: Any = int(sent) if violation["rule"] == "range" else sent
        schema = {"type": "object", "properties": {violation["parameter"]: {}}}
        fixed = fix_from_violations(schema, {violation["parameter"]: value}, [violation])
        assert fixed is not None, said
        arguments, (repair,) = fixed
        assert str(arguments[violation["parameter"]]) == due
        assert repair.grade.value == grade
