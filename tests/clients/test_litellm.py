"""litellm: one interface over many chat services, whose exceptions wrap those of others."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from failwise.faults import Fault, FaultServer
from tests.clients.provoking import judged, mute, peer, raised, refused_port, reset

litellm = pytest.importorskip("litellm")

Ask = Callable[[str], Any]


def _asking(model: str) -> Ask:
    def ask(base: str) -> Any:
        return litellm.completion(
            model=model,
            api_base=base,
            api_key="k",
            messages=[{"role": "user", "content": "hello"}],
            timeout=0.5,
            num_retries=0,
            max_retries=0,
        )

    return ask


ask_openai, ask_anthropic = _asking("openai/m"), _asking("anthropic/m")
BOTH = pytest.mark.parametrize("ask", [ask_openai, ask_anthropic], ids=["openai", "anthropic"])


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """It prints advice on each failure."""
    before, litellm.suppress_debug_info = litellm.suppress_debug_info, True
    yield
    litellm.suppress_debug_info = before


@BOTH
def test_refused(ask: Ask) -> None:
    """litellm calls it an internal server error with status 500; nothing was sent."""
    error = raised(lambda: ask(f"http://127.0.0.1:{refused_port()}"))
    judged(error, "network.connect_refused", "not_sent")


@BOTH
def test_no_answer(ask: Ask) -> None:
    """Its `Timeout` carries a 408 of its own making; nobody knows whether it was done."""
    with peer(mute) as port:
        error = raised(lambda: ask(f"http://127.0.0.1:{port}"))
    judged(error, "network.read_timeout", "unknown")


@BOTH
def test_reset(ask: Ask) -> None:
    """A connection that breaks after the request was written."""
    with peer(reset) as port:
        error = raised(lambda: ask(f"http://127.0.0.1:{port}"))
    judged(error, "network.connection_reset", "unknown")


def _body(kind: str, code: str | None, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "code", "effect"),
    [
        (
            429,
            _body("insufficient_quota", "insufficient_quota", "You exceeded your current quota"),
            "business.quota_exhausted|business.billing|business.insufficient_balance",
            "rejected",
        ),
        (
            429,
            _body("requests", "rate_limit_exceeded", "Rate limit reached for requests"),
            "rate_limit.requests",
            "rejected",
        ),
        (
            401,
            _body("invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
            "auth.invalid_credential",
            "rejected",
        ),
        (403, _body("forbidden", None, "Project has no access"), "auth.forbidden", "rejected"),
        (
            400,
            _body("invalid_request_error", "context_length_exceeded", "maximum context length"),
            "invalid_request.too_large",
            "rejected",
        ),
        (
            404,
            _body("invalid_request_error", "model_not_found", "The model m does not exist"),
            "invalid_request.parameter|business.not_found|invalid_request.endpoint_not_found",
            "rejected",
        ),
        (
            400,
            _body("x", "content_filter", "filtered due to content management policy"),
            "security.content_policy",
            "rejected",
        ),
        (500, _body("server_error", None, "The server had an error"), "server.internal", "unknown"),
        (
            503,
            _body("server_error", None, "The engine is overloaded"),
            "server.overloaded",
            "rejected|unknown",
        ),
    ],
)
def test_answers(faults: FaultServer, status: int, body: Any, code: str, effect: str) -> None:
    """The service's own words come through its wrapper, and the status."""
    faults.route("POST", "/chat/completions", Fault.json(body, status))
    error = raised(lambda: ask_openai(faults.url("").rstrip("/")))
    assert judged(error, code, effect).http_status == status


def test_a_told_wait(faults: FaultServer) -> None:
    """``Retry-After`` of the answer within."""
    body = _body("requests", "rate_limit_exceeded", "Rate limit reached for requests")
    faults.route("POST", "/chat/completions", Fault.json(body, 429, headers={"retry-after": "7"}))
    error = raised(lambda: ask_openai(faults.url("").rstrip("/")))
    assert judged(error, "rate_limit.requests", "rejected").retry_after == 7


def test_a_gateways_page(faults: FaultServer) -> None:
    """The gateway's page is the gateway's."""
    faults.route("POST", "/chat/completions", Fault.status(502))
    error = raised(lambda: ask_openai(faults.url("").rstrip("/")))
    judged(error, "network.bad_gateway", "unknown")


def test_what_it_refuses_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without a provider; no key anywhere (it says 500): never sent."""
    hello = [{"role": "user", "content": "hello"}]
    error = raised(lambda: litellm.completion(model="no-provider", messages=hello))
    judged(error, "invalid_request.parameter|tool.configuration", "rejected|not_sent")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = raised(lambda: litellm.completion(model="openai/m", messages=hello, num_retries=0))
    judged(error, "auth.invalid_credential", "not_sent|rejected")
