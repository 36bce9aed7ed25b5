"""Schemas of an OpenAPI document as JSON Schema, with the definitions they refer to."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

_DEPTH: Final = 60
_HOPS: Final = 16
_DEFINITIONS: Final = 300
_LEFT_OUT: Final = frozenset(
    {
        "discriminator",
        "xml",
        "externalDocs",
        "example",
        "nullable",
        "readOnly",
        "writeOnly",
        "$schema",
    }
)
_SCHEMAS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMA: Final = (
    "items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else",
    "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")


class Unsupported(Exception):
    """Something in the document that cannot become part of a tool; the message says what."""


class Schemas:
    """Reads schemas and follows references of one document.

    References lead within the document only, and are kept as such (``#/$defs/NAME``), so that schemas
    that contain themselves stay finite. OpenAPI 3.0's own spellings (``nullable``, a boolean
    ``exclusiveMinimum``) become JSON Schema's.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._old = str(document.get("openapi", "")).startswith("3.0")

    def resolved(self, node: Any) -> Mapping[str, Any]:
        """A parameter, body, response or schema, with a reference it consists of followed."""
        for _ in range(_HOPS):
            if not isinstance(node, Mapping):
                raise Unsupported(f"a mapping is needed, not {type(node).__name__}")
            reference = node.get("$ref")
            if reference is None:
                return node
            target = self._target(reference)
            if not self._old and isinstance(target, Mapping) and len(node) > 1:
                target = {**target, **{key: node[key] for key in node if key != "$ref"}}
            node = target
        raise Unsupported(f"$ref {reference!r} leads in circles")

    def converted(self, schema: Any, definitions: "Definitions") -> Any:
        """A schema for what is sent; what it refers to goes into `definitions`."""
        return self._convert(schema, definitions, _DEPTH)

    def _convert(self, schema: Any, definitions: "Definitions", depth: int) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise Unsupported(f"a schema is a mapping, not {type(schema).__name__}")
        if depth <= 0:
            raise Unsupported(f"a schema nests deeper than {_DEPTH}")
        made: dict[str, Any] = {}
        if "$ref" in schema:
            made["$ref"] = f"#/$defs/{self._defined(schema['$ref'], definitions, depth)}"
            if self._old:  # there, what stands beside a reference is ignored
                return made
        hidden = self._read_only(schema)
        for key, value in schema.items():
            if key in _LEFT_OUT or key == "$ref" or key.startswith("x-"):
                continue
            if key in _NAMED and isinstance(value, Mapping):
                made[key] = {
                    name: self._convert(inner, definitions, depth - 1)
                    for name, inner in value.items()
                    if name not in hidden
                }
            elif key in _SCHEMAS and isinstance(value, list):
                made[key] = [self._convert(inner, definitions, depth - 1) for inner in value]
            elif key in _SCHEMA and isinstance(value, Mapping):
                made[key] = self._convert(value, definitions, depth - 1)
            elif key == "required" and isinstance(value, list):
                made[key] = [name for name in value if name not in hidden]
            else:
                made[key] = value
        return self._modern(made, schema) if self._old else made

    def _read_only(self, schema: Mapping[str, Any]) -> set[str]:
        """Properties that only answers have."""
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return set()
        return {
            name
            for name, inner in properties.items()
            if isinstance(inner, Mapping) and inner.get("readOnly") is True
        }

    def _modern(self, made: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """What OpenAPI 3.0 spells in its own way."""
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
                made[exclusive] = made.pop(bound)
        if schema.get("nullable") is not True:
            return made
        kind = made.get("type")
        if isinstance(kind, str) and not any(key in made for key in _SCHEMAS):
            return {**made, "type": [kind, "null"]}
        return {"anyOf": [made, {"type": "null"}]}

    def _defined(self, reference: Any, definitions: "Definitions", depth: int) -> str:
        name = definitions.names.get(reference)
        if name is None:
            target = self._target(reference)
            name = definitions.reserve(str(reference))
            definitions.schemas[name] = self._convert(target, definitions, depth - 1)
        return name

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise Unsupported(
                f"$ref {reference!r}: only references within the document are followed"
            )
        node: Any = self._document
        for part in reference[2:].split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdigit() and len(key) < 7 and int(key) < len(node):
                node = node[int(key)]
            else:
                raise Unsupported(f"$ref {reference!r} leads nowhere")
        return node


class Definitions:
    """The ``$defs`` of one tool: schemas by name, names by reference."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self.names: dict[str, str] = {}

    def reserve(self, reference: str) -> str:
        """A name for a reference, before its schema is read: it may contain itself."""
        if len(self.names) >= _DEFINITIONS:
            raise Unsupported(f"more than {_DEFINITIONS} schemas refer to each other")
        base = re.sub(r"[^\w.-]", "_", reference.rpartition("/")[2])[:80] or "schema"
        name, number = base, 2
        while name in self.schemas:
            name, number = f"{base}_{number}", number + 1
        self.names[reference] = name
        self.schemas[name] = {}
        return name
