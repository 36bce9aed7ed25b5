"""Failures recorded elsewhere: every form is read, judged, recorded once, and clustered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.insight.importing.calls import ImportedCall, epoch_of
from failwise.insight.importing.messages import calls_of, conversations
from failwise.insight.importing.reading import read_calls
from failwise.insight.importing.taking import Taken, judged, take_over
from failwise.insight.recorded import clusters
from failwise.journal.journal import Journal
from failwise.journal.reader import open_reader
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import ToolResult
from tests.cli.conftest import Failwise
from tests.insight import failing
from tests.insight.failing import NOW

SECRET = "sk-proj-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0"
BUSY = '{"error": {"status": 503, "message": "service unavailable, try later"}}'


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = failing.journal()
    yield made
    made.close()


def openai_chat() -> Any:
    return {
        "id": "chatcmpl-1",
        "model": "some-model",
        "created": 1_796_025_601,
        "messages": [
            {"role": "user", "content": "weather in Oslo and Rome"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function",
                     "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
                    {"id": "call_2", "type": "function",
                     "function": {"name": "weather", "arguments": '{"city": "Rome"'}},
                    {"id": "call_3", "type": "function",
                     "function": {"name": "book", "arguments": "never mind"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": BUSY},
            {"role": "tool", "tool_call_id": "call_2", "content": '{"degrees": 21}'},
        ],
    }  # fmt: skip


def openai_responses() -> Any:
    return {
        "output": [
            {
                "type": "function_call",
                "call_id": "fc_1",
                "name": "weather",
                "arguments": '{"city": "Oslo"}',
            },
            {"type": "function_call_output", "call_id": "fc_1", "output": BUSY},
            {
                "type": "function_call",
                "call_id": "fc_2",
                "name": "weather",
                "arguments": '{"city": "Rome"}',
            },
            {"type": "function_call_output", "call_id": "fc_2", "output": "sunny, 21 degrees"},
        ]
    }


def anthropic() -> Any:
    return [
        {"role": "user", "content": "weather"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "let me see"},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True,
                 "content": [{"type": "text", "text": "service unavailable (503), try later"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "sunny, 21 degrees"},
            ],
        },
    ]  # fmt: skip


def langchain() -> Any:
    return {
        "messages": [
            {"type": "human", "data": {"content": "weather"}},
            {"type": "ai", "data": {"content": "", "tool_calls": [
                {"name": "weather", "args": {"city": "Oslo"}, "id": "a1"},
                {"name": "weather", "args": {"city": "Rome"}, "id": "a2"}]}},
            {"type": "tool", "data": {"content": "Error: 503 Service Unavailable", "tool_call_id": "a1",
                                      "name": "weather", "status": "error"}},
            {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"],
             "kwargs": {"content": "sunny", "tool_call_id": "a2", "status": "success"}},
        ]
    }  # fmt: skip


def langsmith() -> Any:
    return {
        "id": "r0", "run_type": "chain", "name": "agent", "trace_id": "t1", "child_runs": [
            {"id": "r1", "run_type": "tool", "name": "weather", "trace_id": "t1",
             "start_time": "2026-11-30T08:00:01.250", "end_time": "2026-11-30T08:00:02.250",
             "inputs": {"city": "Oslo"}, "outputs": None,
             "error": "HTTPStatusError(\"Server error '503 Service Unavailable' for url 'https://w.example/x'\")"
                      "\n\nTraceback (most recent call last):\n  File \"a.py\", line 1, in run\n"
                      "httpx.HTTPStatusError: Server error '503 Service Unavailable' for url 'https://w.example/x'"},
            {"id": "r2", "run_type": "tool", "name": "weather", "trace_id": "t1", "error": None,
             "inputs": {"city": "Rome"}, "outputs": {"output": "sunny"}},
        ]
    }  # fmt: skip


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def otlp() -> Any:
    def span(number: int, name: str, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "traceId": "ab" * 16, "spanId": f"{number:016x}", "name": name,
            "startTimeUnixNano": "1796025601250000000", "endTimeUnixNano": "1796025602250000000",
            "attributes": [attribute(*item) for item in attributes.items()], **more,
        }  # fmt: skip

    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [attribute("service.name", "agent")]},
                "scopeSpans": [
                    {
                        "spans": [
                            span(1, "execute_tool weather",
                                 {**tool, "gen_ai.tool.call.id": "c1", "error.type": "HTTPStatusError"},
                                 status={"code": 2, "message": "it did not work"}),
                            span(2, "GET", {"http.response.status_code": 503}, parentSpanId=f"{1:016x}"),
                            span(3, "execute_tool weather", {**tool, "gen_ai.tool.call.result": "sunny"}),
                            span(4, "chat some-model", {"gen_ai.operation.name": "chat"}, status={"code": 2}),
                        ]
                    }
                ],
            }
        ]
    }  # fmt: skip


FORMS = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "langchain": langchain,
    "langsmith": langsmith,
    "otlp": otlp,
}


def results(path: Path, form: Any = "auto") -> list[ToolResult[Any]]:
    found = (judged(call, moment=NOW) for call in read_calls(str(path), form))
    return [one for one in found if one is not None]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("lines", [False, True], ids=["json", "jsonl"])
def test_each_form_is_read(tmp_path: Path, name: str, lines: bool) -> None:
    """Each form, as one JSON value and as a line: the failure with its kind, the success beside it."""
    path = tmp_path / "calls.json"
    data = FORMS[name]()
    path.write_text(json.dumps(data, indent=None if lines else 2) + "\n")
    found = [one for one in results(path) if one.tool_name == "weather"]
    assert [one.success for one in found] == [False, True]
    failed = found[0]
    assert failed.failure is not None
    assert failed.failure.category == "server"
    assert failed.run_id.startswith("import:")
    again = [one for one in results(path, name.partition("-")[0]) if one.tool_name == "weather"]
    assert [one.call_id for one in again] == [one.call_id for one in found]


def test_what_each_form_tells_beside(tmp_path: Path) -> None:
    """Moments, durations, arguments, model and statuses are taken along where they are told."""
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(openai_chat()))
    first, _, third = results(path)
    assert (first.timestamp, first.model, first.arguments) == (
        1_796_025_601.0, "some-model", {"city": "Oslo"},
    )  # fmt: skip
    assert third.failure is not None
    assert third.failure.category == "model_output"
    path.write_text(json.dumps(otlp()))
    span = results(path)[0]
    assert (span.timestamp, span.duration_ms) == (1_796_025_601.25, 1_000.0)
    assert span.failure is not None
    assert span.failure.http_status == 503
    path.write_text(json.dumps(langsmith()))
    run = results(path)[0]
    assert (run.timestamp, run.duration_ms, run.arguments) == (
        1_796_025_601.25, 1_000.0, {"city": "Oslo"},
    )  # fmt: skip


def test_one_message_a_line(tmp_path: Path) -> None:
    """A file whose lines are messages is one conversation, or one for each conversation id."""
    path = tmp_path / "messages.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in anthropic()))
    assert [one.success for one in results(path)] == [False, True]
    both = [{**message, "session_id": name} for name in ("x", "y") for message in anthropic()]
    path.write_text("".join(json.dumps(message) + "\n" for message in both))
    found = results(path)
    assert len(found) == 4
    assert len({one.run_id for one in found}) == 2


def test_a_history_that_grows_is_counted_once(tmp_path: Path, journal: Journal) -> None:
    """Logs of requests repeat what was said before: each call is one record all the same."""
    chat = openai_chat()["messages"]
    path = tmp_path / "requests.jsonl"
    rows = [
        {"id": f"chatcmpl-{n}", "request": {"model": "m", "messages": chat[:n]}}
        for n in range(2, 5)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    taken = take_over(read_calls(str(path)), journal, moment=NOW)
    assert (taken.added, taken.failures) == (3, 2)


def test_an_id_that_is_used_twice_is_two_calls() -> None:
    """Some recordings use one id again: both calls are kept, each with its answer."""
    turn = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "t", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "one"},
    ]
    again = [turn[0], {**turn[1], "content": "two"}]
    (conversation,) = conversations([*turn, *again], "x")
    found = list(calls_of(conversation))
    assert [call.answer for call in found] == ["one", "two"]
    assert len({call.call_id for call in found}) == 2


def test_calls_without_ids_find_their_answers() -> None:
    """The old form has no ids: name and order do."""
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "function_call": {"name": "a", "arguments": "{}"}},
        {"role": "function", "name": "a", "content": "first"},
        {"role": "assistant", "function_call": {"name": "a", "arguments": "{}"}},
        {"role": "function", "name": "a", "content": "second"},
    ]
    (conversation,) = conversations(messages, "x")
    assert [call.answer for call in calls_of(conversation)] == ["first", "second"]


LOG = (
    "2026-11-30 08:00:01 INFO started\n"
    "2026-11-30 08:00:02 ERROR pay: 502 Bad Gateway\n"
    "2026-11-30 08:00:02 ERROR pay: 502 Bad Gateway\n"
    "2026-11-30 08:00:03 WARNING slow answer of 300 ms\n"
    "2026-11-30 08:00:04 ERROR something odd\n"
)


def test_a_log_gives_its_failures(tmp_path: Path) -> None:
    """Of a log the entries that tell of a failure are records, the same line twice two of them."""
    path = tmp_path / "app.log"
    path.write_text(LOG)
    found = list(
        filter(None, (judged(call, moment=NOW) for call in read_calls(str(path), tool="pay")))
    )
    assert [one.failure and one.failure.code for one in found] == [
        "network.bad_gateway", "network.bad_gateway", "unknown.unclassified",
    ]  # fmt: skip
    assert found[0].timestamp == 1_796_025_602.0
    assert len({one.call_id for one in found}) == 3


@pytest.mark.parametrize("name", [*FORMS, "log"])
def test_the_same_file_twice_adds_nothing(tmp_path: Path, journal: Journal, name: str) -> None:
    """An import may be repeated: what is there is passed over."""
    path = tmp_path / "calls"
    path.write_text(LOG if name == "log" else json.dumps(FORMS[name]()))
    first = take_over(read_calls(str(path), tool="pay"), journal, moment=NOW)
    again = take_over(read_calls(str(path), tool="pay"), journal, moment=NOW)
    assert first.added > 0
    assert (again.added, again.known) == (0, first.added)
    with open_reader(journal) as reader:
        assert len(reader.calls()) == first.added


def test_imported_failures_are_clustered_with_what_helped(tmp_path: Path, journal: Journal) -> None:
    """The same question as of a runtime's own records, with the model's next try as the cure."""
    path = tmp_path / "runs.jsonl"
    rows = []
    for n in range(5):
        messages: list[Any] = []
        for turn, answer in enumerate((f'{{"error": "order {n} not found"}}', '{"state": "sent"}')):
            call = {"id": f"call_{n}_{turn}", "function": {"name": "order", "arguments": "{}"}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
        rows.append({"task_id": n, "messages": messages})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    taken = take_over(read_calls(str(path)), journal, moment=NOW)
    assert (taken.added, taken.failures) == (10, 5)
    (one,) = clusters(journal).clusters
    assert (one.count, one.code) == (5, "business.not_found")
    (help_,) = one.helps
    assert (help_.action, help_.tried, help_.worked) == ("ask_model", 5, 5)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "type", "content", "tool_calls", "id", "function", "name", "arguments",
                     "run_type", "error", "outputs", "resourceSpans", "scopeSpans", "spans",
                     "attributes", "status", "data", "kwargs", "lc", "messages", "value", "key"]
                )
                | st.text(max_size=5),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)  # fmt: skip
def test_any_json_is_survived(data: Any) -> None:
    """Whatever stands in a file, reading it raises nothing."""
    import os
    import tempfile

    handle, path = tempfile.mkstemp()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(json.dumps(data))
        for call in read_calls(path):
            judged(call, moment=NOW)
    finally:
        os.unlink(path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-30T08:00:01Z", 1796025601.0),
        ("2026-11-30T08:00:01.123456789+00:00", 1796025601.123456),
        (1796025601, 1796025601.0),
        (1796025601250, 1796025601.25),
        ("1796025601250000000", 1796025601.25),
        ("soon", None),
        (None, None),
        (True, None),
        (5, None),
    ],
)
def test_moments(value: Any, expected: float | None) -> None:
    """Moments in the forms that records have."""
    assert epoch_of(value) == expected


def test_broken_lines_are_told(tmp_path: Path) -> None:
    """A line that is no JSON is passed over and named; the others are read."""
    path = tmp_path / "calls.jsonl"
    path.write_text(
        json.dumps(openai_chat()) + "\n{broken\n\n" + json.dumps(openai_responses()) + "\n"
    )
    told: list[int] = []
    calls = list(read_calls(str(path), skipped=lambda number, why: told.append(number)))
    assert (len(calls), told) == (5, [2])


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file and an unknown form are said in words."""
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_calls(str(tmp_path / "none")))
    with pytest.raises(UsageError, match="write one of"):
        list(read_calls(str(tmp_path / "none"), "xml"))  # type: ignore[arg-type]


