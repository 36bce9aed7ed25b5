"""Checks of what a tool declares. Each error says what to do instead."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.spec import ToolSpec

REPAIR_MODES = ("auto", "confirm", "off")

_NAME = re.compile(r"[\w.\-]{1,128}")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_SCHEMA_DEPTH = 64


def checked(spec: ToolSpec) -> ToolSpec:
    """The same spec, if its declarations can hold together; else `UsageError`."""
    name = spec.name
    if not _NAME.fullmatch(str(name)):
        raise UsageError(
            f"tool name {name!r}: use 1 to 128 letters, digits, '_', '-' or '.' (give name=...)"
        )
    if spec.schema is not None:
        check_schema(name, spec.schema)
    if spec.repair is not None and spec.repair not in REPAIR_MODES:
        raise UsageError(f"{name}: repair={spec.repair!r}: say one of {', '.join(REPAIR_MODES)}")
    check_seconds(name, "timeout", spec.timeout)
    check_seconds(name, "verify_final_after", spec.verify_final_after)
    if spec.verify_final_after is not None and spec.verify is None:
        raise UsageError(
            f'{name}: verify_final_after says when a "no" from verify is final: give verify= too'
        )
    if name in spec.fallback:
        raise UsageError(f"{name}: a tool cannot be its own fallback: name another tool")
    if len(set(spec.fallback)) != len(spec.fallback):
        raise UsageError(f"{name}: fallback names a tool twice: {', '.join(spec.fallback)}")
    if spec.read_only is True and spec.destructive is True:
        raise UsageError(f"{name}: read_only and destructive contradict each other: drop one")
    for option in ("read_only", "idempotent"):
        flag = getattr(spec, option)
        if flag is not None and not isinstance(flag, bool) and not callable(flag):
            raise UsageError(
                f"{name}: {option}={flag!r}: say True, False, or a function of the arguments"
            )
    for option in ("verify", "success", "fixer"):
        given = getattr(spec, option)
        if given is not None and not callable(given):
            raise UsageError(f"{name}: {option}={given!r}: give a function")
    for option in ("idempotency_key", "credential", "profile", "upstream"):
        given = getattr(spec, option)
        if given is not None and (not isinstance(given, str) or not given.strip()):
            raise UsageError(f"{name}: {option}={given!r}: give a name (a string)")
    if spec.policy is not None and not isinstance(spec.policy, Mapping):
        raise UsageError(f"{name}: policy={spec.policy!r}: give a mapping of rows, as in a file")
    _check_exceptions(name, "errors", spec.errors or ())
    _check_exceptions(name, "passthrough", spec.passthrough)
    return spec


def check_seconds(name: str, option: str, value: Any) -> None:
    """A time span: None, or a finite number of seconds above 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise UsageError(f"{name}: {option}={value!r}: give seconds above 0, or None for no limit")


def fallback_names(name: str, fallback: Any) -> tuple[str, ...]:
    """`fallback=` as names: a name, or several names or decorated functions."""
    if isinstance(fallback, str) or callable(fallback):
        fallback = (fallback,)
    if not isinstance(fallback, Iterable) or isinstance(fallback, (Mapping, bytes)):
        raise UsageError(
            f"{name}: fallback={fallback!r}: name tools, such as fallback=['search_cache'] "
            "(a plain value goes into fallback_value=)"
        )
    names = []
    for item in fallback:
        given = item if isinstance(item, str) else getattr(item, "__name__", None)
        if not isinstance(given, str) or not given:
            raise UsageError(
                f"{name}: fallback names {item!r}: give a tool's name "
                "(a plain value goes into fallback_value=)"
            )
        names.append(given)
    return tuple(names)


def exception_types(name: str, passthrough: Any) -> tuple[type[BaseException], ...]:
    """`passthrough=` as a tuple: one exception type or several."""
    if isinstance(passthrough, type):
        passthrough = (passthrough,)
    if not isinstance(passthrough, Iterable):
        raise UsageError(f"{name}: passthrough={passthrough!r}: give exception types")
    return tuple(passthrough)


def _check_exceptions(name: str, option: str, types: Any) -> None:
    if option == "errors" and types and not isinstance(types, Mapping):
        raise UsageError(f"{name}: errors={types!r}: give a mapping of exception type to ToolError")
    for kind in types:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise UsageError(f"{name}: {option} names {kind!r}: give exception types")


def check_schema(name: str, schema: Any) -> None:
    """A light look at a given JSON Schema: what would make every call fail is found here.

    The whole of it is read by the validator at the tool's first call.
    """
    if not isinstance(schema, Mapping):
        raise UsageError(f"{name}: schema={schema!r}: give a JSON Schema as a mapping")
    if schema.get("type", "object") != "object":
        raise UsageError(
            f"{name}: the schema's type is {schema['type']!r}, but arguments are an object: "
            'use {"type": "object", "properties": {...}}'
        )
    _walk_schema(name, "schema", schema, _SCHEMA_DEPTH)


def _walk_schema(name: str, place: str, schema: Any, depth: int) -> None:
    def wrong(where: str, what: str) -> UsageError:
        return UsageError(f"{name}: {place}{where}: {what}")

    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise wrong("", f"{schema!r} is no schema: give a mapping, true or false")
    if depth <= 0:
        raise wrong("", f"nests deeper than {_SCHEMA_DEPTH}: simplify it")
    kind = schema.get("type", ())
    for one in (
        [kind] if isinstance(kind, str) else kind if isinstance(kind, (list, tuple)) else [0]
    ):
        if one not in _TYPES:
            raise wrong(".type", f"{kind!r} is no JSON type: say {', '.join(sorted(_TYPES))}")
    required = schema.get("required", [])
    if not isinstance(required, (list, tuple)) or not all(isinstance(r, str) for r in required):
        raise wrong(".required", f"{required!r}: give a list of property names")
    if not isinstance(schema.get("enum", []), (list, tuple)):
        raise wrong(".enum", f"{schema['enum']!r}: give a list of values")
    for keyword in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
        group = schema.get(keyword, {})
        if not isinstance(group, Mapping):
            raise wrong(f".{keyword}", f"{group!r}: give a mapping of name to schema")
        for key, inner in group.items():
            _walk_schema(name, f"{place}.{keyword}.{key}", inner, depth - 1)
    for keyword in ("additionalProperties", "propertyNames", "not", "contains", "items"):
        inner = schema.get(keyword, True)
        if keyword != "items" or not isinstance(inner, (list, tuple)):
            _walk_schema(name, f"{place}.{keyword}", inner, depth - 1)
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        group = schema.get(keyword, [])
        if not isinstance(group, (list, tuple)):
            raise wrong(f".{keyword}", f"{group!r}: give a list of schemas")
        for index, inner in enumerate(group):
            _walk_schema(name, f"{place}.{keyword}[{index}]", inner, depth - 1)


def callable_name(function: Callable[..., Any]) -> str:
    """The name a function, a partial or a callable object goes by."""
    while not hasattr(function, "__name__") and hasattr(function, "func"):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name)
