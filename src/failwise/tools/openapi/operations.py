"""Operations of an OpenAPI document as tools: each an `HttpTool` with the schema a model sees."""

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from failwise.tools.answer import HttpAnswer
from failwise.tools.declared import TOOL_OPTIONS
from failwise.tools.http import METHODS, HttpTool
from failwise.tools.openapi.document import Source, read_document
from failwise.tools.openapi.parameters import (
    BODY,
    Body,
    Parameter,
    declared,
    read_body,
    read_parameters,
    wiring,
)
from failwise.tools.openapi.refusing import Places
from failwise.tools.openapi.schemas import Definitions, Schemas, Unsupported
from failwise.tools.openapi.securing import Secured, secured
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

logger = logging.getLogger("failwise")

OPTIONS: Final = (
    "timeout", "connect_timeout", "read_timeout", "write_timeout", "max_response_bytes", "ca_file",
    "headers", "idempotency_key", "deadline_header", "profile", "upstream", "policy", "repair",
    "fixer", "success",
)  # fmt: skip
"""Options of `HttpTool` that can be said for all operations at once."""

_NAME: Final = re.compile(r"[^\w.-]+")
_PLACE: Final = re.compile(r"\{([^{}/]+)\}")
_OWN: Final = "x-failwise"
_SAID: Final = tuple(
    name for name in TOOL_OPTIONS if name not in ("verify", "success", "fixer", "policy")
)


@record
class OpenApiTools:
    """What a document gave: tools, the profile of its refusals, and what was left out, with reasons."""

    tools: tuple[ToolSpec, ...]
    profile: Mapping[str, Any] | None
    skipped: tuple[tuple[str, str], ...]


def tools_from_openapi(
    source: Source,
    *,
    base_url: str | None = None,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    prefix: str = "",
    credentials: Mapping[str, str | None] | None = None,
    **options: Any,
) -> OpenApiTools:
    """The operations of an OpenAPI 3 document as tools. See `Runtime.add_openapi` for the options.

    Raises `ConfigurationError` for a document that cannot be read, `UsageError` for options that
    cannot work. An operation that a tool cannot stand for is left out, logged, and listed.
    """
    for option in options:
        if option not in OPTIONS:
            raise UsageError(
                f"add_openapi({option}=...): unknown option; known are {', '.join(OPTIONS)}"
            )
    document = read_document(source)
    reading = _Reading(document, base_url, prefix, credentials or {}, options)
    chosen = _Choice(include, exclude)
    tools: list[ToolSpec] = []
    skipped: list[tuple[str, str]] = []
    for path, method, item, operation in _operations(document):
        name = reading.name(method, path, operation)
        if not chosen.takes(name, method, path, operation):
            continue
        try:
            tools.append(reading.tool(name, method, path, item, operation))
        except (Unsupported, UsageError) as error:
            where = f"{method} {path}"
            logger.warning("openapi: %s is left out: %s", where, error)
            skipped.append((where, str(error)))
    chosen.check(tools, skipped)
    return OpenApiTools(tuple(tools), reading.profile(), tuple(skipped))


