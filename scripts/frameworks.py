"""The agent frameworks: which versions are supported, and the tests on the oldest and the newest of them.

``python scripts/frameworks.py page`` writes the compatibility part of ``docs/frameworks.md`` from
``docs/frameworks.toml``; with ``--check`` it only says whether it is current. ``matrix [NAME ...]`` makes an
environment for each framework and version in a cache folder (``.venv-frameworks-matrix``, or ``--cache``), runs the
framework's tests there, and prints a table; one version alone with ``--only``. It writes nothing else, unless
``--write FILE`` says where the table should stand. An environment that is there is used again; ``--fresh`` makes it anew.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "frameworks.md"
CACHE = ROOT / ".venv-frameworks-matrix"
BEGIN, END = "<!-- made of frameworks.toml -->\n", "<!-- end -->\n"
AGES = ("oldest", "newest")
_WITH = (
    "pytest>=8",
    "pytest-timeout",
    "pytest-asyncio",
    "tenacity",
    "opentelemetry-sdk",
    "uvicorn",
)
_SUMMARY = re.compile(r"\d+ (?:passed|failed|error|skipped)\b.* in [\d.]+s")
_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")


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


# The matrix


class Ended(NamedTuple):
    """How a framework's tests ended on one version. `said`: what pytest counted, or what went wrong before."""

    framework: str
    version: str
    age: str
    good: bool
    said: str
    seconds: float

    @property
    def cells(self) -> tuple[str, ...]:
        verdict = "good" if self.good else "not good"
        return (self.framework, self.version, self.age, verdict, self.said, f"{self.seconds:.0f} s")


def requirements(row: Mapping[str, Any], age: str) -> list[str]:
    """What to install for one version: our own needs, the tests', the framework."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    beside = row["beside"] if age == "oldest" else [_name(one) for one in row["beside"]]
    return [*project["dependencies"], *_WITH, f"{row['package']}=={row[age]}", *beside]


def _name(requirement: str) -> str:
    """A requirement without its version."""
    return re.split(r"[=<>~!;]", requirement, maxsplit=1)[0].strip()


def python_of(place: Path) -> str:
    """The interpreter of an environment."""
    return str(place / ("Scripts" if os.name == "nt" else "bin") / "python")


def installed(place: Path, wanted: Sequence[str], limit: float) -> str:
    """Make an environment, if there is none that holds what is wanted; gives what went wrong, or nothing."""
    ready = place / "ready"
    if ready.exists() and ready.read_text("utf-8").splitlines() == list(wanted):
        return ""
    if place.exists():
        shutil.rmtree(place)
    venv.create(place, with_pip=True)
    pip = [python_of(place), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*pip, *wanted], capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not installed within {limit:g} s"
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return f"not installed: {errors[-1] if errors else done.stderr.strip()[-300:]}"
    ready.write_text("\n".join(wanted), "utf-8")
    return ""


def tested(place: Path, suite: str, limit: float) -> tuple[bool, str]:
    """Run a framework's tests in an environment; what is tested is the source as it stands."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "FAILWISE_FRAMEWORK": suite,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        python_of(place),
        "-m",
        "pytest",
        f"tests/frameworks/test_{suite}.py",
        "-W",
        "default",
    ]
    log = place / "tests.log"
    try:
        with log.open("w", encoding="utf-8") as output:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT,
                timeout=limit, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"not ended within {limit:g} s: {log}"
    lines = log.read_text("utf-8", "replace").splitlines()
    summary = next((line for line in reversed(lines) if _SUMMARY.search(line)), "")
    counts = _COUNT.findall(summary)
    said = ", ".join(f"{number} {what}" for number, what in counts) or "no test ran"
    if not any(what == "passed" for _, what in counts):
        return False, f"{said}: {log}"
    return done.returncode == 0, said if done.returncode == 0 else f"{said}: {log}"


def matrix(
    frameworks: Mapping[str, Mapping[str, Any]],
    names: Iterable[str],
    ages: Sequence[str],
    cache: Path,
    *,
    fresh: bool,
    limit: float,
) -> list[Ended]:
    """The tests of each framework on each version; a version that is both is tested once."""
    ended = []
    for name in names:
        row = frameworks[name]
        versions = {row[age]: age for age in ages}
        if row["oldest"] == row["newest"]:
            versions = {row["newest"]: "only"}
        for version, age in versions.items():
            place = cache / f"{name}-{version}"
            if fresh and place.exists():
                shutil.rmtree(place)
            print(f"{row['title']} {version}: installing", file=sys.stderr, flush=True)
            began = time.monotonic()
            wrong = installed(place, requirements(row, age if age in AGES else "newest"), limit)
            if not wrong:
                print(f"{row['title']} {version}: testing", file=sys.stderr, flush=True)
            good, said = (False, wrong) if wrong else tested(place, row["suite"], limit)
            seconds = time.monotonic() - began
            ended.append(Ended(row["title"], version, age, good, said, seconds))
            print(" · ".join(ended[-1].cells), file=sys.stderr, flush=True)
    return ended


def shown(ended: Sequence[Ended]) -> str:
    """The table, in Markdown."""
    head = ("framework", "version", "", "tests", "counted", "took")
    rows = [head, *(one.cells for one in ended)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "| " + " | ".join("-" * max(3, width) for width in widths) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: as it should be; 1: the page is not current, or a test failed; 2: wrong usage."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page").add_argument("--check", action="store_true")
    of_matrix = commands.add_parser("matrix")
    of_matrix.add_argument("names", nargs="*", metavar="NAME", help="all, if none is given")
    of_matrix.add_argument("--only", choices=AGES, help="one version of each")
    of_matrix.add_argument("--cache", type=Path, default=CACHE, help="where environments are kept")
    of_matrix.add_argument("--fresh", action="store_true", help="make the environments anew")
    of_matrix.add_argument("--timeout", type=float, default=1200, help="seconds, for each step")
    of_matrix.add_argument("--write", type=Path, metavar="FILE", help="the table goes there, too")
    given = parser.parse_args(arguments)
    frameworks = table()
    if given.command == "page":
        text = PAGE.read_text("utf-8")
        made = written(text)
        if not given.check:
            PAGE.write_text(made, "utf-8")
        return int(given.check and made != text)
    unknown = [name for name in given.names if name not in frameworks]
    if unknown:
        parser.error(f"no framework is named {unknown[0]}; known are {', '.join(frameworks)}")
    names = given.names or list(frameworks)
    ages = (given.only,) if given.only else AGES
    ended = matrix(frameworks, names, ages, given.cache, fresh=given.fresh, limit=given.timeout)
    made = shown(ended)
    print(made, end="")
    if given.write:
        given.write.write_text(made, "utf-8")
    return int(not all(one.good for one in ended))


if __name__ == "__main__":
    sys.exit(main())
