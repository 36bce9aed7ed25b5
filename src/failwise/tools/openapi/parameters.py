"""Where an operation's arguments go: parameters by place and style, and the body."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from failwise.tools.openapi.schemas import Definitions, Schemas, Unsupported
from failwise.tools.places import text_of
from failwise.vocabulary.records import record
from failwise.vocabulary.spec import Arguments

_SEPARATORS: Final = {"form": ",", "simple": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
_LEFT_TO_HTTP: Final = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that OpenAPI itself says to ignore."""
_KEY: Final = re.compile(r"idempotency[-_]?key", re.IGNORECASE)
_UNFIT: Final = re.compile(r"[^\w.-]+|^(?=[^A-Za-z_])")
_FORM: Final = "application/x-www-form-urlencoded"


@record
class Parameter:
    """One argument outside of the body: `name` for the model, `wire` in the request."""

    name: str
    wire: str
    place: str
    style: str
    explode: bool
    as_json: bool
    required: bool
    schema: Any


@record
class Body:
    """The request's body: `whole` names the argument that is all of it; None: the arguments that are no
    parameters are its properties. `media_type` as it is sent."""

    whole: str | None
    media_type: str
    required: bool
    properties: Mapping[str, Any]
    needed: tuple[str, ...]
    open: bool


Merged = dict[tuple[str, str], Mapping[str, Any]]


def declared(schemas: Schemas, *groups: Any) -> Merged:
    """Parameters of a path and of its operation, resolved; the operation's own win."""
    found: Merged = {}
    for group in groups:
        if not isinstance(group, list):
            continue
        for node in group:
            one = schemas.resolved(node)
            found[str(one.get("in")), str(one.get("name"))] = one
    return found


def read_parameters(
    schemas: Schemas, found: Merged, path_names: list[str], definitions: Definitions
) -> tuple[list[Parameter], str | None]:
    """The arguments that parameters ask for; and the header in which the operation takes an idempotency
    key, which is the runtime's to fill. Raises `Unsupported`."""
    key: str | None = None
    read: list[Parameter] = []
    taken: set[str] = set()
    for (place, wire), node in found.items():
        if place == "header" and wire.lower() in _LEFT_TO_HTTP:
            continue
        if place == "header" and _KEY.search(wire):
            key = wire
            continue
        if place == "cookie":
            if node.get("required") is True:
                raise Unsupported(f"the required parameter {wire!r} goes into a cookie")
            continue
        if place not in ("path", "query", "header"):
            raise Unsupported(f"parameter {wire!r} is in {place!r}")
        read.append(_parameter(schemas, node, place, wire, taken, definitions))
    for wire in path_names:
        if not any(one.place == "path" and one.wire == wire for one in read):
            plain = {"in": "path", "name": wire, "schema": {"type": "string"}}
            read.append(_parameter(schemas, plain, "path", wire, taken, definitions))
    return read, key


def _parameter(
    schemas: Schemas,
    node: Mapping[str, Any],
    place: str,
    wire: str,
    taken: set[str],
    definitions: Definitions,
) -> Parameter:
    content, schema = node.get("content"), node.get("schema", {})
    as_json = isinstance(content, Mapping) and bool(content)
    if as_json:
        media, inner = next(iter(content.items()))  # type: ignore[union-attr]
        if "json" not in media:
            raise Unsupported(f"parameter {wire!r} is written as {media}")
        schema = inner.get("schema", {}) if isinstance(inner, Mapping) else {}
    style = str(node.get("style") or ("form" if place == "query" else "simple"))
    if style not in _SEPARATORS and not (style == "deepObject" and place == "query"):
        raise Unsupported(f"parameter {wire!r} has the style {style!r}")
    made = schemas.converted(schema, definitions)
    told = node.get("description")
    if isinstance(told, str) and isinstance(made, dict) and "description" not in made:
        made = {**made, "description": told.strip()[:500]}
    name = base = _UNFIT.sub("_", wire)[:60] or "argument"
    number = 2
    while name in taken:
        name, number = f"{place}_{base}" if number == 2 else f"{base}_{number}", number + 1
    taken.add(name)
    explode = node.get("explode")
    return Parameter(
        name,
        wire,
        place,
        style,
        style == "form" if not isinstance(explode, bool) else explode,
        as_json,
        node.get("required") is True or place == "path",
        made,
    )


