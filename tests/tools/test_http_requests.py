"""What `HttpTool` computes without sending anything: URLs, queries, headers, bodies."""

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.tools.answer import HttpAnswer, HttpRequest
from failwise.tools.http import HttpTool
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.spec import CallContext

SHOP = "https://shop.example"
VALUES = (
    st.text(max_size=20)
    | st.sampled_from(
        [
            "..",
            ".",
            "a/../b",
            "..%2f",
            "%2e%2e",
            "//evil.example",
            "?x=1",
            "#f",
            "@evil",
            "\\..\\",
            "a;b",
        ]
    )
    | st.text(alphabet="./\\%2eEfF", max_size=8)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
)


def compute(method: str, url: str, arguments: dict[str, Any], **options: Any) -> HttpRequest:
    return HttpTool("tool", method, url, **options).request(
        arguments,
        CallContext(idempotency_key="key-1", credential=options.get("credential") and "s3"),
    )


@given(VALUES, VALUES)
def test_an_argument_never_leaves_its_segment(first: Any, second: Any) -> None:
    """Whatever an argument holds, host and path structure stay; or it is refused, not sent."""
    tool = HttpTool("tool", "GET", SHOP + "/a/{x}/b/v-{y}?q={x}&z={y}")
    try:
        request = tool.request({"x": first, "y": second}, CallContext())
    except ToolError as refused:
        error = refused
    else:
        error = None
    if error is not None:
        assert (error.code, error.effect) == ("model_output.schema_violation", Effect.NOT_SENT)
        return
    sent = httpx.URL(request.url)
    assert (sent.scheme, sent.host, sent.port) == ("https", "shop.example", None)
    raw_path = sent.raw_path.partition(b"?")[0].decode()
    segments = raw_path.split("/")
    assert [segments[1], segments[3], len(segments)] == ["a", "b", 5]
    assert segments[4].startswith("v-")
    for segment in segments[1:]:
        assert unquote(unquote(segment)) not in ("", ".", "..")
        assert not {"..", "."} & set(unquote(unquote(segment)).replace("\\", "/").split("/"))
    assert list(parse_qs(sent.query.decode(), keep_blank_values=True)) == ["q", "z"]


@given(st.text(max_size=60))
def test_a_plain_path_value_arrives_as_it_was(value: str) -> None:
    """What is not refused is found again by a server that decodes once."""
    tool = HttpTool("tool", "GET", SHOP + "/orders/{order_id}")
    try:
        url = tool.request({"order_id": value}, CallContext()).url
    except ToolError:
        return
    assert unquote(urlsplit(url).path.removeprefix("/orders/")) == value


@pytest.mark.parametrize(
    "value", ["", " ", "..", ".", "a/../b", "..%2fadmin", "%252e%252e", "x\\..", None, [1], {}]
)
def test_values_that_would_climb_are_refused(value: Any) -> None:
    """An empty, climbing or composite value never becomes a path."""
    with pytest.raises(ToolError) as caught:
        compute("DELETE", SHOP + "/orders/{order_id}", {"order_id": value})
    assert caught.value.details["path"] == "/order_id"


def test_arguments_go_into_the_query_of_a_read() -> None:
    """Arguments named nowhere are query parameters: lists repeated, null left out."""
    request = compute(
        "GET",
        SHOP + "/search?version=2&tag=x&tag=y",
        {
            "q": "rote Schuhe & mehr",
            "size": [41, 42],
            "none": None,
            "new": True,
            "deep": {"a": [1]},
        },
    )
    assert parse_qs(urlsplit(request.url).query) == {
        "version": ["2"],
        "tag": ["x", "y"],
        "q": ["rote Schuhe & mehr"],
        "size": ["41", "42"],
        "new": ["true"],
        "deep": ['{"a":[1]}'],
    }
    assert request.content is None


def test_arguments_go_into_the_body_of_a_write() -> None:
    """Arguments named nowhere are the JSON body, in UTF-8."""
    request = compute("POST", SHOP + "/orders/{user}", {"user": "u1", "name": "茶", "count": 2})
    assert request.url == SHOP + "/orders/u1"
    assert request.content == '{"name":"茶","count":2}'.encode()
    assert request.headers["Content-Type"] == "application/json"


def test_half_characters_still_make_a_body() -> None:
    """A lone surrogate, which JSON can spell, is spelt."""
    request = compute("POST", SHOP + "/x", {"name": "\ud800"})
    assert request.content == b'{"name":"\\ud800"}'


def test_templates_of_body_query_and_headers() -> None:
    """Values are fixed, typed places, or texts with places; absent arguments leave theirs out."""
    request = compute(
        "POST",
        SHOP + "/orders",
        {"sku": "a", "count": 2, "tenant": "t1", "note": "hi"},
        query={"page_size": "{size}", "mode": "full", "count": "{count}"},
        headers={"X-Tenant": "tenant/{tenant}", "X-Trace": "{trace}", "X-Fixed": "1"},
        body={
            "item": {"sku": "{sku}", "quantity": "{count}"},
            "label": "{sku}-{count}",
            "gone": "{missing}",
            "list": ["{sku}", "{missing}", 3],
        },
    )
    assert urlsplit(request.url).query == "mode=full&count=2"
    assert request.headers["X-Tenant"] == "tenant/t1"
    assert "X-Trace" not in request.headers
    assert request.headers["X-Fixed"] == "1"
    assert json.loads(request.content or b"") == {
        "note": "hi",
        "item": {"sku": "a", "quantity": 2},
        "label": "a-2",
        "list": ["a", 3],
    }


