"""What comes again word for word is judged once: as quick, and never another verdict than the first time."""

import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.classify import Classifier
from failwise.evidence import from_exception, from_response
from failwise.profiles.library import Profiles
from failwise.redaction import Redactor
from failwise.vocabulary.failure import Failure

SHOP = """\
schema: 1
id: shop
name: The shop
kind: api
detect:
  hosts: [api.example.com]
error_in: http_status
fields:
  code: [error]
  message: [message]
codes:
  - {code: E77, en: "Seat is taken", zh: "座位已被占用", as: business.seat_taken, transient: false, action: ask_model, effect: rejected}
"""
REQUEST = httpx.Request("POST", "https://api.example.com/v1/orders/17")


def _answer(status: int, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    return httpx.Response(status, headers=headers, request=REQUEST, **body)


def _classified(classifier: Classifier, answer: httpx.Response, tool: str = "order") -> Failure:
    failure = classifier.classify(from_response(answer), tool=tool)
    assert failure is not None
    return failure


HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "retry-after", "date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "content-type", "www-authenticate",
            "x-should-retry", "server", "cf-mitigated",
        ]
    ),
    st.sampled_from(
        [
            "3", "0", "Wed, 21 Oct 2026 07:28:00 GMT", "1795000000", "application/json", "text/html", "text/plain", "false", "abc",
            'Bearer error="invalid_token", error_description="The token expired"', "cloudflare", "challenge",
        ]
    ),
    max_size=4,
)  # fmt: skip
BODIES = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["<html><head><title>502 Bad Gateway</title></head></html>", "请求过于频繁, 20 秒后重试", "Unauthorized"]
    ),
    st.dictionaries(
        st.sampled_from(["error", "message", "code", "retry_after", "reset_at", "request_id", "detail"]),
        st.one_of(
            st.sampled_from(["insufficient_quota", "slow down, try again in 20s", "invalid token", 40001, 1795000000, 2]),
            st.dictionaries(st.sampled_from(["code", "message", "retry_after"]), st.sampled_from(["rate_limited", "no", 7])),
        ),
    ).map(json.dumps),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([400, 401, 403, 404, 409, 422, 429, 500, 502, 503]), HEADERS, BODIES
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_a_classifier_that_knows_it_says_what_a_new_one_says(
    answers: list[tuple[int, dict[str, str], str]], read_first: bool
) -> None:
    """Whatever came before, each answer gets the verdict, words and waits of a classifier without a past."""
    now = [1_790_000_000.0]
    knowing = Classifier(now=lambda: now[0])
    for _ in range(2):
        for status, headers, body in answers:
            told = from_response(_answer(status, headers, content=body.encode()), now=None)
            failure = knowing.classify(told, tool="order")
            fresh = Classifier(now=lambda: now[0]).classify(
                from_response(_answer(status, headers, content=body.encode())), tool="order"
            )
            assert failure is not None
            assert fresh is not None
            if read_first:
                assert failure.message == fresh.message
            assert _without_clock(failure) == _without_clock(fresh)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([400, 401, 403, 404, 422, 429, 500, 503]),
            HEADERS,
            BODIES,
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_exceptions_that_carry_an_answer_too(
    answers: list[tuple[int, dict[str, str], str, int]],
) -> None:
    """An exception around an answer gets the verdict that a classifier without a past gives it,
    whatever the exception holds beside the answer."""
    knowing = Classifier(now=lambda: 1_790_000_000.0)
    for _ in range(2):
        for status, headers, body, form in answers:
            error = _raised(_answer(status, headers, content=body.encode()), form)
            failure = knowing.classify(from_exception(error), tool="order")
            error = _raised(_answer(status, headers, content=body.encode()), form)
            fresh = Classifier(now=lambda: 1_790_000_000.0).classify(
                from_exception(error), tool="order"
            )
            assert failure is not None
            assert fresh is not None
            assert _without_clock(failure) == _without_clock(fresh)


class _ClientError(Exception):
    """As the clients of providers have them."""

    def __init__(self, message: str, response: httpx.Response, **more: Any) -> None:
        super().__init__(message)
        self.response = response
        self.body = response.content
        self.__dict__.update(more)


