"""Answers and returned values: bodies, what stands in the way of reading them, and told waits."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import requests

from failwise.evidence import from_response, from_value, is_response, parse_retry_after, told_waits
from failwise.vocabulary.records import UNSET

NOW = 1_796_040_000.0  # 2026-11-30T12:00:00Z
PAGE = b"<!doctype html><html><head><title>Sign &amp; in</title></head></html>"


@dataclass
class Answer:
    """An answer of the shape that `HttpTool` gives."""

    content: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "GET"
    url: str = "https://user:pw@api.example/items"
    reason: str = "OK"
    expects_json: bool = True
    too_large: bool = False


JSON = {"Content-Type": "application/json; charset=utf-8"}


@pytest.mark.parametrize(
    ("content", "headers", "problem", "position"),
    [
        (b'{"a": 1}', JSON, None, None),
        (b'{"a": 1}', {"Content-Type": "application/problem+json"}, None, None),
        (b'{"a": 1}', {}, None, None),
        (b'\xef\xbb\xbf{"a": 1}', JSON, None, None),
        (b'{"a": [1, 2', JSON, "truncated", 11),
        (b'{"a": "text', JSON, "truncated", 11),
        (b'{"a": tru', JSON, "truncated", 9),
        (b'{"a": 1}', {**JSON, "Content-Length": "20"}, "truncated", 8),
        ('{"城市": "北京"}'.encode("gbk"), JSON, "encoding", 2),
        (
            '{"城市": "北京"}'.encode("gbk"),
            {"Content-Type": "application/json; charset=gbk"},
            None,
            None,
        ),
        (b"", JSON, "empty", 0),
        (PAGE, {"Content-Type": "text/html"}, "html", None),
        (PAGE, {}, "html", None),
        (b'{"a": 1,,}', JSON, "invalid_json", 8),
        (b"upstream connect error", {"Content-Type": "text/plain"}, "not_json", 0),
        (b"[" * 100_000, JSON, "invalid_json", None),
    ],
)
def test_problem(
    content: bytes, headers: dict[str, str], problem: str | None, position: int | None
) -> None:
    """Why a body could not be read, and where."""
    evidence = from_response(Answer(content, headers=headers), now=NOW)
    assert (evidence.problem, evidence.position) == (problem, position)
    assert evidence.length_got == (len(content) if content else 0)
    assert (evidence.body is UNSET) == (
        problem is not None and headers.get("Content-Length") != "20"
    )


def test_title_and_request() -> None:
    """A page keeps its title; the URL loses its credentials."""
    evidence = from_response(Answer(PAGE, 502, {"Content-Type": "text/html"}), now=NOW)
    assert evidence.title == "Sign & in"
    assert (evidence.host, evidence.url) == ("api.example", "https://api.example/items")


@pytest.mark.parametrize(
    ("status", "method"), [(204, "GET"), (205, "GET"), (304, "GET"), (200, "HEAD")]
)
def test_no_body_is_no_problem(status: int, method: str) -> None:
    """Answers that have no body by definition are not empty ones."""
    assert from_response(Answer(b"", status, JSON, method), now=NOW).problem is None


def test_big_page_is_bounded() -> None:
    """Of ten megabytes of HTML little is looked at and little is kept."""
    evidence = from_response(
        Answer(PAGE + b"<p>x</p>" * 1_250_000, 502, {"Content-Type": "text/html"})
    )
    assert evidence.problem == "html"
    assert evidence.text is not None
    assert len(evidence.text) <= 8_192
    assert evidence.length_got is not None
    assert evidence.length_got > 10_000_000


def test_clients() -> None:
    """Responses of the clients are known by their shape; an unread one is left on the wire."""
    request = httpx.Request("POST", "https://api.example/x")
    read = httpx.Response(422, json={"detail": "no"}, request=request)
    evidence = from_response(read)
    assert (evidence.status, evidence.method, evidence.body) == (422, "POST", {"detail": "no"})
    unread = httpx.Response(200, stream=httpx.ByteStream(b"{}"), request=request)
    assert from_response(unread).unread
    other = requests.Response()
    other.status_code = 502
    assert is_response(read)
    assert is_response(other)
    assert from_response(other).unread


@pytest.mark.parametrize(
    "value", [None, 1, "200", {"status": 200, "headers": {}}, [], object(), httpx.Response]
)
def test_not_a_response(value: object) -> None:
    """Plain data is no response."""
    assert not is_response(value)


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: {"jsonrpc": "2.0", "id": 1, "result": r}])
def test_tool_result_of_mcp(wrap: Any) -> None:
    """MCP's flag is kept; the text of a failed one is taken apart, that of a good one is not."""
    text = 'Error: HTTP 429 {"error": {"retry_after": 5}}'
    failed = from_value(
        wrap({"isError": True, "content": [{"type": "text", "text": text}]}), now=NOW
    )
    assert (failed.is_error, failed.status, failed.body) == (
        True,
        429,
        {"error": {"retry_after": 5}},
    )
    assert failed.waits[0].seconds == 5
    good = from_value(
        wrap({"isError": False, "content": [{"type": "text", "text": text}]}), now=NOW
    )
    assert (good.is_error, good.status, good.exceptions) == (False, None, ())


