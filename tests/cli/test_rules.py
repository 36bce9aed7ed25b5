"""``failwise rules``: from what no rule knew to a rule that a person accepted."""

import contextlib
import json
import threading
import tomllib
from pathlib import Path

import pytest

import failwise
from failwise.journal.journal import Journal
from tests.cli.conftest import Failwise

LIMBO = "Widget {number} at depot 'north-{number}' is in limbo (code LX-99)"


def _advised() -> None:
    for thread in threading.enumerate():
        if thread.name == "failwise-advisor":
            thread.join(5)


def fail(journal: Path, rules: tuple[Path, ...] = (), *, ask: bool = True) -> list[str]:
    """Three failures that no rule of the package knows, and one that nobody names; their rules."""

    def named(failure: failwise.Failure) -> str | None:
        return "server.unavailable" if "limbo" in failure.message else None

    found = []
    with failwise.Runtime(journal, advisor=named if ask else None, rules=rules) as runtime:

        @runtime.tool()
        def move(number: int) -> str:
            raise RuntimeError(LIMBO.format(number=number))

        @runtime.tool()
        def stack(number: int) -> str:
            raise RuntimeError("The stack leans to the left again")

        for number in range(3):
            result = runtime.call_sync("move", {"number": number})
            _advised()
            assert result.failure is not None
            found.append(result.failure.rule)
        runtime.call_sync("stack", {"number": 1})
        _advised()
    return found


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal in a folder of its own, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "journal.db"
    assert fail(path) == ["none", "advisor", "advisor"]
    return path


def test_the_whole_way(failwise: Failwise, journal: Path) -> None:
    """Suggest, check, accept, use: then a rule of one's own knows it, and nothing is left to suggest
    of it."""
    where = ("--journal", str(journal))
    ended = failwise("rules", "suggest", *where, "--output", "draft.toml")
    assert ended.code == 0
    assert "2 drafts, 1 of them complete" in ended.out
    draft = Path("draft.toml").read_text("utf-8")
    (row,) = tomllib.loads(draft)["rules"]
    assert row["code"] == "server.unavailable"
    assert "advisor" in row["origin"]
    assert '# code = ""' in draft

    assert failwise("rules", "check", "draft.toml").code == 0
    ended = failwise("rules", "accept", "draft.toml", *where)
    assert ended.code == 0
    assert 'rules = ["rules.toml"]' in ended.out
    kept = Path("rules.toml").read_text("utf-8")
    assert 'code = ""' not in kept
    Path("failwise.toml").write_text('[classification]\nrules = ["rules.toml"]\n', "utf-8")

    name = f"own.{row['id']}"
    assert name in failwise("rules", "list", "--own").out
    assert fail(journal, (Path("rules.toml"),)) == [name] * 3
    again = failwise("rules", "suggest", *where, "--json")
    assert [json.loads(line)["complete"] for line in again.out.splitlines()] == [False]
    ended = failwise("explain", LIMBO.format(number=7), "--rules", "rules.toml")
    assert name in ended.out


def test_accepting_twice_is_refused(failwise: Failwise, journal: Path) -> None:
    """An id that stands in the file already, and a draft that is the file, are said."""
    where = ("--journal", str(journal))
    failwise("rules", "suggest", *where, "--output", "draft.toml")
    assert failwise("rules", "accept", "draft.toml", *where).code == 0
    before = Path("rules.toml").read_text("utf-8")
    ended = failwise("rules", "accept", "draft.toml", *where)
    assert ended.code == 1
    assert "already" in ended.out
    assert failwise("rules", "accept", "rules.toml", *where).code == 2
    assert Path("rules.toml").read_text("utf-8") == before
    ended = failwise("rules", "suggest", *where, "--output", "draft.toml")
    assert ended.code == 2
    assert "there already" in ended.err


def test_a_refused_answer_labels_nothing(failwise: Failwise, journal: Path) -> None:
    """After `reject` another process neither labels with it nor asks again."""
    where = ("--journal", str(journal))
    line = json.loads(failwise("rules", "suggest", *where, "--json").out.splitlines()[0])
    ended = failwise("rules", "reject", line["fingerprint"][:8], *where)
    assert ended.code == 0
    assert "server.unavailable" in ended.out
    assert fail(journal) == ["none"] * 3
    left = failwise("rules", "suggest", *where, "--json").out.splitlines()
    assert line["fingerprint"] not in {json.loads(one)["fingerprint"] for one in left}
    ended = failwise("rules", "reject", "ffffffff", *where)
    assert ended.code == 2
    assert "nothing was asked" in ended.err


def test_a_fault_is_said_with_its_line(failwise: Failwise, tmp_path: Path) -> None:
    """`check` names file and line of every fault, and ends with 1."""
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[rules]]\nid = "a"\nneed = ["abc"]\ncode = "server.nope"\nexample = "abc"\ncounter = "x"\n\n'
        '[[rules]]\nid = "b"\nneed = ["abc"]\ncode = "server.internal"\nexample = "x"\ncounter = "y"\n',
        "utf-8",
    )
    ended = failwise("rules", "check", str(path), str(tmp_path / "none.toml"))
    assert ended.code == 1
    assert f"{path}:1: rule 'a'" in ended.out
    assert f"{path}:8: rule 'b'" in ended.out
    assert "none.toml" in ended.out
    data = json.loads(failwise("rules", "check", "--json", str(path)).out)
    assert len(data["problems"]) == 2


def test_a_configuration_that_names_rules_and_an_advisor(
    failwise: Failwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`[classification]` and `[advisor]` are read by whoever loads the file; faults have a line."""
    from failwise.cli.configuration import load
    from failwise.vocabulary.errors import ConfigurationError

    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "who_knows.py").write_text("def ask(failure):\n    return None\n", "utf-8")
    (tmp_path / "mine.toml").write_text(
        '[[rules]]\nid = "a"\nneed = ["abc"]\ncode = "server.internal"\nexample = "abc"\ncounter = "x"\n',
        "utf-8",
    )
    path = tmp_path / "failwise.toml"
    good = '[advisor]\nfunction = "who_knows:ask"\nper_hour = 3\n[classification]\nrules = ["mine.toml"]\n'
    path.write_text(good, "utf-8")
    load(path).close()
    assert failwise("rules", "list", "--own", "--config", str(path)).out.count("own.a") == 1
    for old, new, reason in (
        ("per_hour = 3", "per_hour = 0", ":1: .*per_hour"),
        ("per_hour", "per_minute", ":3: .*per_hour"),
        ("mine.toml", "none.toml", ":5: .*does not exist"),
        ('function = "who_knows:ask"\n', "", ":1: .*function"),
    ):
        path.write_text(good.replace(old, new), "utf-8")
        with pytest.raises(ConfigurationError, match=reason):
            load(path)


def test_nothing_to_suggest(failwise: Failwise, tmp_path: Path) -> None:
    """A journal whose failures are all known gives nothing, and says so, in Chinese too."""
    path = tmp_path / "journal.db"
    with contextlib.closing(Journal(path)) as journal:
        journal.rows("SELECT 1")
    ended = failwise("rules", "suggest", "--journal", str(path))
    assert (ended.code, "Nothing to suggest" in ended.out) == (0, True)
    assert "没有可建议" in failwise("rules", "suggest", "--journal", str(path), "--lang", "zh").out
