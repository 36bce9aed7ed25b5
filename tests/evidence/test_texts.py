"""Free text taken apart, in any language; hostile text in bounded time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.evidence import from_exception, from_text, from_value

PAGE = '<!doctype html><html lang="zh"><head><title>502 Bad Gateway</title></head><body>'


@pytest.mark.parametrize(
    ("message", "remnant"),
    [
        ("伺服器错误 502", "!doctype htmlhtml lang"),
        ("伺服器錯誤 502", "!doctype htmlhtml lang"),
        ("伺服器错误 502", PAGE),
    ],
)
def test_page_pasted_into_an_error(message: str, remnant: str) -> None:
    """Context, wrapper, message and the page's remnant come apart; the status stands in the message."""
    evidence = from_text(f"获取首页数据失败: exception: {message}: {remnant}")
    assert evidence.status == 502
    assert evidence.parts == {
        "context": "获取首页数据失败",
        "wrapper": "exception",
        "message": message,
        "remnant": remnant,
    }


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Error code: 429 - {'error': {'message': 'slow'}}", 429),
        ("HTTP 502", 502),
        ("HTTP/1.1 503 Service Unavailable", 503),
        ("status_code=429", 429),
        ("502 Bad Gateway", 502),
        ("status: 404", 404),
        ("Request failed with status code 422", 422),
        ("接口返回状态码：500", 500),
        ("服务器返回 503", 503),
        ("404 Client Error: Not Found for url: https://api.example/x", 404),
        ("API returned a 403 (Forbidden), ask the owner", 403),
    ],
)
def test_status_written_as_such(text: str, status: int) -> None:
    """A number is a status where the text says so."""
    assert from_text(text).status == status


@pytest.mark.parametrize(
    "text",
    [
        "Order 4291 created",
        "订单 502 已创建",
        "500 items imported",
        "price: 429.00",
        "returned 500 rows",
        "接口返回 500 条记录",
        "took 404 ms",
        "room 503",
    ],
)
def test_bare_number_is_no_status(text: str) -> None:
    """A bare number is never evidence."""
    assert from_text(text).status is None


@pytest.mark.parametrize(
    ("text", "phase", "attributes"),
    [
        (
            "ConnectionRefusedError: [WinError 10061] 由于目标计算机积极拒绝，无法连接。",
            "connect",
            {"symbol": "ECONNREFUSED"},
        ),
        ("dial failed (os error 111)", "connect", {"symbol": "ECONNREFUSED"}),
        (
            "Error: connect ECONNREFUSED 127.0.0.1:80\n    code: 'ECONNREFUSED'",
            "connect",
            {"symbol": "ECONNREFUSED"},
        ),
        ("curl: (35) SSL_connect: SSL_ERROR_SYSCALL", "tls", {"curl_code": 35}),
        ("cURL error 28: Operation timed out", "any", {"curl_code": 28}),
        ("SQLSTATE[23505]: unique violation", None, {"sqlstate": "23505"}),
        ("rpc error: code = InvalidArgument desc = bad", None, {"grpc_status": "INVALID_ARGUMENT"}),
        ("MCP error -32602: Invalid arguments", None, {"code": -32602}),
        ("SMTPAuthenticationError: (535, 'bad')", None, {"smtp_code": 535}),
        ("command exited with code 127", None, {"returncode": 127}),
        ("java.net.SocketTimeoutException: SSL handshake timed out", "tls", {}),
        ("您的连接不是私密连接 NET::ERR_CERT_DATE_INVALID", "tls", {"verify_code": 10}),
    ],
)
def test_causes(text: str, phase: str | None, attributes: dict[str, object]) -> None:
    """Class names, errno forms and codes become facts, alike on every platform."""
    evidence = from_text(text)
    assert evidence.phase == phase
    assert attributes.items() <= evidence.exceptions[-1].attributes.items()


def test_python_chain_is_turned_round() -> None:
    """Python prints the outermost exception last; it comes first among the facts."""
    evidence = from_text(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    raise ConnectionError(e)\n'
        "httpcore.ConnectTimeout: timed out\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in g\n'
        "httpx.ConnectTimeout: timed out"
    )
    assert [fact.name for fact in evidence.exceptions] == [
        "httpx.ConnectTimeout",
        "httpcore.ConnectTimeout",
    ]
    assert evidence.phase == "connect"


def test_headers_printed_beside() -> None:
    """A header dump tells the wait."""
    evidence = from_text("429 Too Many Requests {'headers': {'retry-after': '20'}}")
    assert evidence.waits[0].seconds == 20


@given(st.text(max_size=2_000))
@settings(max_examples=150, deadline=None)
def test_any_text(text: str) -> None:
    """No text makes it raise."""
    from_text(text)
    from_value(text, tool_expects_json=True)
    from_exception(RuntimeError(text))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=50)
    | st.binary(max_size=50),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["error", "isError", "content", "result", "retry_after", "details", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_any_value(value: object) -> None:
    """No value makes it raise."""
    from_value(value)


@pytest.mark.parametrize(
    "seed",
    [
        "{",
        "[{",
        "{'a': ",
        "\\",
        "a.",
        "Error: ",
        ": ",
        "<",
        "!doctype html",
        "\x1b[",
        "0",
        " ",
        "\n",
        "code: 1 ",
        "A::",
        "retry after ",
        "status ",
        "请等待",
        "x" * 50 + "Error(",
        "https://user:",
        "timeout=",
    ],
)
def test_hostile_megabyte(seed: str) -> None:
    """A megabyte of anything is read in bounded time."""
    text = (seed * (1_000_000 // len(seed)))[:1_000_000]
    began = time.process_time()
    from_text(text)
    from_value(text, tool_expects_json=True)
    from_exception(ValueError(text))
    assert time.process_time() - began < 3
