"""Spans and metrics of tool calls, through ``opentelemetry-api`` alone.

Names follow the OpenTelemetry conventions for generative AI ("execute tool" span, released in
``semantic-conventions-genai``); what they have no name for begins with ``failwise.``. Contents (arguments,
results) are exported only when asked for, redacted and cut.

    from failwise.connect.opentelemetry import instrument

    instrument(runtime)
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failwise._version import __version__
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.result import Attempt, ToolResult
from failwise.vocabulary.steps import Call

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from failwise.runtime.runtime import Runtime

__all__ = ["instrument"]

CONTENT = 4_000
"""Characters kept of arguments and of a result, after redaction."""

_READ = 100_000
"""Characters of a content that are looked at: far more than are kept, so that no secret is cut in two."""
_BOUNDS = [0.01 * 2**power for power in range(14)]
"""Bucket boundaries of durations that the conventions advise, in seconds."""
_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"


def instrument(
    runtime: "Runtime",
    *,
    tracer_provider: "TracerProvider | None" = None,
    meter_provider: "MeterProvider | None" = None,
    content: bool = False,
) -> "Telemetry":
    """Make a span and metrics of each call of a runtime; its requests carry the W3C trace context.

    One span ``execute_tool NAME`` a call, current while the tool runs; attempts become child spans
    where there was more than one, or one failed. A replayed result is marked and measured nowhere: it is no
    new execution. `content` exports arguments and results too, redacted and cut to `CONTENT`
    characters. Providers default to the global ones. Raises `ConfigurationError` where
    ``opentelemetry-api`` is not installed.
    """
    telemetry = Telemetry(tracer_provider, meter_provider, content)
    runtime.observe(telemetry)
    return telemetry


class Telemetry:
    """The observer that `instrument` registers."""

    def __init__(
        self,
        tracer_provider: "TracerProvider | None",
        meter_provider: "MeterProvider | None",
        content: bool,
    ) -> None:
        try:
            from opentelemetry import metrics, propagate, trace
        except ImportError as error:
            raise ConfigurationError(
                "tracing needs opentelemetry-api: pip install 'failwise[opentelemetry]'"
            ) from error
        self._content = content
        self._inject = propagate.inject
        self._tracer = trace.get_tracer("failwise", __version__, tracer_provider, _SCHEMA)
        meter = metrics.get_meter("failwise", __version__, meter_provider, _SCHEMA)
        self._duration = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="Duration of tool calls, waits included.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._attempts = meter.create_counter(
            "failwise.attempts", unit="{request}", description="Requests sent, by how they ended."
        )
        self._unknown = meter.create_counter(
            "failwise.effects.unknown",
            unit="{call}",
            description="Calls whose side effect may have happened.",
        )

    def begin(self, call: Call) -> "tuple[Span, Any]":
        from opentelemetry import context, trace

        tool = call.tool
        span = self._tracer.start_span(
            f"execute_tool {tool.name}",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool.name,
                "gen_ai.tool.call.id": call.call_id,
                "gen_ai.tool.type": "function",
                "openinference.span.kind": "TOOL",
                "tool.name": tool.name,
                "failwise.run_id": call.run_id,
                "failwise.upstream": tool.upstream_name,
            },
            record_exception=False,
            set_status_on_exception=False,
        )
        if self._content and span.is_recording():
            text = _shown(call.raw)
            span.set_attribute("gen_ai.tool.call.arguments", text)
            span.set_attribute("input.value", text)
        return span, context.attach(trace.set_span_in_context(span))

    def end(self, begun: "tuple[Span, Any]", call: Call, result: ToolResult[Any] | None) -> None:
        from opentelemetry import context

        span, token = begun
        context.detach(token)
        if result is None and call.laid_down:
            span.set_attribute("failwise.waits", True)
        elif result is None:
            _failed(span, "runtime.cancelled", "the call was cancelled")
        else:
            self._describe(span, result)
            self._measure(result)
        span.end()

    def headers(self) -> Mapping[str, str]:
        carrier: dict[str, str] = {}
        self._inject(carrier)
        return carrier

    def _describe(self, span: "Span", result: ToolResult[Any]) -> None:
        if not span.is_recording():
            return
        failure = result.failure
        facts: dict[str, Any] = {
            "failwise.attempts": result.sent,
            "failwise.retries": result.retries,
            "failwise.repairs": len(result.repairs),
            "failwise.stop_reason": result.stop_reason.value,
            "failwise.degraded_to": result.degraded_to,
            "failwise.action": result.suggested_action and result.suggested_action.value,
            "failwise.replayed": True if "replayed" in result.extra else None,
            "gen_ai.request.model": result.model,
        }
        if failure is not None:
            facts |= {
                "failwise.category": failure.category.value,
                "failwise.effect": result.effect and result.effect.value,
                "failwise.fix_by": failure.fix_by.value,
                "failwise.provider_code": failure.provider_code,
                "failwise.fingerprint": failure.fingerprint or None,
                "http.response.status_code": failure.http_status,
            }
        if self._content and result.success:
            facts["gen_ai.tool.call.result"] = facts["output.value"] = _shown(result.value)
        span.set_attributes({name: value for name, value in facts.items() if value is not None})
        if failure is not None:
            _failed(span, failure.code, failure.message)
            error = failure.exception
            kind = type(error)
            span.add_event(
                "exception",
                {
                    "exception.type": f"{kind.__module__}.{kind.__qualname__}"
                    if error is not None
                    else failure.code,
                    "exception.message": failure.message,
                },
            )
        if len(result.attempts) > 1 or (result.attempts and failure is not None):
            for attempt in result.attempts:
                self._attempt(span, result, attempt)

    def _attempt(self, parent: "Span", result: ToolResult[Any], attempt: Attempt) -> None:
        from opentelemetry import trace

        began = int((result.timestamp + attempt.started) * 1e9)
        span = self._tracer.start_span(
            f"attempt {attempt.number}" if attempt.number else "not sent",
            trace.set_span_in_context(parent),
            attributes={"failwise.attempt": attempt.number},
            start_time=began,
            record_exception=False,
            set_status_on_exception=False,
        )
        failure, decision = attempt.failure, attempt.decision
        if failure is not None:
            if failure.http_status is not None:
                span.set_attribute("http.response.status_code", failure.http_status)
            span.set_attribute("failwise.effect", failure.effect.value)
            _failed(span, failure.code, failure.message)
        if decision is not None:
            span.set_attributes(
                {
                    "failwise.action": decision.action.value,
                    "failwise.delay": decision.delay,
                    "failwise.reason": decision.reason,
                    "failwise.rule": decision.rule,
                }
            )
        span.end(began + int(attempt.duration_ms * 1e6))

    def _measure(self, result: ToolResult[Any]) -> None:
        if "replayed" in result.extra:
            return
        named = {"gen_ai.tool.name": result.tool_name}
        failure = result.failure
        ended = named if failure is None else {**named, "error.type": failure.code}
        self._duration.record(result.duration_ms / 1000, ended)
        failed = [each for each in result.attempts if each.number and each.failure]
        for attempt in failed:
            assert attempt.failure is not None
            self._attempts.add(1, {**named, "error.type": attempt.failure.code})
        if result.sent > len(failed):
            self._attempts.add(result.sent - len(failed), named)
        if result.effect is Effect.UNKNOWN:
            self._unknown.add(1, named)


def _failed(span: "Span", kind: str, message: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _shown(value: Any) -> str:
    """A value as text: redacted first, then cut."""
    from failwise.redaction import default
    from failwise.vocabulary.plain import as_json

    redactor = default()
    if isinstance(value, bytes | bytearray):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        value = value[:_READ]
    clean = redactor.data(value)
    text = clean if isinstance(clean, str) else redactor.text(as_json(clean)[:_READ])
    return text[:CONTENT]