def read_body(
    schemas: Schemas, node: Any, taken: set[str], definitions: Definitions
) -> Body | None:
    """How the body is given: by its properties where they are plain and none is also a parameter's
    name, else as one argument. Raises `Unsupported` for media that a tool cannot send."""
    if node is None:
        return None
    body = schemas.resolved(node)
    content = body.get("content")
    if not isinstance(content, Mapping) or not content:
        return None
    media = _media(content)
    inner = content[media]
    schema = inner.get("schema", {}) if isinstance(inner, Mapping) else {}
    required = body.get("required") is True
    kind = media.partition(";")[0].strip().lower()
    plain = _flat(schemas, schema, 0) if kind == _FORM or "json" in kind else None
    if plain is not None and not taken & plain[0].keys():
        properties, needed, is_open = plain
        return Body(
            None,
            kind,
            required,
            {name: schemas.converted(one, definitions) for name, one in properties.items()},
            tuple(name for name in needed if name in properties) if required else (),
            is_open,
        )
    name = next(one for one in ("body", "request_body", "payload") if one not in taken)
    made = schemas.converted(schema, definitions)
    told = body.get("description")
    if isinstance(told, str) and isinstance(made, dict) and "description" not in made:
        made = {**made, "description": told.strip()[:500]}
    return Body(name, kind, required, {name: made}, (name,) if required else (), False)


def _media(content: Mapping[str, Any]) -> str:
    """The media type to send: JSON first, then a form, then text."""
    kinds = {str(media): str(media).partition(";")[0].strip().lower() for media in content}
    for endings in (("application/json",), ("/json", "+json"), (_FORM,)):
        for media, kind in kinds.items():
            if kind.endswith(endings):
                return media
    for media, kind in kinds.items():
        if kind.startswith("text/"):
            return media
    if "*/*" in content:
        return "*/*"
    raise Unsupported(f"the body is {', '.join(kinds)}: JSON, a form or text can be sent")


Flat = tuple[dict[str, Any], list[str], bool]


def _flat(schemas: Schemas, schema: Any, depth: int) -> Flat | None:
    """Properties, the required ones, and whether others may come; None where that is not all there is."""
    if depth > 5:
        return None
    node = schemas.resolved(schema)
    if node.get("nullable") is True or any(key in node for key in ("anyOf", "oneOf", "not", "if")):
        return None
    if node.get("type", "object") != "object" or not ("properties" in node or "allOf" in node):
        return None
    properties: dict[str, Any] = {}
    needed: list[str] = []
    extra = node.get("additionalProperties", False)
    is_open = extra is not False
    parts = node.get("allOf", [])
    for part in parts if isinstance(parts, list) else []:
        found = _flat(schemas, part, depth + 1)
        if found is None:
            return None
        properties.update(found[0])
        needed += found[1]
        is_open = is_open or found[2]
    own = node.get("properties", {})
    if isinstance(own, Mapping):
        properties.update(
            {
                name: one
                for name, one in own.items()
                if not (isinstance(one, Mapping) and one.get("readOnly") is True)
            }
        )
    required = node.get("required", [])
    needed += (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    )
    return properties, needed, is_open


def written(parameter: Parameter, value: Any) -> list[tuple[str, Any]]:
    """One argument as names and values of the request, by its style."""
    if value is None:
        return []
    wire = parameter.wire
    if parameter.as_json:
        return [(wire, json.dumps(value, ensure_ascii=False, separators=(",", ":")))]
    if isinstance(value, Mapping):
        if parameter.style == "deepObject":
            return [(f"{wire}[{key}]", one) for key, one in value.items()]
        if parameter.explode and parameter.place == "query":
            return [(str(key), one) for key, one in value.items()]
        pairs = (
            f"{key}={text_of(key, one)}" if parameter.explode else f"{key},{text_of(key, one)}"
            for key, one in value.items()
        )
        return [(wire, ",".join(pairs))]
    if isinstance(value, list | tuple) and not (parameter.explode and parameter.place == "query"):
        separator = _SEPARATORS.get(parameter.style, ",")
        return [(wire, separator.join(text_of(parameter.name, one) for one in value))]
    return [(wire, value)]


def wiring(
    parameters: list[Parameter], body: Body | None, names: Mapping[str, str], key: str | None
) -> Callable[[Arguments, Any], Arguments]:
    """The function from a model's arguments to those of the request.

    `names` gives the place of each path and header argument; query parameters go by their own names.
    `key` is the query parameter that carries the credential, which is the function's second argument.
    """
    by_name = {one.name: one for one in parameters}

    def wire(arguments: Arguments, credential: Any) -> Arguments:
        sent: Arguments = {}
        rest: Arguments = {}
        for name, value in arguments.items():
            parameter = by_name.get(name)
            if parameter is None:
                rest[name] = value
                continue
            for at, one in written(parameter, value):
                sent[names.get(name, at)] = one
        if body is not None:
            if body.whole is not None:
                if body.whole in rest:
                    sent[BODY] = rest[body.whole]
            elif rest or body.required:
                sent[BODY] = rest
        if key is not None and credential is not None:
            sent[key] = str(credential)
        return sent

    return wire


BODY: Final = "request.body"
"""The place of the body in the request's template."""