def test_tool_result_object_of_mcp() -> None:
    """The SDK's own class is read by its shape."""
    types = pytest.importorskip("mcp.types")
    result = types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps({"code": 7}))], is_error=False
    )
    evidence = from_value(result)
    assert (evidence.is_error, evidence.body) == (False, {"code": 7})


def waits(
    headers: dict[str, str] | None = None,
    body: Any = UNSET,
    text: str | None = None,
    status: int | None = None,
) -> list[float]:
    return [
        round(w.seconds, 3) for w in told_waits(headers or {}, body, text, now=NOW, status=status)
    ]


def test_order_of_waits() -> None:
    """`retry-after-ms` beats `Retry-After`, which beats the body."""
    assert waits({"retry-after": "3", "retry-after-ms": "1500"}, {"retry_after": 9}) == [1.5, 3, 9]


def test_date_is_counted_from_the_answer() -> None:
    """An HTTP-date counts from the answer's own clock."""
    headers = {
        "retry-after": "Mon, 30 Nov 2026 09:00:05 GMT",
        "date": "Mon, 30 Nov 2026 09:00:00 GMT",
    }
    assert waits(headers) == [5]


@pytest.mark.parametrize(
    ("headers", "status", "expected"),
    [
        ({"x-ratelimit-reset": "1796040030", "x-ratelimit-remaining": "0"}, 403, [30]),
        ({"x-ratelimit-reset": "1796040030", "x-ratelimit-remaining": "12"}, 429, []),
        ({"x-ratelimit-reset": "1796040030000"}, 429, [30]),
        ({"x-ratelimit-reset": "1796040030"}, 200, []),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 429, [360]),
        (
            {
                "anthropic-ratelimit-tokens-reset": "2026-11-30T12:00:20Z",
                "anthropic-ratelimit-tokens-remaining": "0",
            },
            429,
            [20],
        ),
        ({"ratelimit": '"burst";r=0;t=5, "day";r=10;t=900'}, 429, [5]),
        ({"ratelimit-limit": "10", "ratelimit-remaining": "0", "ratelimit-reset": "8"}, 429, [8]),
    ],
)
def test_empty_buckets(headers: dict[str, str], status: int, expected: list[float]) -> None:
    """A reset counts while its bucket is empty, in whichever unit it comes."""
    assert waits(headers, status=status) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"details": [{"@type": "x"}, {"retryDelay": "46s"}]}}, 46),
        ({"parameters": {"retry_after": 2}}, 2),
        ({"retry_after": 0.65}, 0.65),
        ({"details": {"retryAfterSeconds": 1}}, 1),
        ({"error": {"message": "Please try again in 20s."}}, 20),
    ],
)
def test_waits_in_bodies(body: Any, expected: float) -> None:
    """The usual fields, and the message."""
    assert waits(body=body)[0] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please retry after 3 seconds", [3]),
        ("please try again after 1 seconds", [1]),
        ("Please retry in 10h17m5.7s", [37_025.7]),
        ("请在 20 秒后重试", [20]),
        ("請在20秒後再試", [20]),
        ("Please retry after 86400 seconds.", [86_400]),
        ("Retrying in 60 seconds… (attempt 1/10)", []),
        ("timed out after 30001 ms", []),
        ("run_command timed out after 30s; retry with a shorter command", []),
        ("will retry after 5 seconds", []),
        ("order again in 3 days", []),
    ],
)
def test_waits_in_texts(text: str, expected: list[float]) -> None:
    """What an upstream asks for, not what a client plans or what has passed."""
    assert waits(text=text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120),
        (" 120", 120),
        ("1.5", 1.5),
        ("Mon, 30 Nov 2026 12:02:00 GMT", 120),
        ("Monday, 30-Nov-26 12:02:00 GMT", 120),
        ("Mon Nov 30 12:02:00 2026", 120),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("-1", None),
        ("soon", None),
        ("inf", None),
        ("٢", None),
        ("Mon, 31 Feb 2026 12:02:00 GMT", None),
    ],
)
def test_retry_after(value: str, expected: float | None) -> None:
    """RFC 9110 §10.2.3, and nothing invented where it is neither."""
    assert parse_retry_after(value, now=NOW) == expected
