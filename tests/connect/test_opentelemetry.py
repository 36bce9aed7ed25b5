"""Spans and metrics of calls, read from the real SDK's exporters in memory."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from failwise import CallContext, HttpTool, Runtime, ToolResult
from failwise.connect.opentelemetry import instrument
from failwise.faults import Fault, FaultServer
from failwise.testing import ScriptedTool, SteppingClock

SECRET = "sk-" + "ant-api03-" + "Ab3d" * 12


class Seen:
    """A runtime whose telemetry ends in memory."""

    def __init__(self, runtime: Runtime, *, content: bool = False) -> None:
        self.runtime = runtime
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        instrument(
            runtime,
            tracer_provider=self.tracers,
            meter_provider=MeterProvider([self.reader]),
            content=content,
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            (dict(point.attributes or {}), point)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def rt() -> Iterator[Runtime]:
    with Runtime(":memory:", jitter=0.0, clock=SteppingClock()) as runtime:
        yield runtime


def call(rt: Runtime, how: str, name: str, **arguments: Any) -> ToolResult[Any]:
    if how == "sync":
        return rt.call_sync(name, arguments, call_id="call_7")
    return asyncio.run(rt.call(name, arguments, call_id="call_7"))


@pytest.mark.parametrize("how", ["async", "sync"])
def test_a_good_call_is_one_span(rt: Runtime, how: str) -> None:
    """Named and described as the conventions say, without contents, and one duration measured."""
    seen = Seen(rt)
    rt.add(ScriptedTool("search", [{"items": []}], read_only=True, upstream="shop").spec())
    assert call(rt, how, "search", query=SECRET).success
    (span,) = seen.spans
    attributes = dict(span.attributes or {})
    assert span.name == "execute_tool search"
    assert span.status.status_code is StatusCode.UNSET
    assert attributes["gen_ai.operation.name"] == "execute_tool"
    assert attributes["gen_ai.tool.name"] == "search"
    assert attributes["gen_ai.tool.call.id"] == "call_7"
    assert attributes["failwise.upstream"] == "shop"
    assert attributes["openinference.span.kind"] == "TOOL"
    assert SECRET not in span.to_json()
    assert not {"gen_ai.tool.call.arguments", "input.value", "error.type"} & attributes.keys()
    ((labels, point),) = seen.points("gen_ai.execute_tool.duration")
    assert labels == {"gen_ai.tool.name": "search"}
    assert point.count == 1


@pytest.mark.parametrize("how", ["async", "sync"])
def test_attempts_are_child_spans_at_their_own_times(rt: Runtime, how: str) -> None:
    """A recovered call: the failed attempt with its code and decision, the good one a second later."""
    seen = Seen(rt)
    rt.add(ScriptedTool("search", [ConnectionRefusedError(), 1], read_only=True).spec())
    assert call(rt, how, "search").retries == 1
    whole = seen.span("execute_tool search")
    first, second = seen.span("attempt 1"), seen.span("attempt 2")
    assert first.parent
    assert whole.context
    assert first.parent.span_id == whole.context.span_id
    assert dict(first.attributes or {})["error.type"] == "network.connect_refused"
    assert dict(first.attributes or {})["failwise.delay"] == 1.0
    assert second.start_time
    assert first.start_time
    assert round((second.start_time - first.start_time) / 1e9, 3) == 1.0
    assert whole.status.status_code is StatusCode.UNSET
    counted = {labels.get("error.type"): p.value for labels, p in seen.points("failwise.attempts")}
    assert counted == {"network.connect_refused": 1, None: 1}


def test_a_failure_has_its_code_and_no_raw_exception(rt: Runtime) -> None:
    """`error.type` is the code; the message and the exception event are redacted."""
    seen = Seen(rt)
    rt.add(ScriptedTool("pay", [TypeError(f"broke with {SECRET}")], read_only=False).spec())
    assert not call(rt, "async", "pay").success
    span = seen.span("execute_tool pay")
    assert span.status.status_code is StatusCode.ERROR
    attributes = dict(span.attributes or {})
    assert attributes["error.type"] == "tool.exception"
    assert attributes["failwise.effect"] == "unknown"
    (event,) = [event for event in span.events if event.name == "exception"]
    assert dict(event.attributes or {})["exception.type"] == "builtins.TypeError"
    assert all(SECRET not in each.to_json() for each in seen.spans)
    ((labels, _),) = seen.points("failwise.effects.unknown")
    assert labels == {"gen_ai.tool.name": "pay"}


def test_contents_only_when_asked_for_and_without_secrets(rt: Runtime) -> None:
    """Arguments and result are there, redacted and bounded."""
    seen = Seen(rt, content=True)
    rt.add(ScriptedTool("search", [{"token": SECRET, "text": "x" * 9_000}], read_only=True).spec())
    call(rt, "async", "search", query="shoes", api_key=SECRET)
    span = seen.span("execute_tool search")
    attributes = dict(span.attributes or {})
    assert json.loads(str(attributes["input.value"]))["query"] == "shoes"
    assert len(str(attributes["gen_ai.tool.call.result"])) <= 4_000
    assert SECRET not in span.to_json()


def test_a_cancelled_call_ends_its_span(rt: Runtime) -> None:
    """The span of a call that was cancelled is closed, and says so."""
    seen = Seen(rt)

    @rt.tool(read_only=True)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(rt.call("slow", {}))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (
        dict(seen.span("execute_tool slow").attributes or {})["error.type"] == "runtime.cancelled"
    )


def test_a_replay_is_no_new_execution(rt: Runtime) -> None:
    """The second call of a done effect is marked, and its duration is measured nowhere."""
    seen = Seen(rt)
    rt.add(ScriptedTool("order", [{"id": 1}], read_only=False).spec())
    with rt.run("job") as run:
        run.call_sync("order", {"n": 1}, call_id="c1")
        again = run.call_sync("order", {"n": 1}, call_id="c1")
    assert again.extra["replayed"]
    marks = [dict(span.attributes or {}).get("failwise.replayed") for span in seen.spans]
    assert marks == [None, True]
    ((_, point),) = seen.points("gen_ai.execute_tool.duration")
    assert point.count == 1


@pytest.mark.parametrize("how", ["async", "sync"])
def test_a_fallback_is_a_child_of_the_call_it_serves(rt: Runtime, how: str) -> None:
    """Two calls, two spans, one inside the other."""
    seen = Seen(rt)
    rt.add(
        ScriptedTool("live", [ConnectionRefusedError()], read_only=True, fallback=("cache",)).spec()
    )
    rt.add(ScriptedTool("cache", ["old"], read_only=True).spec())
    assert call(rt, how, "live").degraded_to == "cache"
    outer, inner = seen.span("execute_tool live"), seen.span("execute_tool cache")
    assert inner.parent
    assert outer.context
    assert inner.parent.span_id == outer.context.span_id
    assert dict(outer.attributes or {})["failwise.degraded_to"] == "cache"


@pytest.mark.parametrize("how", ["async", "sync"])
def test_the_trace_goes_on_in_the_upstream(how: str) -> None:
    """`HttpTool` and any tool that asks send the W3C header of the call's own span; inside the tool
    that span is current."""
    with Runtime(":memory:") as runtime, FaultServer() as server:
        server.route("GET", "/search", [Fault.json({"items": []})])
        seen = Seen(runtime)
        runtime.add(HttpTool("search", "GET", server.url("/search")))

        @runtime.tool(read_only=True)
        def own(context: CallContext) -> list[str]:
            current = trace.get_current_span().get_span_context()
            return [context.headers["traceparent"], f"{current.span_id:016x}"]

        assert call(runtime, how, "search").success
        result = call(runtime, how, "own")
        context = seen.span("execute_tool search").context
        assert context is not None
        wanted = f"00-{context.trace_id:032x}-{context.span_id:016x}-"
        assert server.requests[-1].headers["traceparent"].startswith(wanted)
        header, current = result.unwrap()
        assert header.split("-")[2] == current


def test_an_observer_that_fails_fails_no_call(rt: Runtime, caplog: Any) -> None:
    """What telemetry raises is logged, and the call goes its way."""

    class Broken:
        def begin(self, call: Any) -> Any:
            raise ValueError("no")

        def end(self, begun: Any, call: Any, result: Any) -> None:
            raise ValueError("no")

        def headers(self) -> dict[str, str]:
            raise ValueError("no")

    rt.observe(Broken())
    rt.add(ScriptedTool("search", [1], read_only=True).spec())
    assert call(rt, "async", "search").success
    assert call(rt, "sync", "search").success
    assert "failed at the beginning of a call" in caplog.text
