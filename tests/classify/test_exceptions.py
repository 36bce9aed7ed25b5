"""Exceptions, real ones where a package makes them: kind, phase, effect, and tools that speak for themselves."""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import requests

from failwise.classify import Classifier, classify_exception
from failwise.evidence import Evidence, from_exception
from failwise.vocabulary.errors import ToolCallFailed, ToolError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect, FixBy, StopReason
from failwise.vocabulary.result import ToolResult


def raised(action: Callable[[], Any]) -> BaseException:
    try:
        action()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.fixture
def dead_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port that accepts and never answers."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(8)
        yield one.getsockname()[1]


def test_refused(dead_port: int) -> None:
    """A refused connection was not sent, by each client."""
    for error in (
        raised(lambda: httpx.get(f"http://127.0.0.1:{dead_port}/", trust_env=False)),
        raised(lambda: requests.get(f"http://127.0.0.1:{dead_port}/", timeout=5)),
    ):
        failure = classify_exception(error)
        assert (failure.code, failure.effect) == ("network.connect_refused", Effect.NOT_SENT)
        assert failure.transient is True


def test_read_timeout_differs_from_connect_timeout(mute_port: int) -> None:
    """Two time limits: different codes, phases and effects; the limit is a fact of the failure."""
    read = classify_exception(
        raised(lambda: requests.get(f"http://127.0.0.1:{mute_port}/", timeout=(1, 0.1)))
    )
    connect = classify_exception(httpx.ConnectTimeout("timed out"))
    assert (read.code, read.effect, read.detail("phase")) == (
        "network.read_timeout",
        Effect.UNKNOWN,
        "read",
    )
    assert read.detail("limit") == pytest.approx(0.1)
    assert (connect.code, connect.effect) == ("network.connect_timeout", Effect.NOT_SENT)


def test_handshake_that_never_ends_was_not_sent(mute_port: int) -> None:
    """A time limit during the TLS handshake is the network's, and nothing was sent."""
    failure = classify_exception(
        raised(lambda: requests.get(f"https://127.0.0.1:{mute_port}/", timeout=0.1))
    )
    assert (failure.category, failure.effect) == (Category.NETWORK, Effect.NOT_SENT)


def test_unknown_name() -> None:
    """A name that does not exist is DNS, and not sent."""
    failure = classify_exception(socket.gaierror(-2, "Name or service not known"))
    assert (failure.code, failure.effect, failure.transient) == (
        "network.dns",
        Effect.NOT_SENT,
        False,
    )
    assert (
        classify_exception(socket.gaierror(-3, "Temporary failure in name resolution")).transient
        is True
    )


@pytest.mark.parametrize(
    ("verify_code", "code"),
    [
        (10, "certificate_expired"),
        (62, "hostname_mismatch"),
        (18, "self_signed"),
        (19, "self_signed"),
        (20, "unknown_issuer"),
        (21, "incomplete_chain"),
        (9, "certificate_not_yet_valid"),
    ],
)
def test_verify_codes(verify_code: int, code: str) -> None:
    """OpenSSL's verify code names the fault of the certificate, whatever the text says."""
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code, error.verify_message = verify_code, "?"
    wrapped = httpx.ConnectError("certificate verify failed")
    wrapped.__cause__ = error
    failure = classify_exception(wrapped)
    assert (failure.code, failure.effect) == (f"security.{code}", Effect.NOT_SENT)
    assert failure.transient is False


@pytest.mark.parametrize(
    ("error", "code", "effect"),
    [
        (KeyError("items"), "tool.exception", Effect.UNKNOWN),
        (TypeError("f() takes 1 positional argument"), "tool.exception", Effect.UNKNOWN),
        (PermissionError(13, "Permission denied"), "tool.local_permission", Effect.NOT_SENT),
        (FileNotFoundError(2, "No such file or directory"), "tool.file_not_found", Effect.NOT_SENT),
        (OSError(28, "No space left on device"), "tool.disk_full", Effect.UNKNOWN),
        (MemoryError(), "tool.out_of_memory", Effect.UNKNOWN),
        (ModuleNotFoundError("No module named 'x'"), "tool.missing_dependency", Effect.NOT_SENT),
        (ConnectionResetError(104, "Connection reset by peer"), "network.connection_reset", Effect.UNKNOWN),
        (BrokenPipeError(32, "Broken pipe"), "network.connection_reset", Effect.UNKNOWN),
        (asyncio.CancelledError(), "runtime.cancelled", Effect.UNKNOWN),
        (TimeoutError(), "network.timeout", Effect.UNKNOWN),
        (RuntimeError("Something went wrong"), "unknown.unclassified", Effect.UNKNOWN),
        (RuntimeError("Error code: 429 - {'error': {'message': '余额不足', 'code': '1113'}}"), "business.insufficient_balance", Effect.REJECTED),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), "network.connection_reset", Effect.UNKNOWN),
        (httpx.PoolTimeout(""), "network.pool_timeout", Effect.NOT_SENT),
    ],
)  # fmt: skip
def test_kinds(error: BaseException, code: str, effect: Effect) -> None:
    """The class of an exception says what it was and what became of the effect."""
    failure = classify_exception(error)
    assert (failure.code, failure.effect) == (code, effect), failure.rule
    assert failure.exception is error


