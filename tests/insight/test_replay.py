"""Recorded failures before today's rules and another policy; and as regression tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from failwise.insight.backtest import backtest, rejudge
from failwise.insight.replaying import COMPARED, Replay, judge, replay
from failwise.journal.journal import Journal
from failwise.journal.reader import open_reader
from failwise.policy.decide import TablePolicy
from failwise.testing import judged
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect
from tests.cli.conftest import Failwise
from tests.insight import failing
from tests.insight.failing import NOW

SECRET = "sk-proj-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0"


def judged_otherwise(found: Replay) -> list[tuple[str, Any, Any]]:
    """What is judged otherwise; decisions are another matter."""
    return [(one.what, one.before, one.now) for one in found.differences if one.what in COMPARED]


def recorded(*results: Any) -> Journal:
    journal = failing.journal()
    for result in results:
        journal.put(result)
    return journal


def call(failure: Failure, tool: str = "t") -> dict[str, Any]:
    """The row of a call that failed so."""
    journal = recorded(failing.failed(failure, tool=tool, at=NOW, call_id="c1"))
    with open_reader(journal) as reader:
        row = reader.call("c1")
    journal.close()
    assert row is not None
    return row


EXCEPTIONS = [
    ConnectionRefusedError(111, "Connection refused"),
    ConnectionResetError(104, "Connection reset by peer"),
    TimeoutError("timed out"),
    httpx.ReadTimeout("timed out"),
    httpx.ConnectError("[Errno -2] Name or service not known"),
    KeyError("sku"),
    FileNotFoundError(2, "No such file or directory", "x.txt"),
    ModuleNotFoundError("No module named 'pandas'"),
]
ANSWERS = [
    (401, '{"error": {"code": "invalid_api_key", "message": "Incorrect API key"}}'),
    (403, '{"message": "forbidden"}'),
    (404, '{"error": "no such user 17"}'),
    (409, '{"error": "already exists"}'),
    (422, '{"detail": [{"loc": ["body", "n"], "msg": "field required", "type": "missing"}]}'),
    (429, '{"error": "slow down"}'),
    (500, '{"error": "internal"}'),
    (502, "<html><head><title>502 Bad Gateway</title></head></html>"),
    (503, '{"error": "overloaded"}'),
    (200, '{"ok": false, "error": "not_in_channel"}'),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: type(error).__name__)
def test_what_was_kept_of_an_exception_is_enough(error: BaseException) -> None:
    """From its kept text an exception is judged as it was live."""
    found = replay(call(failing.raised(error, tool="t")))
    assert (found.basis, judged_otherwise(found)) == ("message", [])


@pytest.mark.parametrize(("status", "body"), ANSWERS)
def test_what_was_kept_of_an_answer_is_enough(status: int, body: str) -> None:
    """From status and excerpt an answer is judged as it was live."""
    found = replay(call(failing.answered(status, body, tool="t")))
    assert found.basis == "excerpt"
    assert judged_otherwise(found) == []


def test_a_long_answer_needs_its_raw_form() -> None:
    """A body whose code stands beyond the excerpt is judged by the raw answer, where one was kept."""
    body = json.dumps(
        {"filler": "x" * 2_000, "error": {"code": "insufficient_quota", "message": "no quota"}}
    )
    row = call(failing.answered(429, body, tool="t"))
    raw = [{"body": body, "content_type": "application/json", "length": len(body)}]
    found = replay(row, raw=raw)
    assert (found.basis, judged_otherwise(found)) == ("raw", [])


def test_a_verdict_that_was_stated_stands() -> None:
    """The tool's own word, and what Failwise refused, were drawn from no evidence."""
    said = failing.raised(
        ToolError("seat taken", code="business.conflict", effect="rejected"), tool="t"
    )
    refused = Failure(Category.RUNTIME, "runtime.circuit_open", "open", Effect.NOT_SENT)
    for failure in (said, refused):
        found = replay(call(failure))
        assert (found.basis, found.case, found.now) == ("stated", None, found.before)


