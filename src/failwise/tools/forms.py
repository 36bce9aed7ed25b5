"""Forms: one type's JSON Schema and the converter of its JSON values, for the simple types."""

import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from failwise.vocabulary.records import record

Schema: typing.TypeAlias = dict[str, Any]


@record
class Form:
    """One type as JSON. `plain`: a valid value needs no conversion, it may be passed as it is.

    `convert` raises ValueError or TypeError for a value that does not have this form.
    """

    schema: Schema
    convert: Callable[[Any], Any]
    plain: bool = False


def _is_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("a string is needed")


def _integer(value: Any) -> int:
    """JSON Schema counts 5.0 as an integer; a Python function does not."""
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError("an integer is needed")


def _number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise TypeError("a number is needed")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("true or false is needed")


def _null(value: Any) -> None:
    if value is not None:
        raise TypeError("null is needed")


def _anything(value: Any) -> Any:
    return value


def a_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TypeError("a list is needed")


def an_object(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise TypeError("an object is needed")


def _decimal(value: Any) -> decimal.Decimal:
    """From the number's shortest text, so that 0.1 stays 0.1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError("a number is needed")
    try:
        number = decimal.Decimal(str(value))
    except decimal.InvalidOperation:
        raise ValueError(f"{value!r} is not a decimal number") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _from_text(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: parse(_is_string(value))


ANYTHING = Form({}, _anything, plain=True)

SIMPLE: dict[Any, Form] = {
    Any: ANYTHING,
    object: ANYTHING,
    str: Form({"type": "string"}, _is_string, plain=True),
    int: Form({"type": "integer"}, _integer),
    float: Form({"type": "number"}, _number, plain=True),
    bool: Form({"type": "boolean"}, _boolean, plain=True),
    type(None): Form({"type": "null"}, _null, plain=True),
    None: Form({"type": "null"}, _null, plain=True),
    list: Form({"type": "array"}, a_list, plain=True),
    dict: Form({"type": "object"}, an_object, plain=True),
    datetime.datetime: Form(
        {"type": "string", "format": "date-time"}, _from_text(datetime.datetime.fromisoformat)
    ),
    datetime.date: Form(
        {"type": "string", "format": "date"}, _from_text(datetime.date.fromisoformat)
    ),
    datetime.time: Form(
        {"type": "string", "format": "time"}, _from_text(datetime.time.fromisoformat)
    ),
    uuid.UUID: Form({"type": "string", "format": "uuid"}, _from_text(uuid.UUID)),
    decimal.Decimal: Form({"type": ["number", "string"]}, _decimal),
    pathlib.Path: Form({"type": "string"}, _from_text(pathlib.Path)),
}

_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}

# Names of constraints as `annotated_types` and pydantic's Field spell them, and JSON Schema's.
_CONSTRAINTS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}
_SIZES = {
    "array": {"minLength": "minItems", "maxLength": "maxItems"},
    "object": {"minLength": "minProperties", "maxLength": "maxProperties"},
}


def literal(values: tuple[Any, ...]) -> Form:
    found = [(json_value(value), value) for value in values]
    return _choice([(given[0] if given else str(value), value) for given, value in found])


def enumeration(kind: type[enum.Enum]) -> Form:
    """By value; by name where a value is nothing JSON has."""
    members = list(kind)
    values = [json_value(member.value) for member in members]
    if all(values):
        return _choice(
            [(value[0], one) for value, one in zip(values, members, strict=True) if value]
        )
    return _choice([(member.name, member) for member in members])


def _choice(pairs: list[tuple[Any, Any]]) -> Form:
    schema: Schema = {"enum": [given for given, _ in pairs]}
    kinds = {type(given) for given, _ in pairs}
    if len(kinds) == 1 and (kind := _JSON_TYPES.get(kinds.pop())):
        schema = {"type": kind, **schema}

    def convert(value: Any) -> Any:
        for given, member in pairs:
            if given == value and isinstance(given, bool) == isinstance(value, bool):
                return member
        raise ValueError("one of " + ", ".join(repr(given) for given, _ in pairs) + " is needed")

    plain = all(given is member for given, member in pairs)
    return Form(schema, convert, plain=plain)


def annotated(form: Form, metadata: tuple[Any, ...]) -> Form:
    """Strings describe; constraints of `annotated_types` and pydantic's Field are read by name."""
    added: Schema = {}
    pending = list(reversed(metadata))
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            added["description"] = item
            continue
        if isinstance(text := getattr(item, "description", None), str):
            added["description"] = text
        for name, keyword in _CONSTRAINTS.items():
            limit = getattr(item, name, None)
            if isinstance(limit, (int, float, str)) and not isinstance(limit, bool):
                sizes = _SIZES.get(str(form.schema.get("type")), {})
                added[sizes.get(keyword, keyword)] = limit
        if isinstance(nested := getattr(item, "metadata", None), (list, tuple)):
            pending.extend(reversed(nested))
    return Form({**form.schema, **added}, form.convert, form.plain) if added else form


def object_schema(properties: Mapping[str, Schema], required: typing.Sequence[str]) -> Schema:
    """An object that has these properties and no others."""
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return schema


def described(schema: Schema, text: str | None, default: tuple[Any] | None) -> Schema:
    """A schema with the description (where it has none) and the default (where JSON has it)."""
    added: Schema = {}
    if text and "description" not in schema:
        added["description"] = text
    if default is not None and (value := json_value(default[0])):
        added["default"] = value[0]
    return {**schema, **added} if added else schema


def json_value(value: Any, depth: int = 8) -> tuple[Any] | None:
    """A Python value as JSON data, in a tuple of one; None where JSON has no form for it."""
    if isinstance(value, enum.Enum):
        return json_value(value.value, depth)
    if value is None or isinstance(value, (bool, int, str)):
        return (value,)
    if isinstance(value, float):
        return (value,) if math.isfinite(value) else None
    if isinstance(value, (datetime.date, datetime.time)):
        return (value.isoformat(),)
    if isinstance(value, (uuid.UUID, decimal.Decimal, pathlib.Path)):
        return (str(value),)
    if depth <= 0:
        return None
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [json_value(item, depth - 1) for item in value]
        return ([item[0] for item in items if item],) if all(items) else None
    if isinstance(value, Mapping):
        pairs = {name: json_value(item, depth - 1) for name, item in value.items()}
        if all(pairs.values()) and all(isinstance(name, str) for name in pairs):
            return ({name: item[0] for name, item in pairs.items() if item},)
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        return json_value({name: getattr(value, name) for name in names}, depth - 1)
    return None