def _raised(answer: httpx.Response, form: int) -> Exception:
    if form == 0:
        return httpx.HTTPStatusError("it failed", request=REQUEST, response=answer)
    if form == 1:
        return _ClientError(f"Error code: {answer.status_code}", answer, code="insufficient_quota")
    if form == 2:
        return _ClientError("no", answer, code=None, request_id=answer.headers.get("x-request-id"))
    if form == 3:
        error = RuntimeError("the order failed")
        error.__cause__ = _ClientError("no", answer, code="rate_limited", more={"a": 1})
        return error
    error = ValueError("while handling")
    error.__context__ = _ClientError("no", answer, status_code=answer.status_code)
    return error


def _without_clock(failure: Failure) -> dict[str, Any]:
    """The failure as data; a wait until a moment shrinks while the two are asked."""
    data = failure.to_dict()
    wait = data["retry_after"]
    return {**data, "retry_after": None if wait is None else round(wait, 1)}


def test_each_answer_keeps_its_own_request_id() -> None:
    """The request id of a header is that of the answer at hand, not of the first of its kind."""
    classifier = Classifier()
    found = [
        _classified(
            classifier, _answer(503, {"x-request-id": f"r{n}"}, text="overloaded")
        ).request_id
        for n in range(3)
    ]
    assert found == ["r0", "r1", "r2"]


def test_the_tool_is_part_of_what_is_remembered() -> None:
    """One answer to two tools is two kinds of failures: their fingerprints differ."""
    classifier = Classifier()
    first = _classified(classifier, _answer(500, text="boom"), "a")
    other = _classified(classifier, _answer(500, text="boom"), "b")
    assert first.fingerprint != other.fingerprint


@pytest.mark.parametrize("read", [True, False])
def test_a_secret_learned_in_between_is_hidden(read: bool) -> None:
    """What was shown before a value became a secret is not shown again after it."""
    redactor = Redactor()
    classifier = Classifier(redactor=redactor)
    body = {"error": {"message": "the account blue-orchid-77 is locked"}}
    first = _classified(classifier, _answer(403, json=body))
    if read:
        assert "blue-orchid-77" in first.message
    redactor.add_secret("blue-orchid-77")
    second = _classified(classifier, _answer(403, json=body))
    assert "blue-orchid-77" not in json.dumps(second.to_dict())


def test_profiles_added_in_between_count(tmp_path: Path) -> None:
    """A user's profile that comes later decides about answers that were judged without it."""
    profiles = Profiles()
    classifier = Classifier(profiles)
    body = {"error": "E77", "message": "no"}
    assert _classified(classifier, _answer(400, json=body)).code != "business.seat_taken"
    (tmp_path / "shop.yaml").write_text(SHOP, "utf-8")
    profiles.add(tmp_path)
    assert _classified(classifier, _answer(400, json=body)).code == "business.seat_taken"


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:{m:02d}:00 GMT"},
        {"x-ratelimit-reset": "1792567680", "x-ratelimit-remaining": "0", "date": "Wed, 21 Oct 2026 07:{m:02d}:00 GMT"},
    ],
)  # fmt: skip
def test_a_wait_until_a_moment_is_counted_anew(headers: dict[str, str]) -> None:
    """A wait that ends at a moment is shorter for the answer that comes later."""
    classifier = Classifier()
    waits = []
    for minute in (8, 18):
        told = {name: value.format(m=minute) for name, value in headers.items()}
        waits.append(_classified(classifier, _answer(429, told, text="slow down")).retry_after)
    assert waits[0] is not None
    assert waits[1] is not None
    assert waits[0] - waits[1] == 600


def _answers() -> Iterator[httpx.Response]:
    yield _answer(500, text="boom")
    yield _answer(429, json={"error": {"code": "too_many", "message": "Slow down"}})


def test_neither_answer_nor_exception_is_kept() -> None:
    """Nothing of an answer outlives it: what is remembered is the verdict and its redacted words."""
    classifier = Classifier()
    for answer in _answers():
        failure = _classified(classifier, answer)
        assert failure.message
        again = _classified(classifier, answer)
        reference = weakref.ref(answer)
        del answer, failure, again
        gc.collect()
        assert reference() is None


def test_what_is_remembered_is_bounded() -> None:
    """Ten thousand different answers leave no more behind than a few hundred verdicts."""
    import tracemalloc

    classifier = Classifier()
    for number in range(600):
        _classified(classifier, _answer(500, text=f"warm {number}"))
    tracemalloc.start()
    for number in range(2_000):
        _ = _classified(classifier, _answer(500, text=f"boom {number} {'x' * 500}")).message
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4_000_000


