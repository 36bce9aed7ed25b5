"""The fenced blocks of a page, and how its Python is run: as a reader would, from top to bottom."""

import ast
import asyncio
import contextlib
import inspect
import io
import re
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: its language, its text, the line of the page it begins on."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """The pages of the project; those of `faults.md` have tests of their own."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def run(code: CodeType, names: dict[str, Any]) -> str:
    """Run one block in `names`, ``await`` at its top level included; gives what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(FunctionType(code, names)())
        else:
            exec(code, names)
    return printed.getvalue()


def compiled(block: Block, page: Path) -> CodeType:
    """The block as code whose tracebacks name the page and its line."""
    padded = "\n" * block.line + block.text
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(
        padded, str(page.relative_to(ROOT)), "exec", flags=flags, dont_inherit=True
    )
    return code
