"""Tool calls in recorded traces: LangSmith runs, and OpenTelemetry spans as OTLP JSON."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from failwise.insight.importing.calls import ImportedCall, digest, epoch_of, first

_DEPTH: Final = 50
_ERROR: Final = (2, "2", "STATUS_CODE_ERROR")
_ANSWERS: Final = (
    "gen_ai.tool.call.result", "output.value", "tool_response", "langfuse.observation.output",
    "traceloop.entity.output",
)  # fmt: skip
_ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments", "input.value", "tool_arguments", "langfuse.observation.input",
    "traceloop.entity.input",
)  # fmt: skip


def is_run(value: Any) -> bool:
    """Whether this is a LangSmith run."""
    return isinstance(value, Mapping) and isinstance(value.get("run_type"), str) and "id" in value


def runs(run: Mapping[str, Any], source: str, depth: int = 0) -> Iterator[ImportedCall]:
    """The tool runs in a run and below it."""
    if run.get("run_type") == "tool":
        started, ended = epoch_of(run.get("start_time")), epoch_of(run.get("end_time"))
        error = run.get("error")
        outputs = run.get("outputs")
        answer = outputs.get("output", outputs) if isinstance(outputs, Mapping) else outputs
        failed: bool | None = True if error else None
        if isinstance(answer, Mapping) and "content" in answer and answer.get("type") == "tool":
            failed = failed or (True if answer.get("status") == "error" else None)
            answer = answer["content"]
        trace = first(run, "trace_id", "session_id", "parent_run_id") or run["id"]
        yield ImportedCall(
            str(run.get("name") or "tool"),
            str(run["id"]),
            f"import:{digest(trace)}",
            answer,
            str(error) if error else "",
            failed,
            run.get("inputs"),
            started,
            _length(started, ended),
            answered=bool(error) or outputs is not None,
            source=source,
        )
    if depth < _DEPTH:
        for child in run.get("child_runs") or ():
            if isinstance(child, Mapping):
                yield from runs(child, source, depth + 1)


def is_otlp(value: Any) -> bool:
    """Whether this is an OTLP trace export."""
    return isinstance(value, Mapping) and isinstance(
        first(value, "resourceSpans", "resource_spans"), list
    )


def spans(data: Mapping[str, Any], source: str) -> Iterator[ImportedCall]:
    """The tool calls among the spans of an export: spans that GenAI, MCP or OpenInference
    conventions mark as such. A status of an HTTP span below one belongs to it."""
    found: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
    for resource in _list(first(data, "resourceSpans", "resource_spans")):
        scopes = first(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        for scope in _list(scopes):
            spans_of = _list(scope.get("spans"))
            found += [(span, _attributes(span.get("attributes"))) for span in spans_of]
    below: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for span, attributes in found:
        parent = first(span, "parentSpanId", "parent_span_id")
        if parent:
            below[str(parent)].append(attributes)
    for span, attributes in found:
        if _is_tool(attributes):
            yield _of_span(span, attributes, below, source)


def _of_span(
    span: Mapping[str, Any],
    attributes: Mapping[str, Any],
    below: Mapping[str, list[dict[str, Any]]],
    source: str,
) -> ImportedCall:
    started = epoch_of(first(span, "startTimeUnixNano", "start_time_unix_nano"))
    ended = epoch_of(first(span, "endTimeUnixNano", "end_time_unix_nano"))
    told = span.get("status")
    status: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    error_type = attributes.get("error.type")
    failed = status.get("code") in _ERROR or bool(error_type)
    error = _exception(span) or _text(status.get("message"))
    number = _status(attributes, below.get(str(first(span, "spanId", "span_id")), ()))
    if failed and not error and number is None:
        error = _text(error_type)
    name = first(attributes, "gen_ai.tool.name", "tool.name", "mcp.tool.name") or span.get("name")
    span_id, trace = first(span, "spanId", "span_id"), first(span, "traceId", "trace_id")
    answer = first(attributes, *_ANSWERS)
    return ImportedCall(
        _text(name).removeprefix("execute_tool ").removeprefix("tools/call ") or "tool",
        _text(attributes.get("gen_ai.tool.call.id") or span_id) or digest(trace, name, started),
        f"import:{digest(trace)}",
        answer,
        error if failed else "",
        True if failed else None,
        _parsed(first(attributes, *_ARGUMENTS)),
        started,
        _length(started, ended),
        number,
        _text(first(attributes, "server.address", "failwise.upstream")),
        _text(first(attributes, "gen_ai.request.model", "gen_ai.response.model")),
        True,
        source=source,
    )


def _is_tool(attributes: Mapping[str, Any]) -> bool:
    return (
        attributes.get("gen_ai.operation.name") == "execute_tool"
        or "gen_ai.tool.name" in attributes
        or attributes.get("openinference.span.kind") == "TOOL"
        or attributes.get("langfuse.observation.type") == "tool"
        or attributes.get("traceloop.span.kind") == "tool"
        or attributes.get("mcp.method.name") == "tools/call"
    )


def _exception(span: Mapping[str, Any]) -> str:
    """``Type: message`` of the exception event; with its stack trace where that says more."""
    for event in _list(span.get("events")):
        if event.get("name") in ("exception", "gen_ai.client.operation.exception"):
            facts = _attributes(event.get("attributes"))
            kind, said = facts.get("exception.type"), _text(facts.get("exception.message"))
            return f"{kind}: {said}" if kind else said or _text(facts.get("exception.stacktrace"))
    return ""


def _status(own: Mapping[str, Any], below: Iterable[Mapping[str, Any]]) -> int | None:
    """The HTTP status of the span itself, else the last one below it."""
    for attributes in (own, *reversed(list(below))):
        for name in ("http.response.status_code", "http.status_code"):
            value = attributes.get(name)
            if str(value).isdigit() and 100 <= int(str(value)) <= 599:
                return int(str(value))
    return None


def _attributes(given: Any) -> dict[str, Any]:
    """OTLP's list of keys and typed values; a plain object as it is."""
    if isinstance(given, Mapping):
        return dict(given)
    found: dict[str, Any] = {}
    for one in _list(given):
        value = one.get("value")
        if isinstance(value, Mapping):
            typed = next(iter(value.values()), None)
            whole = "intValue" in value and _text(typed).lstrip("-").isdigit()
            value = int(_text(typed)) if whole else typed
        found[_text(one.get("key"))] = value
    return found


def _parsed(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _length(started: float | None, ended: float | None) -> float:
    return max(0.0, (ended - started) * 1_000) if started and ended else 0.0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