def _operations(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    schemas = Schemas(document)
    for path, node in document.get("paths", {}).items():
        try:
            item = schemas.resolved(node)
        except Unsupported as error:
            logger.warning("openapi: %s is left out: %s", path, error)
            continue
        for method in METHODS:
            operation = item.get(method.lower())
            if isinstance(operation, Mapping):
                yield path, method, item, operation


class _Choice:
    """Which operations are wanted: globs over tool name, ``METHOD /path``, path and ``tag:NAME``."""

    def __init__(
        self, include: "str | Sequence[str] | None", exclude: "str | Sequence[str]"
    ) -> None:
        self._include = None if include is None else _texts("include", include)
        self._exclude = _texts("exclude", exclude)
        self._seen: list[str] = []

    def takes(self, name: str, method: str, path: str, operation: Mapping[str, Any]) -> bool:
        tags = operation.get("tags")
        words = [name, f"{method} {path}", path]
        words += [f"tag:{tag}" for tag in tags] if isinstance(tags, list) else []
        self._seen.append(f"{name} ({method} {path})")
        if self._include is not None and not _any(words, self._include):
            return False
        return not _any(words, self._exclude)

    def check(self, tools: Collection[ToolSpec], skipped: Collection[Any]) -> None:
        if not tools and not skipped and (self._include is not None or self._exclude):
            raise UsageError(
                f"include={self._include}, exclude={list(self._exclude)}: no operation is left; there "
                f"are {', '.join(self._seen[:20]) or 'none'}"
            )


def _texts(option: str, given: "str | Sequence[str]") -> list[str]:
    texts = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{option}={given!r}: give globs, such as ['get_*', 'tag:orders']")
    return texts


def _any(words: list[str], globs: list[str]) -> bool:
    return any(fnmatchcase(word, glob) for word in words for glob in globs)


class _Reading:
    """One document on its way to tools."""

    def __init__(
        self,
        document: Mapping[str, Any],
        base_url: str | None,
        prefix: str,
        credentials: Mapping[str, str | None],
        options: Mapping[str, Any],
    ) -> None:
        self._document = document
        self._schemas = Schemas(document)
        self._places = Places(self._schemas)
        self._base, self._prefix, self._credentials = base_url, prefix, credentials
        self._options = dict(options)
        self._names: set[str] = set()
        info = document.get("info")
        title = info.get("title") if isinstance(info, Mapping) else None
        self._title = title if isinstance(title, str) else ""
        slug = re.sub(r"[^a-z0-9]+", "_", self._title.lower()).strip("_")
        self._profile_name = f"openapi_{slug or 'api'}"
        self._host = urlsplit(base_url or self._server(document) or "").hostname or ""
        self._recognised = bool(options.get("profile")) or _known_host(self._host)

    def name(self, method: str, path: str, operation: Mapping[str, Any]) -> str:
        """The tool's name: the operation's id, else one made of method and path; each once."""
        given = operation.get("operationId")
        made = (
            given
            if isinstance(given, str) and given.strip()
            else f"{method.lower()}_{path.strip('/')}"
        )
        base = self._prefix + _NAME.sub("_", made).strip("_.-")
        name, number = base[:64], 2
        while name in self._names:
            name, number = f"{base[:60]}_{number}", number + 1
        self._names.add(name)
        return name

    def tool(
        self,
        name: str,
        method: str,
        path: str,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
    ) -> ToolSpec:
        definitions = Definitions()
        found = declared(self._schemas, item.get("parameters"), operation.get("parameters"))
        path_names = _PLACE.findall(path)
        parameters, key = read_parameters(self._schemas, found, path_names, definitions)
        body = None
        if method in ("POST", "PUT", "PATCH", "DELETE"):
            taken = {one.name for one in parameters}
            body = read_body(self._schemas, operation.get("requestBody"), taken, definitions)
        security = secured(self._schemas, self._document, operation, self._credentials)
        said = self._said(operation)
        options = dict(self._options)
        if key is not None and "idempotency_key" not in options:
            options["idempotency_key"] = key
        self._places.learn(operation.get("responses"))
        if not self._recognised:
            options.setdefault("profile", self._profile_name)
        names = _wire_names(parameters)
        http = HttpTool(
            name,
            method,
            self._address(path, parameters, names, item, operation),
            body=f"{{{BODY}}}" if method not in ("GET", "HEAD", "OPTIONS") else None,
            expects=_promised(self._schemas, operation.get("responses")),
            **self._secured(security, options),
            **self._headers(parameters, names, body, options),
            **{k: v for k, v in options.items() if k != "headers"},
        )
        spec = _Operation(http, wiring(parameters, body, names, security.query)).spec(
            credential=security.credential,
            description=_description(operation),
            schema=_schema(parameters, body, definitions),
        )
        return replace(spec, **said) if said else spec

    @staticmethod
    def _secured(security: Secured, options: Mapping[str, Any]) -> dict[str, Any]:
        if security.credential is None or security.query is not None:
            return {}
        return {
            "credential": security.credential,
            "credential_header": security.header,
            "credential_format": security.form,
        }

    @staticmethod
    def _headers(
        parameters: list[Parameter],
        names: Mapping[str, str],
        body: Body | None,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        headers = dict(options.get("headers") or {})
        for one in parameters:
            if one.place == "header":
                headers[one.wire] = f"{{{names[one.name]}}}"
        if body is not None and body.media_type not in ("application/json", "*/*"):
            headers["Content-Type"] = body.media_type
        return {"headers": headers} if headers else {}

    def _said(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """What the document itself declares for us, under ``x-failwise``."""
        said = operation.get(_OWN)
        if said is None:
            return {}
        if not isinstance(said, Mapping):
            raise UsageError(f"{_OWN}: write a mapping of declarations")
        for name in said:
            if name not in _SAID:
                raise UsageError(f"{_OWN}: unknown {name!r}; known are {', '.join(_SAID)}")
        from failwise.tools.declared import Declarations

        return dict(Declarations({"operation": said}).of("operation"))

    def _address(
        self,
        path: str,
        parameters: list[Parameter],
        names: Mapping[str, str],
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
    ) -> str:
        base = self._base
        for node in (operation, item, self._document) if base is None else ():
            base = base or self._server(node)
        if base is None or "://" not in base:
            raise UsageError(
                f"servers: {base or 'none'} is no absolute address: give base_url='https://...'"
            )
        by_wire = {one.wire: names[one.name] for one in parameters if one.place == "path"}
        filled = _PLACE.sub(lambda place: f"{{{by_wire[place[1]]}}}", path)
        return base.rstrip("/") + (filled if filled.startswith("/") else f"/{filled}")

    @staticmethod
    def _server(node: Mapping[str, Any]) -> str | None:
        """The first server of a document, path or operation, with the defaults of its variables."""
        servers = node.get("servers")
        first = servers[0] if isinstance(servers, list) and servers else None
        if not isinstance(first, Mapping) or not isinstance(first.get("url"), str):
            return None
        variables = first.get("variables")
        url = str(first["url"])
        for name, variable in variables.items() if isinstance(variables, Mapping) else ():
            default = variable.get("default") if isinstance(variable, Mapping) else None
            url = url.replace(f"{{{name}}}", str(default or ""))
        return urljoin(url, urlsplit(url).path.rstrip("/")) if "://" in url else url

    def profile(self) -> Mapping[str, Any] | None:
        """Where this API's refusals speak; None where a profile knows it better."""
        if self._recognised:
            return None
        host = self._host.lower()
        if not re.fullmatch(r"[a-z0-9.-]+", host):
            host = "openapi.invalid"  # an IPv6 address: found by the profile's name alone
        return self._places.profile(self._profile_name, self._title, host)


def _known_host(host: str) -> bool:
    """Whether a profile of the package knows this host: its table says more than schemas do."""
    from failwise.profiles import Document, Profiles

    if not host:
        return False
    return any(hit.by == "host" for hit in Profiles.default().hits(Document(host=host)))


class _Operation:
    """An `HttpTool` whose arguments are told apart from those of the model."""

    __slots__ = ("_http", "_wire")

    def __init__(self, http: HttpTool, wire: Any) -> None:
        self._http, self._wire = http, wire

    def spec(
        self, *, credential: str | None, description: str, schema: Mapping[str, Any]
    ) -> ToolSpec:
        return replace(
            self._http.spec(),
            credential=credential,
            description=description,
            schema=schema,
            call=self._call,
            call_async=self._call_async,
        )

    def _call(self, arguments: Arguments, context: CallContext) -> HttpAnswer:
        from failwise.tools.send import send

        wired = self._wire(arguments, context.credential)
        return send(self._http.request(wired, context), context)

    async def _call_async(self, arguments: Arguments, context: CallContext) -> HttpAnswer:
        from failwise.tools.send import send_async

        wired = self._wire(arguments, context.credential)
        return await send_async(self._http.request(wired, context), context)


def _wire_names(parameters: list[Parameter]) -> dict[str, str]:
    """The places of path and header arguments, apart from every query parameter's own name."""
    queries = {one.wire for one in parameters if one.place == "query"}
    names = {}
    for one in parameters:
        if one.place != "query":
            names[one.name] = f"{one.place}.{one.name}" if one.name in queries else one.name
    return names


def _schema(
    parameters: list[Parameter], body: Body | None, definitions: Definitions
) -> dict[str, Any]:
    """What the model is told: one object of all arguments."""
    properties = {one.name: one.schema for one in parameters}
    required = [one.name for one in parameters if one.required]
    if body is not None:
        properties.update(body.properties)
        required += body.needed
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    if body is None or not body.open:
        made["additionalProperties"] = False
    if definitions.schemas:
        made["$defs"] = definitions.schemas
    return made


def _description(operation: Mapping[str, Any]) -> str:
    told = [operation.get("summary"), operation.get("description")]
    texts = [text.strip() for text in told if isinstance(text, str) and text.strip()]
    if len(texts) == 2 and texts[1].startswith(texts[0]):
        texts = texts[1:]
    if operation.get("deprecated") is True:
        texts.append("(deprecated)")
    return "\n\n".join(texts)[:1_000]


def _promised(schemas: Schemas, responses: Any) -> str | None:
    """The media type of the good answer: JSON where it may be; None where no body comes."""
    if not isinstance(responses, Mapping):
        return "application/json"
    good = [s for s in responses if re.fullmatch(r"2(?:\d\d|XX)", s, re.IGNORECASE)]
    kinds: list[str] = []
    for status in sorted(good) or ["default"]:
        try:
            content = schemas.resolved(responses.get(status)).get("content")
        except Unsupported:
            continue
        kinds += [str(media) for media in content] if isinstance(content, Mapping) else []
    for kind in kinds:
        if kind.partition(";")[0].strip().lower().endswith(("/json", "+json")):
            return kind
    return kinds[0] if kinds else None