def test_one_argument_can_be_the_whole_body() -> None:
    """``body="{payload}"`` sends the argument itself; the rest goes into the query."""
    request = compute("POST", SHOP + "/x", {"payload": [1, 2], "dry": True}, body="{payload}")
    assert (request.url, request.content) == (SHOP + "/x?dry=true", b"[1,2]")


def test_a_form_body() -> None:
    """A declared form is encoded as one, nested as providers read it."""
    request = compute(
        "POST",
        SHOP + "/charges",
        {"amount": 5, "metadata": {"order": "6 5"}, "items": [{"sku": "a"}], "none": None},
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert request.content == b"amount=5&metadata[order]=6%205&items[][sku]=a"


def test_the_idempotency_key_goes_where_it_is_declared() -> None:
    """A header or a field of the body carries the call's one key."""
    header = compute("POST", SHOP + "/x", {"a": 1}, idempotency_key="Idempotency-Key")
    assert header.headers["Idempotency-Key"] == "key-1"
    field = compute("POST", SHOP + "/x", {"a": 1}, idempotency_key="body:client_token")
    assert json.loads(field.content or b"") == {"a": 1, "client_token": "key-1"}
    forged = compute(
        "POST", SHOP + "/x", {"client_token": "forged"}, idempotency_key="body:client_token"
    )
    assert json.loads(forged.content or b"") == {"client_token": "key-1"}


class Secret:
    def get_secret_value(self) -> str:
        return "s3cret"


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ("s3cret\n", {}, {"Authorization": "Bearer s3cret"}),
        (lambda: "s3cret", {}, {"Authorization": "Bearer s3cret"}),
        (Secret(), {}, {"Authorization": "Bearer s3cret"}),
        (
            "s3cret",
            {"credential_header": "X-Api-Key", "credential_format": "{}"},
            {"X-Api-Key": "s3cret"},
        ),
        ({"X-Id": "i", "X-Secret": "s"}, {}, {"X-Id": "i", "X-Secret": "s"}),
    ],
)
def test_credential_values(value: Any, options: Any, expected: dict[str, str]) -> None:
    """A text, a function, a secret type or a mapping of headers; all marked as secret."""
    tool = HttpTool("tool", "GET", SHOP, credential="shop", **options)
    request = tool.request({}, CallContext(credential=value))
    assert expected.items() <= request.headers.items()
    assert {name.lower() for name in expected} <= request.secret_headers


@pytest.mark.parametrize("value", [None, "", " \n", "a\r\nX-Evil: 1", {"Host": "evil"}])
def test_unusable_credentials(value: Any) -> None:
    """Without a usable value nothing is sent, and the value is in no message."""
    tool = HttpTool("tool", "GET", SHOP, credential="shop")
    with pytest.raises(ToolError) as caught:
        tool.request({}, CallContext(credential=value))
    assert caught.value.code == "tool.configuration"
    assert caught.value.effect is Effect.NOT_SENT
    assert "Evil" not in str(caught.value)


def test_no_header_injection() -> None:
    """A line break in an argument never makes a second header."""
    with pytest.raises(ToolError, match="one line"):
        compute("GET", SHOP, {"t": "a\r\nX-Evil: 1"}, headers={"X-T": "{t}"})


@pytest.mark.parametrize(
    ("method", "read_only", "idempotent"),
    [
        ("get", True, None),
        ("HEAD", True, None),
        ("OPTIONS", True, None),
        ("PUT", None, True),
        ("DELETE", None, True),
        ("POST", None, None),
        ("PATCH", None, None),
    ],
)
def test_what_a_method_declares(method: str, read_only: Any, idempotent: Any) -> None:
    """RFC 9110 §9.2 says what is safe and what may be repeated; POST says nothing."""
    spec = HttpTool("tool", method, SHOP + ":8443/x").spec()
    assert (spec.read_only, spec.idempotent) == (read_only, idempotent)
    assert spec.upstream == "shop.example:8443"
    assert spec.expects_json
    explicit = HttpTool("tool", method, SHOP, read_only=False, idempotent=False).spec()
    assert (explicit.read_only, explicit.idempotent) == (False, False)


def test_a_schema_is_made_of_the_places() -> None:
    """Without a schema, the path's places are required."""
    spec = HttpTool("tool", "GET", SHOP + "/o/{order_id}", query={"n": "{limit}"}).spec()
    assert spec.schema == {
        "type": "object",
        "properties": {"limit": {}, "order_id": {"type": "string"}},
        "required": ["order_id"],
    }