def test_what_is_judged_otherwise_is_shown() -> None:
    """A record of an older verdict: the differences are named, one by one."""
    row = call(failing.answered(429, '{"error": "slow down"}', tool="t"))
    row["failure"] |= {"category": "server", "code": "server.internal", "effect": "unknown"}
    found = replay(row)
    differences = {one.what: (one.before, one.now) for one in found.differences}
    assert differences["code"] == ("server.internal", "rate_limit.requests")
    assert differences["effect"] == ("unknown", "rejected")


def test_another_policy_decides_otherwise() -> None:
    """Each failed attempt gets the decision of the policy at hand."""
    failure = failing.raised(ConnectionRefusedError(111, "Connection refused"), tool="t")
    row = call(failure)
    usual = replay(row, policy=TablePolicy(jitter=0))
    strict = replay(
        row, policy=TablePolicy({"network": {"retries": 0, "retries_read": 0}}, jitter=0)
    )
    assert usual.steps[0].now.action is Action.RETRY_BACKOFF
    assert strict.steps[0].now.action is not Action.RETRY_BACKOFF


def test_a_success_has_nothing_to_judge() -> None:
    """A call that did not fail is refused, in words."""
    journal = recorded(failing.worked(tool="t", at=NOW, call_id="fine"))
    with open_reader(journal) as reader:
        row = reader.call("fine")
        assert row is not None
        with pytest.raises(UsageError, match="did not fail"):
            replay(row)
    journal.close()


def test_a_backtest_counts_what_would_change() -> None:
    """Retries that another policy leaves out, and the calls that they had saved."""
    refused = failing.raised(ConnectionRefusedError(111, "Connection refused"), tool="t")
    journal = recorded(
        *(failing.recovered(refused, tool="t", at=NOW - n, call_id=f"r{n}") for n in range(3)),
        *(failing.failed(failing.answered(403, "{}", tool="t"), tool="t", at=NOW - 9, call_id=f"f{n}")
          for n in range(2)),
        failing.worked(tool="t", at=NOW, call_id="fine"),
    )  # fmt: skip
    strict = TablePolicy({"network": {"retries": 0, "retries_read": 0}}, jitter=0)
    found = backtest(journal, strict, TablePolicy(jitter=0))
    assert (found.calls, found.decisions, found.changed) == (5, 5, 3)
    assert (found.left_out, found.lost, found.added) == (3, 3, 0)
    (change,) = found.changes
    assert (change.code, change.before, change.count) == (
        "network.connect_refused",
        "retry_backoff",
        3,
    )
    assert (found.waited, found.waits) == (3.0, 0.0)
    back = backtest(journal, TablePolicy(jitter=0), strict)
    assert (back.left_out, back.lost) == (0, 0)
    same = backtest(journal, TablePolicy(jitter=0), TablePolicy(jitter=0))
    assert same.changed == 0
    journal.close()


def test_reads_are_named() -> None:
    """An unknown effect is repeated for tools that are said to read, and for no others."""
    journal = recorded(failing.failed(failing.page(1), tool="search_web", at=NOW, call_id="c"))
    never = TablePolicy({"network": {"retries": 0, "retries_read": 0}}, jitter=0)
    usual = TablePolicy(jitter=0)
    assert backtest(journal, usual, never).added == 0
    assert backtest(journal, usual, never, read_only=["search_*"]).added == 1
    journal.close()


def test_judging_a_journal_again() -> None:
    """Which recorded failures have another code by today's rules."""
    old = failing.answered(429, '{"error": "slow down"}', tool="t")
    old.code, old.category = "server.internal", Category.SERVER  # type: ignore[misc]
    journal = recorded(
        failing.failed(old, tool="t", at=NOW, call_id="old"),
        failing.failed(failing.page(1), tool="t", at=NOW, call_id="same"),
        failing.failed(
            Failure(Category.RUNTIME, "runtime.deadline"), tool="t", at=NOW, call_id="none"
        ),
    )
    found = rejudge(journal)
    assert (found.looked, found.stood, found.changed) == (3, 1, 1)
    (change,) = found.changes
    assert (change.before, change.now, change.examples) == (
        "server.internal", "rate_limit.requests", ("old",),
    )  # fmt: skip
    journal.close()


