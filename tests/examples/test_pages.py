"""What the pages show is true: their Python runs, prints what they say, and their tables hold."""

import re
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from failwise.cli.main import COMMANDS
from failwise.policy import load
from failwise.vocabulary.codes import registry
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, StopReason
from tests.examples.pages import ROOT, blocks, compiled, pages, run

OWN = {"faults.md", "configuration.md", "engines.md"}
"""Their blocks stand for themselves and are held by the tests of their rooms."""

PAGES = pages()
RUN = [page for page in PAGES if page.name not in OWN]


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def _file_name(text: str) -> str | None:
    """The file that a block says it is, in its first line."""
    found = re.match(r"# ([a-z]+\.(?:toml|yaml))$", text.partition("\n")[0])
    return found[1] if found else None


@pytest.mark.parametrize("page", RUN, ids=names(RUN))
def test_the_python_of_a_page_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of a page run in order, in one namespace; a ``text`` block after one is its output.

    A ``yaml`` block is the file of its id, one that begins with ``# NAME.toml`` or ``# NAME.yaml`` that file.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAILWISE_JOURNAL", ":memory:")
    monkeypatch.delenv("FAILWISE", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    namespace = {"__name__": "page"}
    shown = blocks(page)
    for block, after in pairwise([*shown, None]):
        assert block is not None
        if block.language == "yaml":
            own = _file_name(block.text)
            (tmp_path / (own or f"{block.text.partition('id: ')[2].split()[0]}.yaml")).write_text(
                block.text, "utf-8"
            )
        if block.language == "toml" and (name := _file_name(block.text)):
            (tmp_path / name).write_text(block.text, "utf-8")
        if block.language != "python":
            continue
        printed = run(compiled(block, page), namespace)
        if after is not None and after.language == "text":
            assert printed.rstrip() == after.text.rstrip()


@pytest.mark.parametrize("page", RUN, ids=names(RUN))
def test_the_toml_of_a_page_is_a_policy(page: Path) -> None:
    """What a page tells to write into a policy file is accepted there."""
    for block in blocks(page):
        if block.language == "toml" and not _file_name(block.text):
            load(tomllib.loads(block.text))


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_commands_of_a_page_exist(page: Path) -> None:
    """Each `failwise` command shown is one there is, with options that it has."""
    shown = [
        line.removeprefix("$ ").partition(" #")[0].strip()
        for block in blocks(page)
        if block.language in ("sh", "console")
        for line in block.text.splitlines()
        if "failwise " in line
    ]
    for line in shown:
        words = shlex.split(line.partition("failwise ")[2].split("|")[0].split(">")[0])
        command = words[0] if words else ""
        if line.startswith("pip ") or command.startswith("-"):
            continue
        assert command in COMMANDS, line
        options = {word for word in words[1:] if word.startswith("--")}
        if options:
            told = subprocess.run(
                [sys.executable, "-m", "failwise.cli.main", command, "--help"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert options <= set(re.findall(r"--[a-z-]+", told)), line


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """Each relative link names a file that is there."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_concepts_name_every_word_of_the_vocabulary() -> None:
    """`docs/concepts.md` has each category with its codes, and every effect, action and reason."""
    text = (ROOT / "docs/concepts.md").read_text("utf-8")
    table = text.partition("## What became")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", table, re.MULTILINE))
    for category in Category:
        codes = {
            name.partition(".")[2]
            for name, code in registry().items()
            if code.category is category and not code.deprecated
        }
        assert set(re.findall(r"`(\w+)`", rows[category.value])) == codes, category
    for word in (*Effect, *Action, *StopReason, *FixBy):
        assert f"`{word.value}`" in text


def test_the_policy_page_shows_the_presets_as_they_are() -> None:
    """The table of `docs/policy.md` has the figures of the `default` preset."""
    text = (ROOT / "docs/policy.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `([\w.]+)` \| (\w+) \| ([\d.]+|–) \| (\d) \| (\d) \|", text, re.MULTILINE
    )
    assert {name for name, *_ in rows} >= set(Category)
    for name, strategy, base, retries, retries_read in rows:
        row = load("default").row(name)
        assert row.strategy == strategy
        assert (f"{row.base:g}" if row.strategy != "none" else "–") == base
        assert (row.retries, row.retries_read) == (int(retries), int(retries_read)), name


def test_both_readmes_have_the_same_code() -> None:
    """The Chinese README shows the same code; only words in it are in another language."""
    english, chinese = (
        [(b.language, re.sub(r"#.*|\"\"\".*?\"\"\"", "", b.text)) for b in blocks(ROOT / name)]
        for name in ("README.md", "README.zh-CN.md")
    )
    assert [language for language, _ in english] == [language for language, _ in chinese]
    for (language, one), (_, other) in zip(english, chinese, strict=True):
        if language in ("python", "toml", "sh"):
            assert "".join(one.split()) == "".join(other.split())
