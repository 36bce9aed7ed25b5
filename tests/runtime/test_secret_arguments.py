"""What a model sent may hold secrets: none of them comes back in a failure, or is kept."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from failwise import Runtime
from failwise.faults import Fault, FaultServer
from failwise.tools import HttpTool

Make = Callable[..., Runtime]
PASSWORD = "hunter2-Horse-battery"
KEY = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
SECRETS = (PASSWORD, KEY, "hunter2", "battery", "Xy4z", "qRs8tUv1")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "password": {"type": "integer"},
        "limit": {"type": "integer"},
        "login": {
            "anyOf": [
                {"type": "object", "properties": {"password": {"enum": ["a", "b"]}}},
                {"type": "null"},
            ]
        },
    },
    "required": ["user"],
}
SENT = {
    "a type": {"user": "ada", "password": PASSWORD},
    "another field": {"user": "ada", "limit": KEY},
    "a list": {"user": "ada", "password": [PASSWORD, KEY]},
    "deep inside": {"user": "ada", "login": {"password": PASSWORD}},
    "another object": {"user": {"password": PASSWORD, "note": KEY}},
    "beside what is missing": {"password": PASSWORD},
}
BROKEN = {
    "cut off": f'{{"user": "ada", "password": "{PASSWORD}',
    "two readings": f'{{"user": "ada", "limit": x y, "api_key": "{KEY}"}}',
    "at the place": f'{{"user": "ada", "limit": {KEY} x}}',
    "prose": f"Log in as ada with password={PASSWORD} please",
    "far off": '{"user": "' + "x" * 480 + f'", "limit": ?, "key": "{KEY}"}}',
}


def told(result: Any, make: Make, caplog: pytest.LogCaptureFixture, journal: Path) -> str:
    """All that a failed call leaves behind, as one text."""
    assert result.failure is not None
    everything = [result.to_json(), result.for_model("en"), result.for_model("zh")]
    everything += [result.for_user("en"), repr(result), repr(result.failure), caplog.text]
    files = journal.parent.glob("journal.db*")
    return "\n".join(everything + [file.read_bytes().decode("latin-1") for file in files])


@pytest.mark.parametrize("sent", [*SENT.values(), *BROKEN.values()], ids=[*SENT, *BROKEN])
@pytest.mark.parametrize("mode", ["confirm", "off"])
def test_no_secret_comes_back(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: Any, mode: Any
) -> None:
    """Neither result, words, log nor journal hold a planted secret, or a piece of one."""
    caplog.set_level(logging.DEBUG, "failwise")
    runtime = make(repair=mode)
    runtime.add(lambda **given: given, name="log_in", schema=SCHEMA)
    raw = sent if isinstance(sent, str) else json.dumps(sent)
    for form in (raw, sent):
        result = runtime.call_sync("log_in", form)
    runtime.flush()
    text = told(result, make, caplog, tmp_path / "journal.db")
    assert [secret for secret in SECRETS if secret in text] == []


def test_a_refused_repair_shows_no_secret(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """``off`` names the places that would need repair, without what stands there."""
    runtime = make(repair="off")
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    runtime.add(lambda **given: given, name="log_in", schema=schema)
    result = runtime.call_sync("log_in", f"{{'password': ['{PASSWORD}'],}}")
    runtime.flush()
    text = told(result, make, caplog, tmp_path / "journal.db")
    assert "/password" in text
    assert [secret for secret in SECRETS if secret in text] == []


@pytest.mark.parametrize(
    "body",
    [
        {"error": f"password must be 30 characters, got '{PASSWORD}'"},
        {
            "detail": [
                {
                    "loc": ["body", "password"],
                    "msg": f"password {PASSWORD} is too short",
                    "type": "string_too_short",
                    "input": PASSWORD,
                    "ctx": {"min_length": 30},
                }
            ]
        },
    ],
)
def test_an_upstream_that_repeats_a_secret(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, body: Any
) -> None:
    """A refusal that quotes what was sent is told without it."""
    with FaultServer() as server:
        server.route("POST", "/login", Fault.json(body, 422))
        runtime = make(repair="auto")
        schema = {"type": "object", "properties": {"password": {"type": "string"}}}
        runtime.add(HttpTool("log_in", "POST", server.url("/login"), schema=schema))
        result = runtime.call_sync("log_in", {"password": PASSWORD})
        runtime.flush()
    text = told(result, make, caplog, tmp_path / "journal.db")
    assert "password" in result.for_model()
    assert [secret for secret in SECRETS if secret in text] == []


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_repair_that_was_made_shows_no_secret(
    make: Make, tmp_path: Path, asynchronous: bool
) -> None:
    """The tool gets the secret, and the note of its repair does not hold it."""
    runtime = make()
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string"}, "note": {"type": "string"}},
    }

    def log_in(**given: Any) -> str:
        return str(len(given["password"]))

    runtime.add(log_in, schema=schema, read_only=True)
    note = "x" * 45 + " " + KEY
    raw = f"{{'password': ['{PASSWORD}'], 'note': '{note}',}}"
    if asynchronous:
        result = asyncio.run(runtime.call("log_in", raw))
    else:
        result = runtime.call_sync("log_in", raw)
    assert result.value == str(len(PASSWORD))
    assert {repair.kind for repair in result.repairs} >= {"quotes", "list_unwrapped"}
    runtime.flush()
    text = result.to_json() + result.for_model() + repr(result.repairs)
    assert [secret for secret in (*SECRETS, "sk-proj-Ab") if secret in text] == []