def test_details_of_one_are_not_those_of_the_next() -> None:
    """Whoever changes the details of one failure changes those of no other."""
    classifier = Classifier()
    body = {"detail": [{"type": "missing", "loc": ["body", "quantity"], "msg": "Field required"}]}
    first = _classified(classifier, _answer(422, json=body))
    assert first.details
    second = _classified(classifier, _answer(422, json=body))
    assert isinstance(second.details, dict)
    second.details["violations"] = "mine"
    third = _classified(classifier, _answer(422, json=body))
    assert third.details == first.details


MESSAGES = st.sampled_from(
    [
        "", "boom", "timed out", "Error code: 429 - {'error': {'message': 'slow down, try again in 20s', 'code': 'rate_limited'}}",
        "503 Server Error: Service Unavailable for url: https://api.example.com/v1", "[Errno 111] Connection refused",
        "invalid literal for int() with base 10: 'a'", "余额不足", "HTTPSConnectionPool(host='b.example', port=443): Read timed out. (read timeout=5)",
        "<html><title>Sign in</title><form><input type=password></form></html>", "Authorization: Bearer abcdefghijklmnop123456",
    ]
)  # fmt: skip
CLASSES = st.sampled_from(
    [ValueError, RuntimeError, TimeoutError, ConnectionResetError, OSError, KeyError, httpx.ReadTimeout, httpx.ConnectError, httpx.HTTPError]
)  # fmt: skip
LIMITS = st.sampled_from([None, 1.0, 30.0])


@st.composite
def _exceptions(draw: st.DrawFn) -> Exception:
    error: Exception = draw(CLASSES)(draw(MESSAGES))
    if isinstance(error, httpx.RequestError):
        host = draw(st.sampled_from(["a.example", "api.openai.com"]))
        method = draw(st.sampled_from(["GET", "POST"]))
        timeouts = {"timeout": {"read": draw(LIMITS), "connect": 2.0}}
        error.request = httpx.Request(method, f"https://{host}/v1/login", extensions=timeouts)
    for name, value in draw(
        st.dictionaries(
            st.sampled_from(["code", "status_code", "param", "retry_after", "timeout", "body"]),
            st.sampled_from([None, 3, 404, 429, "insufficient_quota", {"error": "x"}, [1]]),
            max_size=2,
        )
    ).items():
        error.__dict__[name] = value
    if draw(st.booleans()):
        error.__cause__ = draw(CLASSES)(draw(MESSAGES))
    elif draw(st.booleans()):
        error.__context__ = draw(CLASSES)(draw(MESSAGES))
    return error


@settings(max_examples=150, deadline=None)
@given(st.lists(_exceptions(), min_size=1, max_size=6), st.booleans(), LIMITS)
def test_exceptions_that_come_again_get_the_verdict_of_new_ones(
    errors: list[Exception], read_first: bool, limit: float | None
) -> None:
    """Whatever came before, each exception gets the verdict, words and details of a classifier without a past."""
    knowing = Classifier(now=lambda: 1_790_000_000.0)
    for _ in range(2):
        for error in errors:
            failure = knowing.classify(from_exception(error, limit=limit), tool="order")
            fresh = Classifier(now=lambda: 1_790_000_000.0).classify(
                from_exception(error, limit=limit), tool="order"
            )
            if failure is None or fresh is None:
                assert failure is fresh
                continue
            if read_first:
                assert failure.message == fresh.message
            assert failure.exception is error
            assert _without_clock(failure) == _without_clock(fresh)


def test_an_exception_that_comes_again_is_not_judged_again() -> None:
    """Two exceptions of the same words have one verdict's words: they are put together once."""
    classifier = Classifier()
    first, second = (
        classifier.classify(from_exception(RuntimeError("Error code: 503 - overloaded")))
        for _ in range(2)
    )
    assert first is not None
    assert second is not None
    assert first.message == second.message
    assert first.spoke is second.spoke
    other = classifier.classify(from_exception(RuntimeError("Error code: 504 - overloaded")))
    assert other is not None
    assert other.http_status == 504


def test_what_only_prints_an_object_says_nothing() -> None:
    """tenacity's error is told by the exception behind it, not by how the object around that is printed."""
    tenacity = pytest.importorskip("tenacity")

    def fail() -> None:
        raise httpx.ReadTimeout("The read operation timed out", request=REQUEST)

    with pytest.raises(tenacity.RetryError) as caught:
        tenacity.Retrying(stop=tenacity.stop_after_attempt(2))(fail)
    failure = Classifier().classify(from_exception(caught.value))
    assert failure is not None
    assert (failure.code, failure.message) == (
        "network.read_timeout",
        "The read operation timed out",
    )
