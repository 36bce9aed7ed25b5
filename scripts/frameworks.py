"""The agent frameworks: which versions are supported, and the tests on the oldest of them.

``python scripts/frameworks.py page`` writes the compatibility part of ``docs/frameworks.md`` from
``docs/frameworks.toml``; with ``--check`` it only says whether it is current. ``matrix [NAME ...]`` makes an
environment ``.venv-frameworks-NAME`` for each framework's oldest version and runs its tests there.
"""

import argparse
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "frameworks.md"
BEGIN, END = "<!-- made of frameworks.toml -->\n", "<!-- end -->\n"
_WITH = (
    "pytest>=8",
    "pytest-timeout",
    "pytest-asyncio",
    "tenacity",
    "opentelemetry-sdk",
    "trustme",
)


def table() -> dict[str, dict[str, Any]]:
    """The frameworks by name."""
    return tomllib.loads((ROOT / "docs" / "frameworks.toml").read_text("utf-8"))


def part(frameworks: Mapping[str, Mapping[str, Any]]) -> str:
    """The compatibility part of the page."""
    lines = [
        "| framework | package, versions tested | the line |",
        "| --- | --- | --- |",
    ]
    for name, row in frameworks.items():
        versions = (
            row["oldest"]
            if row["oldest"] == row["newest"]
            else f"{row['oldest']} to {row['newest']}"
        )
        lines.append(
            f"| [{row['title']}](frameworks/{name}.md) | `{row['package']}` {versions} | `{row['line']}` |"
        )
    lines += [
        "",
        "| framework | passes untouched | its own retries | attempts are seen in | what it ends by itself |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in frameworks.values():
        cells = (row["title"], row["passes"], row["own"], row["traces"], row["reaches_not"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The page's text with its compatibility part made anew."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + part(table()) + END + rest.partition(END)[2]


def run_oldest(name: str, row: Mapping[str, Any]) -> int:
    """Install a framework's oldest version, and run its tests."""
    place = ROOT / f".venv-frameworks-{name.replace('_', '-')}"
    if not place.exists():
        venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    pins = [f"{row['package']}=={row['oldest']}", *row["beside"]]
    install = [python, "-m", "pip", "install", "--quiet", "--editable", str(ROOT), *_WITH]
    subprocess.run(install, check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pins], check=True)
    print(f"{row['title']}: {' '.join(pins)}", flush=True)
    tests = [python, "-m", "pytest", "tests/frameworks", "-W", "default"]
    environment = {**os.environ, "FAILWISE_FRAMEWORK": row["suite"]}
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """0: as it should be; 1: the page is not current, or a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page").add_argument("--check", action="store_true")
    commands.add_parser("matrix").add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    frameworks = table()
    if given.command == "page":
        text = PAGE.read_text("utf-8")
        made = written(text)
        if not given.check:
            PAGE.write_text(made, "utf-8")
        return int(given.check and made != text)
    chosen = given.names or [name for name, row in frameworks.items() if row["extra"]]
    return max(run_oldest(name, frameworks[name]) for name in chosen)


if __name__ == "__main__":
    sys.exit(main())
