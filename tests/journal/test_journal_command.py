"""``failwise journal`` and ``failwise effects``, on files and on a real PostgreSQL."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from journal_samples import OpenBorder, claim_of

from failwise.cli.main import main
from failwise.journal.journal import Journal
from failwise.journal.reader import open_reader
from failwise.journal.rollups import DAY
from failwise.testing.journal_samples import START, bad, good, many, recovered

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command; gives its exit code, its JSON (or text) and what it complained of."""
    monkeypatch.delenv("FAILWISE_JOURNAL", raising=False)
    monkeypatch.setenv("FAILWISE_LANG", "en")
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words: str) -> tuple[int, Any, str]:
        code = main(list(words))
        out, err = capsys.readouterr()
        return code, json.loads(out) if "--json" in words and out else out, err

    return command


def filled(place: Any, results: list[Any], **options: Any) -> str:
    """A journal that holds these calls, an open effect, one that is done, and a name."""
    journal = Journal(place, redactor=OpenBorder(), **options)
    for result in results:
        journal.put(result)
    for call, state in (("1", "unknown"), ("2", "done")):
        journal.claim(claim_of(call, arguments=call)).result(20)
        journal.settle(claim_of(call).key, state, good())
    open_reader(journal).name(["print-network.read_timeout"], "k", "gateway")
    assert journal.flush(30)
    journal.close()
    return journal._target.address


def figures(place: str) -> Any:
    """Counts by group; sums of floats depend on their order in the last digits."""
    with open_reader(place) as reader:
        found = reader.figures(by=("tool", "code", "hour", "asked"))
    return [
        row | {name: round(row[name], 3) for name in ("duration_ms", "waited_ms")} for row in found
    ]


def test_info_says_what_a_journal_holds(run: Run, tmp_path: Path) -> None:
    """Rows by table, the oldest and newest call, open effects; a table for people, JSON for programs."""
    place = filled(tmp_path / "a.db", [good("c1"), bad("c2", timestamp=START + 60)])
    code, found, _ = run("journal", "info", place, "--json")
    assert (code, found["engine"], found["rows"]["calls"], found["rows"]["attempts"]) == (
        0,
        "sqlite",
        2,
        2,
    )
    assert (found["oldest"], found["newest"]) == (START, START + 60)
    assert (found["open_effects"], found["calls_counted"]) == (1, 2)
    assert found["bytes"] > 10_000
    _, text, _ = run("journal", "info", place)
    assert "2 calls are kept" in text
    _, text, _ = run("journal", "info", place, "--lang", "zh")
    assert "保存 2 次调用" in text


def test_a_journal_moves_between_engines_and_back(run: Run, tmp_path: Path, postgres: str) -> None:
    """Every record, count, claim and name arrives; counts of calls that are gone too; a move that is
    done again adds nothing; the source stays."""
    first = filled(tmp_path / "a.db", many(600, span=2 * DAY), retention_rows=200)
    journal = Journal(first, redactor=OpenBorder(), retention_rows=200)
    while journal.prune():
        pass
    journal.close()
    before = figures(first)
    assert sum(row["calls"] for row in before) == 600
    code, told, _ = run("journal", "move", first, postgres, "--json")
    assert (code, told["calls"], told["known"], told["failed"], told["beside"]) == (0, 200, 0, 0, 3)
    assert told["counts"] > 0
    assert figures(postgres) == before == figures(first)
    code, told, _ = run("journal", "move", first, postgres, "--json")
    assert (code, told["calls"], told["known"], told["counts"], told["beside"]) == (0, 0, 200, 0, 0)
    back = str(tmp_path / "b.db")
    assert run("journal", "move", postgres, back)[0] == 0
    assert figures(back) == before
    with open_reader(first) as one, open_reader(back) as other:
        assert one.open_effects() == other.open_effects()
        assert one.names() == other.names()
        calls = [
            one.with_attempts(one.calls(limit=1_000)),
            other.with_attempts(other.calls(limit=1_000)),
        ]
        for found in calls:
            for call in found:
                call.pop("id")
                for attempt in call["attempts"]:
                    attempt.pop("call")
            found.sort(key=lambda call: (call["started"], call["call_id"]))
        assert calls[0] == calls[1]
    assert run("journal", "check", back)[0] == run("journal", "check", postgres)[0] == 0


