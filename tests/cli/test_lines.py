"""The JSON-lines contracts: one answer a line, in order, whatever comes in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from failwise.cli.inputs import LINE_LIMIT
from tests.cli.conftest import Failwise

SCHEMA = {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]}


def jsonl(*cases: object) -> str:
    return "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)


def answers(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_classify_answers_every_kind(failwise: Failwise) -> None:
    """Text, HTTP answers, tool results and arguments are answered by the contract."""
    given = jsonl(
        {"id": "t", "kind": "text", "input": {"text": "获取失败: 502 Bad Gateway"}},
        {
            "id": "h",
            "kind": "http",
            "input": {"status": 429, "headers": {"retry-after": "7"}, "body": "slow down"},
        },
        {"id": "r", "kind": "tool_result", "input": {"json": {"error": None, "price": 500}}},
        {
            "id": "a",
            "kind": "arguments",
            "input": {"tool": "list", "schema": SCHEMA, "raw": "{'limit': '5',}"},
        },
    )
    ended = failwise("classify", "--jsonl", "-", stdin=given)
    assert (ended.code, ended.err) == (0, "")
    text, http, result, arguments = answers(ended.out)
    assert (text["id"], text["code"], text["retry"]) == ("t", "network.bad_gateway", "yes")
    assert (http["category"], http["retry"], http["retry_after_s"]) == (
        "rate_limit",
        "after_wait",
        7,
    )
    assert (result["category"], result["effect"]) == ("success", None)
    assert arguments == {
        "id": "a",
        "category": "model_output",
        "retry": "after_fix",
        "effect": "not_sent",
        "repaired": {"limit": 5},
    }


def test_arguments_and_redact_keep_their_contracts(failwise: Failwise) -> None:
    """What cannot be read is null; a text comes back without its secret."""
    given = jsonl(
        {"id": 1, "tool": "list", "schema": SCHEMA, "raw": '{"limit": 5}'},
        {"id": 2, "tool": "list", "schema": SCHEMA, "raw": "I would rather not."},
    )
    ended = failwise("arguments", "--jsonl", "-", stdin=given)
    assert answers(ended.out) == [{"arguments": {"limit": 5}}, {"arguments": None}]
    secret = "hunter2hunter2"
    ended = failwise("redact", "--jsonl", "-", stdin=jsonl({"id": 1, "text": f"password={secret}"}))
    (answer,) = answers(ended.out)
    assert set(answer) == {"text"}
    assert secret not in ended.out


def test_a_bad_line_keeps_the_others_in_step(failwise: Failwise) -> None:
    """A line that is no case is answered with an error naming it; the rest is answered; exit code 2."""
    given = "\n".join(
        (
            '{"id": 1, "text": "a"}',
            "nonsense",
            "[1]",
            '{"id": 4}',
            "",
            '{"id": 6, "text": "b"}',
        )
    )
    ended = failwise("redact", "--jsonl", "-", stdin=given)
    first, second, third, fourth, last = answers(ended.out)
    assert (first, last) == ({"text": "a"}, {"text": "b"})
    assert str(second["error"]).startswith("line 2: not JSON")
    assert str(third["error"]).startswith("line 3: a JSON list")
    assert (fourth["id"], "'text' is missing" in str(fourth["error"])) == (4, True)
    assert ended.code == 2
    assert "3 of the lines" in ended.err
    assert "line 2" in ended.err


def test_a_line_is_bounded(failwise: Failwise) -> None:
    """A line above the limit is refused without being kept, and the next one is answered."""
    given = "x" * (LINE_LIMIT + 10) + '\n{"text": "after"}\n'
    ended = failwise("redact", "--jsonl", "-", stdin=given)
    refused, after = answers(ended.out)
    assert "longer than" in str(refused["error"])
    assert after == {"text": "after"}


def test_unknown_kinds_and_bad_schemas_are_said(failwise: Failwise) -> None:
    """A kind that is none, an input that is no object, a schema that is wrong: told by line."""
    given = jsonl(
        {"id": 1, "kind": "gossip", "input": {}},
        {"id": 2, "kind": "text", "input": "plain"},
        {"id": 3, "kind": "http", "input": {}},
    )
    ended = failwise("classify", "--jsonl", "-", stdin=given)
    assert ended.code == 2
    assert [answer["id"] for answer in answers(ended.out)] == [1, 2, 3]
    assert all("error" in answer for answer in answers(ended.out))
    wrong = jsonl({"id": 1, "tool": "t", "schema": {"type": "no such"}, "raw": "{}"})
    assert failwise("arguments", "--jsonl", "-", stdin=wrong).code == 2


def test_one_answer_is_one_line_for_every_reader(failwise: Failwise) -> None:
    """Marks that some readers take for line ends leave as escapes, and come back whole."""
    text = "a\x85b\u2028c\u2029d"
    ended = failwise("redact", "--jsonl", "-", stdin=jsonl({"text": text}))
    assert answers(ended.out) == [{"text": text}]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    command=st.sampled_from(["classify", "arguments", "redact"]),
)
def test_any_text_gets_one_answer(failwise: Failwise, text: str, command: str) -> None:
    """Whatever a text holds, its line is answered by exactly one line of JSON."""
    case = {
        "classify": {"id": 1, "kind": "text", "input": {"text": text}},
        "arguments": {"id": 1, "tool": "t", "schema": SCHEMA, "raw": text},
        "redact": {"id": 1, "text": text},
    }[command]
    ended = failwise(command, "--jsonl", "-", stdin=jsonl(case))
    assert ended.code == 0
    assert len(answers(ended.out)) == 1


@pytest.mark.parametrize("command", ["classify", "arguments", "redact"])
def test_nothing_in_nothing_out(failwise: Failwise, command: str) -> None:
    """An empty input is no error."""
    ended = failwise(command, "--jsonl", "-")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_each_answer_comes_before_the_next_question() -> None:
    """A program may write one line and wait for its answer: nothing waits for a buffer to fill."""
    command = [sys.executable, "-m", "failwise.cli.main", "classify", "--jsonl", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("a", "b"):
            case = {"id": name, "kind": "text", "input": {"text": "503 Service Unavailable"}}
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == name
        process.stdin.write(b'{"id": "c", "kind": "text", "input": {"text": "fine"}}')
        process.stdin.close()
        assert json.loads(process.stdout.readline())["category"] == "success"
        assert process.wait(30) == 0


RULES = """\
origin = "the warehouse's manual"

