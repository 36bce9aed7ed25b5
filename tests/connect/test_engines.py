"""Without their packages, the connections to engines say what to install. With them: tests/engines."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from failwise import ConfigurationError, Runtime, ToolError, ToolResult
from failwise.connect import celery, dbos, temporal
from failwise.connect.opentelemetry import instrument
from failwise.runtime.durable import LaidDown, go_on
from failwise.testing import ScriptedTool
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.steps import Durable

FAILED = ToolResult("look", False, failure=Failure(Category.SERVER, "server.internal"))
USES: dict[str, list[Callable[[Runtime], Any]]] = {
    "dbos": [dbos.WorkflowRun],
    "celery": [lambda runtime: celery.tool_task(None, runtime, "look")],
    "temporalio": [
        lambda runtime: temporal.tool_activity(runtime, "look"),
        lambda runtime: temporal.retry_policy(),
        lambda runtime: temporal.as_application_error(FAILED),
    ],
}


@pytest.mark.parametrize("package", USES)
def test_a_missing_package_is_said(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way in raises `ConfigurationError` with the line that installs what is missing."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with Runtime(":memory:") as runtime:
        runtime.add(ScriptedTool("look", [1], read_only=True).spec())
        for use in USES[package]:
            with pytest.raises(ConfigurationError, match="pip install 'failwise"):
                use(runtime)


def test_a_failed_task_holds_its_result() -> None:
    """Its one argument is the result's JSON: that is all a result backend keeps of an exception."""
    with Runtime(":memory:") as runtime:
        refused = ToolError("no", code="business.not_found", effect="rejected", transient=False)
        runtime.add(ScriptedTool("look", [refused], asynchronous=False).spec())
        result = runtime.call_sync("look", {})
    error = celery.ToolTaskFailed(result.to_json())
    again = celery.ToolTaskFailed(*error.args)
    assert again.result.failure is not None
    assert again.result.failure.code == "business.not_found"
    assert str(again) == "look: business.not_found: no"


def test_a_call_that_waits_is_no_error_in_a_trace() -> None:
    """Its pieces are spans; one that ends at a wait says so, and is neither failed nor measured."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import StatusCode

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    busy = ToolError("busy", code="server.unavailable", effect="rejected", transient=True)
    with Runtime(":memory:") as runtime:
        instrument(runtime, tracer_provider=provider)
        runtime.add(ScriptedTool("look", [busy, 1], asynchronous=False, read_only=True).spec())
        run, call = runtime.run(id="job"), {"call_id": "c"}
        down = go_on(run, "look", ({},), call, Durable())
        assert isinstance(down, LaidDown)
        done = go_on(run, "look", ({},), call, Durable(), down.kept)
    assert isinstance(done, ToolResult)
    first, *_, last = [s for s in exporter.get_finished_spans() if s.name == "execute_tool look"]
    assert first.attributes is not None
    assert first.attributes["failwise.waits"]
    assert first.status.status_code is StatusCode.UNSET
    assert last.attributes is not None
    assert "failwise.waits" not in last.attributes
