"""One structured line per finished call, for whoever listens, and its JSON form."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from failwise import Runtime
from failwise.connect.logs import JsonFormatter
from failwise.testing import ScriptedTool, SteppingClock

SECRET = "sk-" + "ant-api03-" + "Ab3d" * 12
FIELDS = {
    "tool", "category", "code", "http_status", "duration_ms", "attempts", "retried", "recovered",
    "degraded", "success", "action", "call_id", "run_id",
}  # fmt: skip


@pytest.fixture
def rt() -> Iterator[Runtime]:
    with Runtime(":memory:", jitter=0.0, clock=SteppingClock()) as runtime:
        yield runtime


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a handler with our formatter writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("failwise.calls")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_nothing_is_configured_unasked(rt: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    """Without a level or handler of the user's, calls are silent."""
    logger = logging.getLogger("failwise.calls")
    assert not logger.handlers
    assert logger.level == logging.NOTSET
    rt.add(ScriptedTool("search", [1], read_only=True).spec())
    rt.call_sync("search", {})
    assert not [record for record in caplog.records if record.name == "failwise.calls"]


@pytest.mark.parametrize("how", ["async", "sync"])
def test_each_finished_call_is_one_line(rt: Runtime, written: io.StringIO, how: str) -> None:
    """Good, recovered and failed; every field there or left out because it is nothing."""
    rt.add(ScriptedTool("search", [1, ConnectionRefusedError(), 1], read_only=True).spec())
    rt.add(ScriptedTool("pay", [TypeError(f"with {SECRET}")], read_only=False).spec())
    for name in ("search", "search", "pay"):
        if how == "sync":
            rt.call_sync(name, {})
        else:
            asyncio.run(rt.call(name, {}))
    good, recovered, failed = map(json.loads, written.getvalue().splitlines())
    assert good.keys() >= FIELDS - {"category", "code", "http_status", "action"}
    assert good["success"] is True
    assert (recovered["recovered"], recovered["attempts"], recovered["retried"]) == (True, 2, True)
    assert (failed["success"], failed["code"], failed["category"]) == (
        False,
        "tool.exception",
        "tool",
    )
    assert failed["message"].startswith("pay: failed, tool.exception in ")
    assert SECRET not in written.getvalue()


def test_any_record_is_one_line_of_json_without_secrets() -> None:
    """Exceptions and what a caller adds are redacted too; line breaks stay inside."""
    formatter = JsonFormatter()
    try:
        raise ValueError(f"key {SECRET}")
    except ValueError as error:
        record = logging.LogRecord(
            "failwise", logging.ERROR, "", 0, "a\nb %s", (SECRET,), (type(error), error, None)
        )
    record.note = f"token={SECRET}"
    text = formatter.format(record)
    assert "\n" not in text
    assert SECRET not in text
    assert json.loads(text)["exception"].startswith("ValueError")