def test_a_call_without_an_end_is_no_record() -> None:
    """Where nothing came back nothing can be said, unless what was sent cannot be read."""
    open_call = ImportedCall("t", "c", "r", arguments='{"a": 1}', answered=False)
    assert judged(open_call, moment=NOW) is None
    broken = judged(
        ImportedCall("t", "c", "r", arguments="not json at all", answered=False), moment=NOW
    )
    assert broken is not None
    assert broken.failure is not None
    assert broken.failure.category == "model_output"


def test_the_command(failwise: Failwise, tmp_path: Path) -> None:
    """Import, then the usual commands; no secret reaches the journal."""
    chat = openai_chat()
    chat["messages"][2]["content"] = json.dumps({"error": f"bad key {SECRET}", "status": 401})
    path, place = tmp_path / "chat.json", tmp_path / "imported.db"
    path.write_text(json.dumps(chat))
    ended = failwise("import", str(path), "--journal", str(place))
    assert ended.code == 0
    assert "3 calls found, 3 recorded (2 failed)" in ended.out
    again = json.loads(failwise("import", str(path), "--journal", str(place), "--json").out)
    assert (again["files"][0]["added"], again["files"][0]["known"]) == (0, 3)
    assert "auth.invalid_credential" in failwise("clusters", str(place)).out
    assert failwise("report", str(place)).code == 0
    assert SECRET.encode() not in b"".join(
        file.read_bytes() for file in tmp_path.glob("imported.db*")
    )
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    ended = failwise("import", str(empty), "--journal", str(place))
    assert (ended.code, "no tool call with its end" in ended.err) == (2, True)
    assert failwise("import", str(tmp_path / "none"), "--journal", str(place)).code == 2


def test_failures_only(journal: Journal, tmp_path: Path) -> None:
    """Successes can be left out."""
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(anthropic()))
    taken = take_over(read_calls(str(path)), journal, moment=NOW, failures_only=True)
    assert taken == Taken(2, 1, 1, 0, 0, taken.codes, NOW)
