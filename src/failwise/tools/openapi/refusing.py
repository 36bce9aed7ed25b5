"""Where an API's refusals say what is wrong, read off the schemas of its error responses: a profile."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from failwise.tools.openapi.schemas import Schemas, Unsupported

_CODE: Final = (
    "code", "error_code", "errorcode", "err_code", "errcode", "error_id", "errorid", "error_type", "errortype",
    "reason_code", "status_code", "biz_code", "bizcode", "sub_code", "subcode", "result_code", "resultcode",
    "type", "reason", "error",
)  # fmt: skip
_MESSAGE: Final = (
    "message", "error_message", "errormessage", "err_msg", "errmsg", "msg", "detail", "details", "description",
    "error_description", "errordescription", "result_msg", "resultmsg", "reason", "title", "text", "error",
)  # fmt: skip
_REQUEST: Final = (
    "request_id",
    "requestid",
    "trace_id",
    "traceid",
    "correlation_id",
    "correlationid",
)
_PARAM: Final = ("param", "parameter", "field", "pointer", "property", "loc", "path")
_NAME: Final = re.compile(r"[A-Za-z_][\w-]*")
_SCALARS: Final = frozenset({"string", "integer", "number"})
_DEPTH: Final = 3
_MOST: Final = 8


class Places:
    """What the error schemas of all operations have in common: locators, the shallowest first."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._found: dict[str, dict[str, int]] = {
            "code": {}, "message": {}, "request_id": {}, "param": {},
        }  # fmt: skip
        self._seen: set[int] = set()

    def learn(self, responses: Any) -> None:
        """Look at an operation's refusals: 4xx, 5xx and the default. What cannot be read is left."""
        if not isinstance(responses, Mapping):
            return
        for status, response in responses.items():
            if not re.fullmatch(r"[45](?:\d\d|XX)|default", str(status), re.IGNORECASE):
                continue
            try:
                content = self._schemas.resolved(response).get("content")
                for media, inner in content.items() if isinstance(content, Mapping) else ():
                    if "json" in str(media) and isinstance(inner, Mapping) and "schema" in inner:
                        self._walk(inner["schema"], "", 0)
            except Unsupported:
                continue

    def _walk(self, schema: Any, prefix: str, depth: int) -> None:
        node = self._schemas.resolved(schema)
        if depth > _DEPTH or (not prefix and id(node) in self._seen):
            return
        if not prefix:
            self._seen.add(id(node))
        for group in ("allOf", "anyOf", "oneOf"):
            parts = node.get(group)
            for part in parts if isinstance(parts, list) else ():
                self._walk(part, prefix, depth + 1)
        for name, inner in self._properties(node):
            try:
                kind = self._schemas.resolved(inner)
            except Unsupported:
                continue
            at = prefix + name
            if kind.get("type") == "array" and isinstance(kind.get("items"), Mapping):
                self._walk(kind["items"], f"{at}[*].", depth + 1)
            elif "properties" in kind or any(
                group in kind for group in ("allOf", "anyOf", "oneOf")
            ):
                self._walk(inner, f"{at}.", depth + 1)
            elif _kinds(kind) & _SCALARS or "enum" in kind:
                self._note(name.lower(), at, depth, kind)

    @staticmethod
    def _properties(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        properties = node.get("properties")
        if isinstance(properties, Mapping):
            for name, inner in properties.items():
                if _NAME.fullmatch(name):
                    yield name, inner

    def _note(self, name: str, at: str, depth: int, kind: Mapping[str, Any]) -> None:
        for field, names in (
            ("code", _CODE), ("message", _MESSAGE), ("request_id", _REQUEST), ("param", _PARAM),
        ):  # fmt: skip
            if name in names:
                if field == "message" and not _kinds(kind) & {"string"}:
                    continue
                rank = depth * 100 + names.index(name)
                self._found[field].setdefault(at, rank)

    def profile(self, name: str, title: str, host: str) -> dict[str, Any] | None:
        """A profile of this API's refusals; None where the schemas do not say where they speak."""
        fields = {
            field: [at for at, _ in sorted(places.items(), key=lambda one: one[1])][:_MOST]
            for field, places in self._found.items()
            if places
        }
        if "message" not in fields or "code" not in fields:
            return None
        return {
            "schema": 1,
            "id": name,
            "name": title[:80] if len(title) > 1 else name,
            "kind": "api",
            "detect": {"hosts": [host]},
            "error_in": "http_status",
            "fields": fields,
        }


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind) if isinstance(kind, list) else set()