def test_a_move_is_refused_while_something_is_sent_or_the_place_is_taken(
    run: Run, tmp_path: Path
) -> None:
    """Each with the reason, and what to do."""
    first = filled(tmp_path / "a.db", [good("c1")])
    other = filled(tmp_path / "b.db", [good("x1"), good("x2", timestamp=START + 1)])
    code, _, err = run("journal", "move", first, other)
    assert code == 2
    assert "a place of its own" in err
    assert run("journal", "move", first, first)[0] == 2
    journal = Journal(first, redactor=OpenBorder())
    journal.claim(claim_of("9", arguments="9")).result(10)
    journal.close()
    code, _, err = run("journal", "move", first, str(tmp_path / "c.db"))
    assert code == 2
    assert "being sent just now" in err


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_what_is_exported_can_be_imported(run: Run, tmp_path: Path, form: str) -> None:
    """The same figures, attempts and failures; the same file twice adds nothing."""
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    first = filled(tmp_path / "a.db", [*many(300), recovered("r", timestamp=START + 5)])
    file = str(tmp_path / f"calls.{form}")
    code, told, _ = run("journal", "export", first, "--output", file, "--json")
    assert (code, told["calls"]) == (0, 301)
    other = str(tmp_path / "b.db")
    code, told, _ = run("journal", "import", file, "--journal", other, "--json")
    assert (code, told) == (0, {"schema": 1, "calls": 301, "known": 0, "skipped": []})
    assert figures(other) == figures(first)
    code, told, _ = run("journal", "import", file, "--journal", other, "--json")
    assert (told["calls"], told["known"]) == (0, 301)
    with open_reader(first) as one, open_reader(other) as two:
        assert one.attempts(by=("tool", "code")) == two.attempts(by=("tool", "code"))
        assert [c["failure"] for c in one.failures()] == [c["failure"] for c in two.failures()]
    assert run("journal", "export", first, "--output", file)[0] == 2  # never over another file


def test_an_export_can_be_narrowed_and_goes_to_a_pipe(run: Run, tmp_path: Path) -> None:
    """By time, tool, code and outcome; JSON lines without a file."""
    place = filled(tmp_path / "a.db", many(200))
    _, text, _ = run("journal", "export", place, "--failures", "--tool", "pay")
    calls = [json.loads(line) for line in text.splitlines()]
    assert calls
    assert {(call["tool"], call["success"]) for call in calls} == {("pay", False)}
    assert all(call["attempts"] and call["failure"]["category"] for call in calls)
    _, text, _ = run(
        "journal", "export", place, "--since", "2027-01-16", "--code", "server.internal"
    )
    assert {json.loads(line)["code"] for line in text.splitlines()} == {"server.internal"}
    assert run("journal", "export", place, "--format", "parquet")[0] == 2


def test_bulk_lines_are_what_a_search_engine_takes(run: Run, tmp_path: Path) -> None:
    """An action and a document by turns; a moment; no field whose type changes; the same ids again."""
    place = filled(tmp_path / "a.db", [good("c1"), bad("c2", arguments={"q": 1})])
    _, text, _ = run("journal", "export", place, "--format", "bulk", "--index", "calls")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [set(line) for line in lines[::2]] == [{"create"}] * 2
    assert {line["create"]["_index"] for line in lines[::2]} == {"calls"}
    assert len({line["create"]["_id"] for line in lines[::2]}) == 2
    assert {line["@timestamp"] for line in lines[1::2]} == {"2027-01-15T08:00:00.000Z"}
    assert {type(line["arguments"]) for line in lines[1::2]} == {str, type(None)}
    assert run("journal", "export", place, "--format", "bulk", "--index", "calls")[1] == text