def test_a_time_limit_of_asyncio_is_no_cancellation() -> None:
    """`asyncio.timeout` raises from a `CancelledError`: it is a time limit all the same."""

    async def slow() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)

    failure = classify_exception(raised(lambda: asyncio.run(slow())))
    assert (failure.code, failure.transient) == ("network.timeout", True)


def test_a_group_is_its_deepest_known_member() -> None:
    """An exception group says what its members say."""
    group = ExceptionGroup("unhandled errors in a TaskGroup", [httpx.ReadTimeout("slow")])
    assert classify_exception(group).code == "network.read_timeout"


def test_json_and_processes() -> None:
    """An answer that is not JSON is parsing; a command that failed is the tool."""
    assert classify_exception(raised(lambda: json.loads("<html>"))).category == "parsing"
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    assert (
        classify_exception(raised(lambda: subprocess.run(command, check=True))).code
        == "tool.process_failed"
    )


class Odd(Exception):
    """An exception of a class nobody knows."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("odd")
        self.__dict__.update(attributes)


def test_unknown_class_is_read_by_its_status() -> None:
    """An unknown class with a status is judged as a typed one with that status."""
    failure = classify_exception(Odd(status_code=403))
    assert (failure.code, failure.http_status, failure.effect) == (
        "auth.forbidden",
        403,
        Effect.REJECTED,
    )
    limited = classify_exception(Odd(status_code=429, headers={"Retry-After": "3"}))
    assert (limited.category, limited.retry_after) == ("rate_limit", 3.0)
    refused = classify_exception(
        Odd(status=400, body={"error": "city_code must be 3 digits, got '12'"})
    )
    assert refused.detail("violations") == [
        {"parameter": "city_code", "rule": "digits", "length": 3, "got": "12"}
    ]


def test_raise_for_status_is_the_answer_it_holds() -> None:
    """`raise_for_status` of a client says no more and no less than the answer inside."""
    response = httpx.Response(
        422,
        json={
            "detail": [
                {"loc": ["body", "city"], "msg": "Field required", "type": "missing", "input": {}}
            ]
        },
        request=httpx.Request("POST", "https://a.example/x"),
    )
    failure = classify_exception(raised(response.raise_for_status))
    assert failure.code == "invalid_request.missing_parameter"
    assert failure.detail("violations")[0]["parameter"] == "city"


def test_a_tool_speaks_for_itself() -> None:
    """`ToolError` is taken at its word: code, effect, transient, wait; nothing is guessed from its text."""
    error = ToolError(
        "timeout 502 unauthorized",
        code="business.seat_taken",
        effect="rejected",
        transient=False,
        retry_after=7,
    )
    failure = classify_exception(error)
    assert (failure.code, failure.category, failure.effect) == (
        "business.seat_taken",
        "business",
        Effect.REJECTED,
    )
    assert (failure.transient, failure.retry_after, failure.confidence) == (False, 7, 1.0)


def test_a_call_inside_a_tool_is_the_inner_failure() -> None:
    """`ToolCallFailed` leaving a tool is read as the failure of the call inside."""
    inner = Failure(
        Category.AUTH,
        "auth.forbidden",
        "no",
        Effect.REJECTED,
        False,
        FixBy.OPERATOR,
        rule="status.403",
    )
    result: ToolResult[None] = ToolResult(
        "inner", False, None, inner, stop_reason=StopReason.NOT_RETRIABLE
    )
    failure = classify_exception(ToolCallFailed(result))
    assert (failure.code, failure.effect, failure.rule) == (
        "auth.forbidden",
        Effect.REJECTED,
        "inner:status.403",
    )


def test_expired_time_limit() -> None:
    """The runtime's own time limit: the effect is unknown, and the limit is told."""
    failure = Classifier().classify(Evidence(source="expired", limit=10.0))
    assert failure is not None
    assert (failure.code, failure.effect, failure.detail("limit")) == (
        "network.timeout",
        Effect.UNKNOWN,
        10.0,
    )


def test_trail_on_demand() -> None:
    """The trail names evidence, the rules that spoke, the winner, and why; without asking there is none."""
    evidence = from_exception(Odd(status_code=403))
    plain, shown = Classifier().classify(evidence), Classifier().classify(evidence, trail=True)
    assert plain is not None
    assert shown is not None
    assert plain.detail("trail") is None
    trail = shown.detail("trail")
    assert trail["winner"] == shown.rule == "status.403"
    assert trail["evidence"]["status"] == 403
    assert trail["why"]
    assert trail["read_only"] is False
    json.dumps(trail)


def test_classic_mistakes() -> None:
    """A 403 is no timeout, a 422 is no business, 余额不足 is no network: none is worth trying again."""
    for error, category in (
        (Odd(status_code=403), "auth"),
        (Odd(status_code=422), "invalid_request"),
        (Exception("余额不足"), "business"),
    ):
        failure = classify_exception(error)
        assert (failure.category, failure.transient) == (category, False)