def test_a_default_fills_a_path() -> None:
    """A default in the schema stands where the model gave nothing."""
    schema = {"properties": {"region": {"type": "string", "default": "eu"}}}
    assert compute("GET", SHOP + "/{region}/x", {}, schema=schema).url == SHOP + "/eu/x"


@pytest.mark.parametrize(
    ("method", "url", "options", "says"),
    [
        ("FETCH", SHOP, {}, "GET, HEAD"),
        ("GET", "/orders", {}, "absolute"),
        ("GET", "ftp://shop.example", {}, "absolute"),
        ("GET", "https:///x", {}, "absolute"),
        ("GET", "https://user:pw@shop.example", {}, "register a credential"),
        ("GET", "https://{host}/x", {}, "host is fixed"),
        ("GET", "https://shop.example:{port}/x", {}, "host is fixed"),
        ("GET", "https://shop.example:99999/x", {}, "ort"),
        ("GET", "https://shop .example/x", {}, "without spaces"),
        ("GET", SHOP + "/x#f", {}, "fragment"),
        ("GET", SHOP + "/{order id}", {}, "spaces"),
        ("GET", SHOP + "/{order_id", {}, "a place is written"),
        ("GET", SHOP + "/x?{name}=1", {}, "name is fixed"),
        ("GET", SHOP + "/{id}", {"schema": {"properties": {"order_id": {}}}}, "no property"),
        ("GET", SHOP, {"schema": {"properties": {"n": {}}}, "query": {"n": "limit"}}, "rename"),
        ("GET", SHOP, {"body": {}}, "no body"),
        ("GET", SHOP, {"headers": {"Host": "x"}}, "connection itself"),
        ("GET", SHOP, {"headers": {"X Y": "x"}}, "letters, digits"),
        ("GET", SHOP, {"headers": {"X-Y": "a\nb"}}, "one line"),
        ("GET", SHOP, {"headers": {"Authorization": "{token}"}}, "use credential="),
        ("GET", SHOP, {"idempotency_key": "body:x"}, "name a header"),
        ("POST", SHOP, {"idempotency_key": "not a header"}, "name a header"),
        ("POST", SHOP, {"credential": "c", "credential_format": "Bearer"}, "credential_format"),
        ("POST", SHOP, {"credential": "c", "credential_header": "a b"}, "credential_header"),
        ("POST", SHOP, {"connect_timeout": 0}, "seconds above 0"),
        ("POST", SHOP, {"read_timeout": -1}, "seconds above 0"),
        ("POST", SHOP, {"timeout": 0}, "seconds above 0"),
        ("POST", SHOP, {"max_response_bytes": 0}, "bytes above 0"),
        ("POST", SHOP, {"fallback": "tool"}, "its own fallback"),
        ("POST", SHOP, {"schema": {"type": "string"}}, "arguments are an object"),
        ("POST", SHOP, {"repair": "always"}, "auto, confirm, off"),
    ],
)
def test_definitions_that_cannot_work(method: str, url: str, options: Any, says: str) -> None:
    """Each is refused at once, with what to do."""
    with pytest.raises(UsageError, match=says):
        HttpTool("tool", method, url, **options)


def test_checking_certificates_cannot_be_turned_off() -> None:
    """There is no such option."""
    with pytest.raises(TypeError):
        HttpTool("tool", "GET", SHOP, verify_tls=False)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("content", "content_type", "expects", "value"),
    [
        (b'{"a": 1}', "application/json", "application/json", {"a": 1}),
        (b'{"a": 1}', "application/problem+json; charset=utf-8", None, {"a": 1}),
        (b'{"a": 1}', None, None, {"a": 1}),
        (b'{"a": 1}', "text/plain", "application/json", {"a": 1}),
        (b'{"a": 1}', "text/plain", None, '{"a": 1}'),
        (b"<html>", "text/html", "application/json", "<html>"),
        (b"\xef\xbb\xbf[1]", "application/json", "application/json", [1]),
        ("茶".encode("gbk"), "text/plain; charset=gbk", None, "茶"),
        ("茶".encode(), "text/plain; charset=nonsense", None, "茶"),
        (b"abc", "text/plain; charset=rot13", None, "abc"),
        (b"abc", "text/plain; charset=idna", None, "abc"),
        (b"abc", "text/plain; charset=cp\x00", None, "abc"),
        (b"caf\xe9", 'text/plain; charset="ISO-8859-1"', None, "café"),
        (b"\xff", "text/plain", None, "�"),
        (b"", "application/json", "application/json", None),
        (b"[" * 100_000, "application/json", "application/json", "[" * 100_000),
    ],
)
def test_the_value_of_an_answer(
    content: bytes, content_type: str | None, expects: str | None, value: Any
) -> None:
    """JSON where it says so, says nothing or was promised; else text; None for no body."""
    headers = {"Content-Type": content_type} if content_type else {}
    answer = HttpAnswer(200, headers, content, expects=expects)
    assert answer.value == value
    assert answer.value is answer.value


@given(st.binary(max_size=200), st.text(max_size=40))
def test_any_answer_has_a_value(content: bytes, content_type: str) -> None:
    """No body and no content type, however odd, makes reading fail."""
    _ = HttpAnswer(200, {"content-type": content_type}, content).value