[[rules]]
id = "warehouse.limbo"
need = ["in limbo"]
code = "business.conflict"
example = "Widget 7 is in limbo"
counter = "Widget 7 is in stock"
"""


def test_classify_with_rules_of_ones_own(failwise: Failwise, tmp_path: Path) -> None:
    """A line that is fine by our rules and a failure by the user's: in each way of asking."""
    rules, log = tmp_path / "rules.toml", tmp_path / "app.log"
    rules.write_text(RULES, "utf-8")
    log.write_text("Widget 7 is in stock\nWidget 8 is in limbo\n", "utf-8")
    case = {"id": 1, "kind": "text", "input": {"text": "Widget 8 is in limbo"}}
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(case), "utf-8")
    for own in ((), ("--rules", str(rules))):
        code = "business.conflict" if own else None
        one = json.loads(failwise("classify", "Widget 8 is in limbo", "--json", *own).out)
        assert one["code"] == code
        each = failwise("classify", "--lines", str(log), "--json", *own).out.splitlines()
        assert [json.loads(line)["line"] for line in each] == ([2] if own else [])
        assert json.loads(failwise("classify", "--jsonl", str(cases), *own).out)["code"] == code


def test_a_file_of_rules_that_is_wrong(failwise: Failwise, tmp_path: Path) -> None:
    """Refused with file and line before anything is read."""
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES.replace("business.conflict", "business.nonsense"), "utf-8")
    ended = failwise("classify", "fine", "--rules", str(rules))
    assert ended.code == 2
    assert f"{rules}:3" in ended.err
