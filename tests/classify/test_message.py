"""What leaves the room is clean, bounded, and without secrets."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.classify import Classifier, classify_text
from failwise.classify.message import MESSAGE_LIMIT, SNIPPET_LIMIT, tidy
from failwise.evidence import from_response, from_text, from_value

CLASSIFIER = Classifier()


def test_large_page_is_reduced_to_its_title() -> None:
    """A 10 MB page leaves its title, type and length, and a bounded snippet."""
    page = (
        "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>"
        + "<p>x</p>" * 1_250_000
    )
    failure = CLASSIFIER.classify(from_response(httpx.Response(502, html=page)))
    assert failure is not None
    assert failure.message == "502 Bad Gateway"
    assert failure.evidence is not None
    assert failure.evidence.title == "502 Bad Gateway"
    assert failure.evidence.content_type is not None
    assert failure.evidence.content_type.startswith("text/html")
    assert failure.evidence.length == len(page)
    assert len(failure.evidence.snippet or "") <= SNIPPET_LIMIT


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("requests.exceptions.HTTPError: 403 Client Error", "403 Client Error"),
        ("ValueError: RuntimeError: it broke", "it broke"),
        ("<b>Bad</b> thing", "Bad thing"),
        ("服务器错误 502: !doctype htmlhtml lang", "服务器错误 502"),
        ("boom\n    at Object.fetch (node:internal:1:2)\n    at x (y:1)", "boom"),
        ("a < b", "a ‹ b"),
        (
            "<urlopen error [Errno 111] Connection refused>",
            "‹urlopen error [Errno 111] Connection refused›",
        ),
    ],
)
def test_noise_is_taken_off(text: str, clean: str) -> None:
    """Class names, tags, lost pages and frames are noise."""
    assert tidy(text) == clean


def test_no_secret_leaves() -> None:
    """Tokens, signatures, sessions and phone numbers are gone from message, excerpt and details; the rest stays."""
    token = "sk-" + "a1B2c3D4e5F6g7H8" * 3
    text = f"401 Unauthorized for https://a.example/login;jsessionid=ABC123DEF456?sign=deadbeefcafe1234 with Authorization: Bearer {token}"
    body = {"error": {"message": text, "code": "invalid_api_key"}, "phone": "13812345678"}
    for failure in (
        classify_text(text),
        CLASSIFIER.classify(from_response(httpx.Response(401, json=body))),
        CLASSIFIER.classify(from_value(body), trail=True),
    ):
        assert failure is not None
        assert failure.category == "auth"
        shown = repr(failure)
        for secret in (token, "ABC123DEF456", "deadbeefcafe1234", "13812345678"):
            assert secret not in shown
        assert "Bearer" in shown


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=60),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "code",
                    "message",
                    "msg",
                    "data",
                    "errors",
                    "status",
                    "ok",
                    "success",
                    "detail",
                    "errcode",
                    "items",
                    "result",
                    "x",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=150)
@given(JSON, st.sampled_from([200, 204, 302, 400, 401, 403, 404, 429, 500, 502, 503]))
def test_any_answer_is_judged(body: Any, status: int) -> None:
    """No body raises; 4xx and 5xx are always failures; what is shown is bounded and free of tags."""
    failure = CLASSIFIER.classify(from_response(httpx.Response(status, json=body)), trail=True)
    if status >= 400:
        assert failure is not None
    if failure is not None:
        assert len(failure.message) <= MESSAGE_LIMIT
        assert "<" not in failure.message
        json.dumps(dict(failure.details or {}), default=str)
    CLASSIFIER.classify(from_value(body))


@settings(max_examples=150)
@given(st.text(max_size=600) | st.lists(st.sampled_from(["error", ": ", "502", "{", "}", '"', "timeout", "余额不足", "<html>", "\n", "Traceback", "a"]), max_size=40).map("".join))  # fmt: skip
def test_any_text_is_judged(text: str) -> None:
    """No text raises, pasted or returned; the same text gets the same verdict again."""
    first, again = CLASSIFIER.classify(from_text(text)), CLASSIFIER.classify(from_text(text))
    assert (first and (first.code, first.fingerprint)) == (
        again and (again.code, again.fingerprint)
    )
    CLASSIFIER.classify(from_value(text))
