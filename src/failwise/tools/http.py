"""`HttpTool`: an HTTP endpoint as a tool. It computes requests and reads answers, sending neither."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from failwise.tools.answer import MAXIMUM_REDIRECTS, HttpAnswer, HttpRequest, is_json
from failwise.tools.deadline import DeadlineHeader
from failwise.tools.deadline import deadline_header as read_deadline_header
from failwise.tools.declarations import check_schema, check_seconds, checked, fallback_names
from failwise.tools.headers import (
    SECRET_HEADERS,
    checked_headers,
    credential_headers,
    is_printable,
    is_token,
)
from failwise.tools.places import (
    ABSENT,
    UrlTemplate,
    encoded,
    fill,
    form_pairs,
    placeholders,
    query_pairs,
    text_of,
)
from failwise.tools.signature import refused_argument
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import UNSET, Unset
from failwise.vocabulary.spec import Arguments, CallContext, Flag, ToolSpec

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# RFC 9110 §9.2.1 and §9.2.2: safe methods; methods that may be repeated.
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT = frozenset({"PUT", "DELETE"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

_FORM = "application/x-www-form-urlencoded"
_IN_BODY = "body:"


class HttpTool:
    """An HTTP endpoint as a tool.

    `url` is a template: ``https://shop.example/orders/{order_id}``; an argument stays inside its
    path segment, whatever it holds. `query`, `headers` and `body` are templates too: a value may be
    fixed, ``"{name}"`` (the argument with its type; left out when it was not given), or a text with
    places in it. Arguments named nowhere go into the query (GET, HEAD, OPTIONS, DELETE) or the JSON
    body (POST, PUT, PATCH; a form, where `headers` say so).

    `idempotency_key` names the header, or ``body:field``, that carries the call's key.
    `deadline_header` names the header that tells how long the caller will wait, with its unit where
    that is not seconds (``"X-Timeout-Ms milliseconds"``); undeclared it is the `profile`'s, if any.
    `credential` names the credential whose value goes into `credential_header` as
    `credential_format` says. Times are in seconds: `connect_timeout`, `read_timeout` (between two
    pieces of the answer) and `write_timeout` for one step, `timeout` for an attempt as a whole.
    The certificate is always checked; `ca_file` names authorities to trust instead of the usual.

    Undeclared, GET, HEAD and OPTIONS are read-only and PUT and DELETE idempotent, as RFC 9110 §9.2
    has it; POST and PATCH are never repeated once they may have been sent. GET follows up to 3
    redirects, without credentials to another origin; other methods follow none.

    Raises `UsageError`, saying what to do, where the definition cannot work.
    """

    __slots__ = (
        "_body",
        "_body_takes_rest",
        "_deadline",
        "_deadline_of",
        "_default_arguments",
        "_headers",
        "_key_field",
        "_key_header",
        "_named",
        "_query",
        "_spec",
        "_url",
        "ca_file",
        "connect_timeout",
        "credential",
        "credential_format",
        "credential_header",
        "expects",
        "max_response_bytes",
        "method",
        "name",
        "read_timeout",
        "write_timeout",
    )

    def __init__(
        self,
        name: str,
        method: str,
        url: str,
        *,
        description: str = "",
        schema: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        deadline_header: str | None = None,
        credential: str | None = None,
        credential_header: str = "Authorization",
        credential_format: str = "Bearer {}",
        profile: str | None = None,
        upstream: str | None = None,
        read_only: Flag = None,
        idempotent: Flag = None,
        destructive: bool | None = None,
        timeout: float | None = 30.0,
        connect_timeout: float | None = 3.0,
        read_timeout: float | None = 10.0,
        write_timeout: float | None = 10.0,
        max_response_bytes: int = 5_000_000,
        expects: str | None = "application/json",
        fallback: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] = (),
        fallback_value: Any | Unset = UNSET,
        verify: Callable[..., Any] | None = None,
        verify_final_after: float | None = None,
        success: Callable[[Any], bool] | None = None,
        policy: Mapping[str, Any] | None = None,
        repair: str | None = None,
        fixer: Callable[..., Any] | None = None,
        ca_file: str | None = None,
    ) -> None:
        self.name = name
        self.method = str(method).upper()
        if self.method not in METHODS:
            raise UsageError(f"{name}: method {method!r}: say one of {', '.join(METHODS)}")
        self._url = UrlTemplate(name, url)
        self.connect_timeout, self.read_timeout = connect_timeout, read_timeout
        self.write_timeout = write_timeout
        for option in ("connect_timeout", "read_timeout", "write_timeout"):
            check_seconds(name, option, getattr(self, option))
        if isinstance(max_response_bytes, bool) or not max_response_bytes > 0:
            raise UsageError(
                f"{name}: max_response_bytes={max_response_bytes!r}: give bytes above 0"
            )
        self.max_response_bytes = max_response_bytes
        self.expects = expects
        self.ca_file = ca_file
        self.credential = credential
        self.credential_header, self.credential_format = credential_header, credential_format
        if "{}" not in credential_format:
            raise UsageError(
                f"{name}: credential_format={credential_format!r}: write {{}} where the value "
                "stands, such as 'Bearer {}'"
            )
        if credential is not None and not is_token(credential_header):
            raise UsageError(f"{name}: credential_header={credential_header!r}: name one header")
        self._headers = checked_headers(name, headers or {})
        self._query: dict[str, Any] = {}
        for key, value in self._url.query:
            # a name that stands more than once in the URL keeps all of its values
            self._query[key] = [*_as_list(self._query[key]), value] if key in self._query else value
        self._query.update(query or {})
        if body is not None and self.method in ("GET", "HEAD", "OPTIONS"):
            raise UsageError(f"{name}: {self.method} has no body: use query= or POST")
        self._body = body
        self._body_takes_rest = isinstance(body, Mapping) or (
            body is None and self.method in _WITH_BODY
        )
        self._key_header, self._key_field = self._key_places(idempotency_key)
        self._deadline: DeadlineHeader | None = None
        if deadline_header is not None:
            self._deadline = read_deadline_header(name, deadline_header)
        self._deadline_of = profile if deadline_header is None else None
        self._named = {
            *self._url.path_names,
            *placeholders(self._query),
            *placeholders(self._headers),
            *placeholders(self._body),
        }
        given_schema = self._checked_schema(schema)
        self._spec = checked(
            ToolSpec(
                name,
                description,
                given_schema,
                call=self._call,
                call_async=self._call_async,
                read_only=True if read_only is None and self.method in _SAFE else read_only,
                idempotent=(
                    True if idempotent is None and self.method in _IDEMPOTENT else idempotent
                ),
                destructive=destructive,
                timeout=timeout,
                fallback=fallback_names(name, fallback),
                fallback_value=fallback_value,
                verify=verify,
                verify_final_after=verify_final_after,
                idempotency_key=idempotency_key,
                credential=credential,
                profile=profile,
                upstream=upstream or self._url.upstream,
                success=success,
                policy=policy,
                repair=repair,
                fixer=fixer,
                expects_json=is_json(expects),
            )
        )

    def __repr__(self) -> str:
        return f"<HttpTool {self.name}: {self.method} {self._url.origin}>"

    def spec(self) -> ToolSpec:
        """The tool as the runtime knows it; `call` and `call_async` send over httpx."""
        return self._spec

    def request(self, arguments: Arguments, context: CallContext) -> HttpRequest:
        """The request for validated arguments.

        Raises `ToolError`, effect ``not_sent``, for an argument that cannot stand in its place
        (``model_output.schema_violation``) and a credential without a value
        (``tool.configuration``).
        """
        if self._default_arguments:
            arguments = {**self._default_arguments, **arguments}
        rest = {name: value for name, value in arguments.items() if name not in self._named}
        query = fill(self._query, arguments)
        url = self._url.expand(arguments)
        headers = self._fixed_headers(arguments)
        content = self._content(arguments, rest if self._body_takes_rest else {}, context, headers)
        if not self._body_takes_rest:
            query = {**rest, **query}
        if pairs := query_pairs(query):
            url = f"{url}?{encoded(pairs)}"
        if self._key_header is not None and context.idempotency_key is not None:
            headers[self._key_header] = context.idempotency_key
        if (self._deadline or self._deadline_of) and context.remaining is not None:
            self._tell_deadline(headers, context.remaining)
        secrets: dict[str, str] = {}
        if self.credential is not None:
            secrets = credential_headers(
                self.credential, context.credential, self.credential_header, self.credential_format
            )
        headers.update(secrets)
        return HttpRequest(
            self.method,
            url,
            headers,
            content,
            secret_headers=SECRET_HEADERS | {name.lower() for name in secrets},
            connect_timeout=self.connect_timeout,
            read_timeout=None
            if self.read_timeout is None
            else self.read_timeout * context.patience,
            write_timeout=self.write_timeout,
            max_response_bytes=self.max_response_bytes,
            redirects=MAXIMUM_REDIRECTS if self.method in ("GET", "HEAD") else 0,
            ca_file=self.ca_file,
            expects=self.expects,
        )

    def answer(
        self,
        status: int,
        headers: Mapping[str, str],
        content: bytes = b"",
        *,
        url: str = "",
        reason: str = "",
        too_large: bool = False,
        elapsed_ms: float = 0.0,
    ) -> HttpAnswer:
        """An answer of this tool, for those who send its requests themselves."""
        return HttpAnswer(
            status,
            headers,
            content,
            reason=reason,
            method=self.method,
            url=url,
            expects=self.expects,
            too_large=too_large,
            elapsed_ms=elapsed_ms,
        )

    def _call(self, arguments: Arguments, context: CallContext) -> HttpAnswer:
        from failwise.tools.send import send

        return send(self.request(arguments, context), context)

    async def _call_async(self, arguments: Arguments, context: CallContext) -> HttpAnswer:
        from failwise.tools.send import send_async

        return await send_async(self.request(arguments, context), context)

    def _tell_deadline(self, headers: dict[str, str], seconds: float) -> None:
        """Say how long the caller waits, where nothing else was declared for that header."""
        if self._deadline_of is not None:
            from failwise.profiles import Profiles

            profile, self._deadline_of = Profiles.default().get(self._deadline_of), None
            if profile is not None and profile.deadline_header is not None:
                self._deadline = read_deadline_header(self.name, profile.deadline_header)
        header = self._deadline
        if header is not None and header.name.lower() not in map(str.lower, headers):
            headers[header.name] = header.value(seconds)

    def _key_places(self, key: str | None) -> tuple[str | None, str | None]:
        if key is None:
            return None, None
        if not key.startswith(_IN_BODY):
            if not is_token(key):
                raise UsageError(
                    f"{self.name}: idempotency_key={key!r}: name a header, such as "
                    "'Idempotency-Key', or a field of the body, such as 'body:client_token'"
                )
            return key, None
        field = key.removeprefix(_IN_BODY)
        if not field or not self._body_takes_rest:
            raise UsageError(
                f"{self.name}: idempotency_key={key!r}: there is no body with such a field: "
                "name a header, such as 'Idempotency-Key'"
            )
        return None, field

    def _checked_schema(self, schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if schema is None:
            self._default_arguments: Arguments = {}
            made: dict[str, Any] = {"type": "object"}
            if self._named:
                made["properties"] = {
                    name: {"type": "string"} if name in self._url.path_names else {}
                    for name in sorted(self._named)
                }
                made["required"] = sorted(set(self._url.path_names))
            return made
        check_schema(self.name, schema)
        properties = schema.get("properties", {})
        for name in sorted(self._named):
            if name not in properties:
                raise UsageError(
                    f"{self.name}: {{{name}}} is no property of the schema: add it there, or "
                    "write its name as the schema has it"
                )
        for key, value in self._query.items():
            if key in properties and key not in self._named and isinstance(value, str):
                raise UsageError(
                    f"{self.name}: query parameter {key!r} is fixed to {value!r}, but is an "
                    f'argument too: write {{"{value}": "{{{key}}}"}} to rename it, or drop one'
                )
        self._default_arguments = {
            name: properties[name]["default"]
            for name in self._url.path_names
            if isinstance(properties[name], Mapping) and "default" in properties[name]
        }
        return schema

    def _fixed_headers(self, arguments: Arguments) -> dict[str, str]:
        from failwise._version import __version__

        headers = {"Accept": self.expects or "*/*", "User-Agent": f"failwise/{__version__}"}
        given = {name.lower() for name in self._headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in given}
        for name, template in self._headers.items():
            value = fill(template, arguments)
            if value is ABSENT or value is None:
                continue
            text = text_of(name, value)
            if not is_printable(text):
                raise refused_argument(
                    next(placeholders(template), name), "a header is one line of text"
                )
            headers[name] = text
        return headers

    def _content(
        self, arguments: Arguments, rest: Arguments, context: CallContext, headers: dict[str, str]
    ) -> bytes | None:
        """The body, with its content type in `headers`; None where there is none."""
        if self._body is None and not self._body_takes_rest:
            return None
        body = fill(self._body, arguments)
        if body is ABSENT:
            return None
        if self._body_takes_rest:
            body = {**rest, **(body or {})}
            if self._key_field is not None and context.idempotency_key is not None:
                body[self._key_field] = context.idempotency_key
        told = next(
            (value for name, value in headers.items() if name.lower() == "content-type"), ""
        )
        if told.partition(";")[0].strip().lower() == _FORM:
            return encoded(form_pairs(body)).encode("ascii")
        if not told:
            headers["Content-Type"] = "application/json"
        elif isinstance(body, str) and not is_json(told):
            return body.encode("utf-8", "replace")
        try:
            return json.dumps(
                body, ensure_ascii=False, separators=(",", ":"), allow_nan=False
            ).encode("utf-8")
        except UnicodeEncodeError:
            return json.dumps(body, separators=(",", ":")).encode("ascii")
        except ValueError as error:
            raise refused_argument("body", str(error)) from error


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
