"""Clients of chat models: what they raise when the service, or the way there, fails."""

from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from langchain_core.exceptions import OutputParserException
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.tools import ToolException, tool

from failwise.faults import Fault, FaultServer, Reply
from tests.clients.provoking import judged, mute, peer, raised, refused_port, reset

Ask = Callable[[str], Any]


def ask_openai(base: str) -> Any:
    with openai.OpenAI(api_key="k", base_url=base, max_retries=0, timeout=0.3) as client:
        return client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hello"}]
        )


def ask_anthropic(base: str) -> Any:
    with anthropic.Anthropic(api_key="k", base_url=base, max_retries=0, timeout=0.3) as client:
        return client.messages.create(
            model="m", max_tokens=8, messages=[{"role": "user", "content": "hello"}]
        )


def ask_google(base: str) -> Any:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=base, timeout=300))
    return client.models.generate_content(model="m", contents="hello")


ALL = pytest.mark.parametrize("ask", [ask_openai, ask_anthropic, ask_google])


def answered(faults: FaultServer, ask: Ask, reply: Reply) -> BaseException:
    path = {
        ask_openai: "/chat/completions",
        ask_anthropic: "/v1/messages",
        ask_google: "/v1/models/{model}",
    }[ask]
    faults.route("POST", path, reply)
    return raised(lambda: ask(faults.url("").rstrip("/")))


@ALL
def test_refused(ask: Ask) -> None:
    """A refused connection was not sent."""
    judged(
        raised(lambda: ask(f"http://127.0.0.1:{refused_port()}")),
        "network.connect_refused",
        "not_sent",
    )


@ALL
def test_no_answer(ask: Ask) -> None:
    """A service that stays silent: nobody knows whether it was done."""
    with peer(mute) as port:
        error = raised(lambda: ask(f"http://127.0.0.1:{port}"))
    judged(error, "network.read_timeout", "unknown")


@ALL
def test_reset(ask: Ask) -> None:
    """A connection that breaks after the request was written."""
    with peer(reset) as port:
        error = raised(lambda: ask(f"http://127.0.0.1:{port}"))
    judged(error, "network.connection_reset", "unknown")


def _openai_body(kind: str, code: str | None, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic_body(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _google_body(code: int, status: str, message: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "status": status, "message": message, "details": list(details)}}


@pytest.mark.parametrize(
    ("status", "body", "code", "effect"),
    [
        (
            429,
            _openai_body("insufficient_quota", "insufficient_quota", "You exceeded your quota"),
            "business.quota_exhausted|business.billing|business.insufficient_balance",
            "rejected",
        ),
        (
            429,
            _openai_body("requests", "rate_limit_exceeded", "Rate limit reached for requests"),
            "rate_limit.requests",
            "rejected",
        ),
        (
            401,
            _openai_body("invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
            "auth.invalid_credential",
            "rejected",
        ),
        (
            400,
            _openai_body("invalid_request_error", "context_length_exceeded", "maximum context"),
            "invalid_request.too_large",
            "rejected",
        ),
        (
            404,
            _openai_body("invalid_request_error", "model_not_found", "The model does not exist"),
            "invalid_request.parameter|business.not_found|invalid_request.endpoint_not_found",
            "rejected",
        ),
        (
            500,
            _openai_body("server_error", None, "The server had an error"),
            "server.internal",
            "unknown",
        ),
        (
            503,
            _openai_body("server_error", None, "The engine is overloaded"),
            "server.overloaded",
            "rejected|unknown",
        ),
    ],
)
def test_openai_answers(
    faults: FaultServer, status: int, body: Any, code: str, effect: str
) -> None:
    """Statuses of a compatible service, told apart by code and type."""
    failure = judged(answered(faults, ask_openai, Fault.json(body, status)), code, effect)
    assert failure.http_status == status


@pytest.mark.parametrize(
    ("status", "body", "code", "effect"),
    [
        (529, _anthropic_body("overloaded_error", "Overloaded"), "server.overloaded", "rejected"),
        (
            429,
            _anthropic_body("rate_limit_error", "This request would exceed your rate limit"),
            "rate_limit.requests|rate_limit.tokens",
            "rejected",
        ),
        (
            401,
            _anthropic_body("authentication_error", "invalid x-api-key"),
            "auth.invalid_credential",
            "rejected",
        ),
        (403, _anthropic_body("permission_error", "not allowed"), "auth.forbidden", "rejected"),
        (
            400,
            _anthropic_body("invalid_request_error", "Your credit balance is too low"),
            "business.insufficient_balance|business.billing",
            "rejected",
        ),
        (
            413,
            _anthropic_body("request_too_large", "Request exceeds the maximum size"),
            "invalid_request.too_large",
            "rejected",
        ),
    ],
)
def test_anthropic_answers(
    faults: FaultServer, status: int, body: Any, code: str, effect: str
) -> None:
    """Statuses with their error types."""
    judged(answered(faults, ask_anthropic, Fault.json(body, status)), code, effect)


@pytest.mark.parametrize(
    ("status", "body", "code", "effect"),
    [
        (
            400,
            _google_body(
                400,
                "INVALID_ARGUMENT",
                "API key not valid.",
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
            ),
            "auth.invalid_credential",
            "rejected",
        ),
        (
            503,
            _google_body(503, "UNAVAILABLE", "The model is overloaded."),
            "server.overloaded|server.unavailable",
            "rejected|unknown",
        ),
        (
            400,
            _google_body(400, "INVALID_ARGUMENT", "Invalid value at 'contents'"),
            "invalid_request.parameter",
            "rejected",
        ),
    ],
)
def test_google_answers(
    faults: FaultServer, status: int, body: Any, code: str, effect: str
) -> None:
    """Statuses with reasons in their details."""
    judged(answered(faults, ask_google, Fault.json(body, status)), code, effect)


def test_told_waits(faults: FaultServer) -> None:
    """The wait is found on the exception: in its headers, and in Google's details."""
    body = _openai_body("requests", "rate_limit_exceeded", "Rate limit reached")
    error = answered(
        faults,
        ask_openai,
        Reply(429, {"retry-after": "7", "content-type": "application/json"}, body=_json(body)),
    )
    assert judged(error, "rate_limit.requests", "rejected").retry_after == 7
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}
    body = _google_body(429, "RESOURCE_EXHAUSTED", "Resource exhausted", detail)
    error = answered(faults, ask_google, Fault.json(body, 429))
    assert judged(error, "rate_limit.requests|rate_limit.tokens", "rejected").retry_after == 12


def test_pages_in_place_of_answers(faults: FaultServer) -> None:
    """A gateway's page is the gateway's, whichever client met it."""
    for ask in (ask_openai, ask_anthropic, ask_google):
        judged(answered(faults, ask, Fault.status(502)), "network.bad_gateway", "unknown")


def test_langchain() -> None:
    """A tool's own word, a parser's complaint, arguments that the schema refuses."""

    @tool
    def lookup(number: int) -> str:
        """Look a number up."""
        raise ToolException("403 Forbidden: no access to this record")

    judged(raised(lambda: lookup.invoke({"number": 1})), "auth.forbidden", "rejected")
    judged(
        raised(lambda: lookup.invoke({"number": "many"})),
        "invalid_request.parameter|model_output.schema_violation",
        "not_sent|rejected|unknown",
    )
    error = raised(lambda: JsonOutputParser().parse("no json here"))
    assert isinstance(error, OutputParserException)
    judged(
        error,
        "parsing.invalid_json|model_output.invalid_json|parsing.schema_mismatch",
        "unknown|not_sent|applied",
    )


def _json(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()