def test_an_import_takes_what_it_can_and_says_the_rest(run: Run, tmp_path: Path) -> None:
    """Lines that are no calls are named; secrets of a file that somebody made are redacted."""
    file = tmp_path / "odd.jsonl"
    call = {"call_id": "c", "tool": "t", "started": START, "message": "password=hunter2hunter2"}
    file.write_text(
        "\n".join(
            [
                json.dumps(call | {"arguments": {"password": "hunter2hunter2"}}),
                "no json",
                "[1]",
                json.dumps({"call_id": "c", "tool": "t"}),
                json.dumps(call | {"started": "yesterday"}),
                json.dumps(call | {"attempts": 7}),
                json.dumps(call | {"call_id": "x" * 10_000, "unknown": 1}),
            ]
        )
    )
    place = str(tmp_path / "a.db")
    code, told, _ = run("journal", "import", str(file), "--journal", place, "--json")
    assert (code, told["calls"], len(told["skipped"])) == (1, 2, 5)
    assert told["skipped"][0].startswith(f"{file}:2: no JSON")
    assert b"hunter2" not in Path(place).read_bytes()
    assert run("journal", "import", str(tmp_path / "none.jsonl"), "--journal", place)[0] == 2


def test_prune_removes_now(run: Run, tmp_path: Path, postgres: str) -> None:
    """By number or age, only when told what to keep; counts and open effects stay."""
    for new in (tmp_path / "a.db", postgres):
        place = filled(new, [good(f"c{n}", timestamp=START + n) for n in range(50)])
        assert run("journal", "prune", place)[0] == 2
        code, told, _ = run("journal", "prune", place, "--rows", "20", "--vacuum", "--json")
        assert (code, told["removed"], told["kept"]) == (0, 30, 20)
        _, found, _ = run("journal", "info", place, "--json")
        assert (found["calls_counted"], found["open_effects"]) == (50, 1)
        assert run("journal", "check", place)[0] == 0


def test_check_finds_what_is_wrong(run: Run, tmp_path: Path) -> None:
    """A sound journal is said to be; lost counts, attempts without calls and damage are found."""
    place = filled(tmp_path / "a.db", many(200))
    code, told, _ = run("journal", "check", place, "--json")
    assert (code, told["sound"], told["findings"]) == (0, True, [])
    with sqlite3.connect(place) as connection:
        connection.execute("DELETE FROM rollup_calls WHERE hour = (SELECT max(hour) FROM calls)")
        connection.execute("INSERT INTO attempts (call, position, number, started, duration_ms)"
                           " VALUES (999999, 0, 1, 0, 0)")  # fmt: skip
    connection.close()
    code, told, _ = run("journal", "check", place, "--json")
    assert (code, {one["what"] for one in told["findings"]}) == (1, {"attempts", "counts"})
    _, text, _ = run("journal", "check", place)
    assert "rollup_calls lacks" in text


def test_a_journal_that_is_not_there_is_said(run: Run, tmp_path: Path, postgres: str) -> None:
    """Looking makes nothing: no file, no schema."""
    for place in (str(tmp_path / "none.db"), postgres):
        for what in ("info", "check", "export"):
            code, _, err = run("journal", what, place)
            assert code == 2
            assert "no journal here" in err
    assert not list(tmp_path.iterdir())


def test_effects_are_listed_and_settled_in_postgresql(run: Run, postgres: str) -> None:
    """As in a file: open ones with what was asked for, settled by the beginning of their key."""
    filled(postgres, [])
    code, effect, _ = run("effects", "--journal", postgres, "--json")
    assert (code, effect["tool"], effect["arguments"]) == (0, "order", {"what": "1"})
    code, told, _ = run("effects", "settle", "key-run-1", "done", "--journal", postgres, "--json")
    assert (code, told["before"]) == (0, "unknown")
    assert run("effects", "--journal", postgres, "--json")[1] == ""
    code, _, err = run("effects", "settle", "key-run-1", "not_done", "--journal", postgres)
    assert code == 2
    assert "is done" in err


def test_a_url_may_stand_in_the_configuration(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of a path, or in a variable that the file names."""
    from failwise.cli.configuration import load

    file = tmp_path / "failwise.toml"
    monkeypatch.setenv("THE_JOURNAL", postgres)
    for text in (f'url = "{postgres}"', 'env = "THE_JOURNAL"\nraw = true\nretention_days = 3'):
        file.write_text(f"[journal]\n{text}\n")
        runtime = load(file)
        assert runtime.journal.place.startswith("postgresql://postgres:****@")
        runtime.journal.put(good())
        assert runtime.journal.flush(20)
        runtime.close()
    with open_reader(postgres) as reader:
        assert [row["calls"] for row in reader.figures()] == [2]