def test_judged_reads_cases() -> None:
    """The public function for regression tests: a verdict, or None for a success."""
    failure = judged({"kind": "http", "input": {"status": 503, "body": ""}})
    assert failure is not None
    assert failure.category is Category.SERVER
    assert judged({"kind": "tool_result", "input": {"json": {"ok": True}}}) is None
    with pytest.raises(UsageError, match="kind"):
        judged({"kind": "stone", "input": {}})


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A journal with failures of several kinds, secrets in some of them."""
    where = str(tmp_path / "journal.db")
    journal = failing.journal(where)
    rows = {
        "exception": failing.raised(ConnectionRefusedError(111, "Connection refused"), tool="pay"),
        "page": failing.page(3),
        "key": failing.answered(401, json.dumps({"error": f"bad key {SECRET}"}), tool="pay"),
        "quotes": failing.answered(
            400, json.dumps({"error": '\'\'\'\\" 余额 """ \U0001f600 \\'}), tool="t"
        ),
        "stated": failing.raised(ToolError("x", code="business.conflict"), tool="t"),
        "quota": failing.answered(429, '{"error": {"code": "insufficient_quota"}}', tool="t"),
        "text": failing.raised(RuntimeError(f"login failed: password=hunter2 {SECRET}"), tool="t"),
    }
    for name, failure in rows.items():
        journal.put(failing.failed(failure, tool="t", at=NOW, call_id=name))
    journal.put(failing.worked(tool="t", at=NOW, call_id="fine"))
    journal.close()
    return where


@pytest.mark.parametrize("form", ["pytest", "case"])
def test_exports_hold_no_secret(failwise: Failwise, place: str, form: str) -> None:
    """Whatever is exported was redacted, and is once more."""
    for name in ("exception", "page", "key", "quotes", "quota", "text"):
        ended = failwise("export", name, "--journal", place, "--as", form)
        assert ended.code == 0
        assert SECRET not in ended.out
        assert "hunter2" not in ended.out


def test_exported_tests_pass(failwise: Failwise, place: str, tmp_path: Path) -> None:
    """The tests that are written pass when they are run, without journal or network."""
    folder = tmp_path / "exported"
    folder.mkdir()
    for name in ("exception", "page", "key", "quotes", "quota", "text"):
        ended = failwise(
            "export",
            name,
            "--journal",
            place,
            "--as",
            "pytest",
            "--output",
            str(folder / f"test_{name}.py"),
        )
        assert ended.code == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
         "--rootdir", str(folder), str(folder)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=folder,
        check=False,
        env={**os.environ, "FAILWISE_JOURNAL": os.devnull},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    again = failwise("export", "page", "--journal", place, "--output", str(folder / "test_page.py"))
    assert (again.code, "exists already" in again.err) == (2, True)


def test_an_exported_case_is_classified_alike(
    failwise: Failwise, place: str, tmp_path: Path
) -> None:
    """The case form is what ``failwise classify --jsonl`` reads."""
    case = failwise("export", "page", "--journal", place, "--as", "case").out
    answer = json.loads(failwise("classify", "--jsonl", "-", stdin=case).out)
    assert (answer["id"], answer["code"]) == ("page", "network.bad_gateway")
    assert judge(json.loads(case)) is not None


def test_the_command(failwise: Failwise, place: str, tmp_path: Path) -> None:
    """0 where nothing differs, 1 where something does; what cannot be is said."""
    same = failwise("replay", "quota", "--journal", place)
    assert same.code in (0, 1)
    strict = tmp_path / "strict.toml"
    strict.write_text("[network]\nretries = 0\nretries_read = 0\n")
    every = failwise("replay", "--all", "--journal", place, "--json")
    assert (every.code, json.loads(every.out)["changed"]) == (0, 0)
    tested = failwise(
        "replay", "--all", "--journal", place, "--policy", str(strict), "--read-only", "t"
    )
    assert tested.code == 1
    assert "decisions change" in tested.out
    assert failwise("replay", "exception", "--journal", place, "--policy", str(strict)).code in (
        0,
        1,
    )
    assert failwise("replay", "nobody", "--journal", place).code == 2
    assert failwise("replay", "fine", "--journal", place).code == 2
    assert failwise("replay", "--journal", place).code == 2
    ended = failwise("export", "stated", "--journal", place)
    assert (ended.code, "no evidence" in ended.err) == (2, True)
