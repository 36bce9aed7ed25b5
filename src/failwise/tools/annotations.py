"""Type annotations ↔ JSON: one reader gives a type's JSON Schema and its converter together.

A converter takes a value that came as JSON to the Python value the annotation names; it is strict,
so that a union picks the member that fits. Nothing here imports pydantic: a class with
``model_json_schema`` and ``model_validate`` is taken at its word.
"""

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from failwise.tools.forms import (
    ANYTHING,
    SIMPLE,
    Form,
    Schema,
    a_list,
    an_object,
    annotated,
    described,
    enumeration,
    literal,
    object_schema,
)
from failwise.vocabulary.errors import UsageError

MAXIMUM_DEPTH = 32
"""How deep annotations may nest before they are refused."""


_LISTS = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Iterable,
    collections.abc.Collection,
)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class AnnotationReader:
    """Reads the annotations of one signature. `definitions` collects what a recursive type needs.

    `where` names the function in errors.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.definitions: dict[str, Schema] = {}
        self._open: dict[type, str] = {}
        self._recursive: set[type] = set()
        self._finished: dict[type, Form] = {}
        self._depth = 0

    def read(self, annotation: Any, parameter: str) -> Form:
        """The form of an annotation. Raises `UsageError` for a type that JSON cannot carry."""
        if self._depth >= MAXIMUM_DEPTH:
            raise UsageError(
                f"{self.where}: the type of {parameter!r} nests deeper than {MAXIMUM_DEPTH}: "
                "simplify it, or give the tool a schema="
            )
        self._depth += 1
        try:
            return self._read(annotation, parameter)
        finally:
            self._depth -= 1

    def _read(self, annotation: Any, parameter: str) -> Form:
        try:
            simple = SIMPLE.get(annotation)
        except TypeError:
            simple = None
        if simple is not None:
            return simple
        if isinstance(annotation, (str, typing.ForwardRef)):
            return self._refuse(annotation, parameter)
        if hasattr(annotation, "__supertype__"):
            return self.read(annotation.__supertype__, parameter)
        if isinstance(annotation, typing.TypeVar):
            return self._type_variable(annotation, parameter)
        origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
        if hasattr(annotation, "__value__"):
            return self.read(annotation.__value__, parameter)
        if origin is typing.Annotated:
            return annotated(self.read(parts[0], parameter), parts[1:])
        if origin is typing.Literal:
            return literal(parts)
        if origin in (typing.Union, types.UnionType):
            return self._union(parts, parameter)
        if getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly", "Final"):
            return self.read(parts[0], parameter)
        form = self._container(origin or annotation, parts, parameter)
        if form is not None:
            return form
        if isinstance(annotation, type):
            return self._class(annotation, parameter)
        return self._refuse(annotation, parameter)

    def _type_variable(self, variable: typing.TypeVar, parameter: str) -> Form:
        if variable.__constraints__:
            return self._union(variable.__constraints__, parameter)
        return self.read(variable.__bound__, parameter) if variable.__bound__ else ANYTHING

    def _container(self, origin: Any, parts: tuple[Any, ...], parameter: str) -> Form | None:
        if origin in _MAPPINGS:
            return self._mapping(parts, parameter)
        if origin is tuple and parts and parts[-1] is not Ellipsis:
            return self._fixed_tuple(parts, parameter)
        if origin is tuple:
            make: Callable[[list[Any]], Any] = tuple
        elif origin in _SETS:
            make = frozenset if origin is frozenset else set
        elif origin in _LISTS:
            make = list
        else:
            return None
        item = self.read(parts[0], parameter) if parts else ANYTHING
        schema: Schema = {"type": "array"}
        if item.schema:
            schema["items"] = item.schema
        if origin in _SETS:
            schema["uniqueItems"] = True
        convert_item = item.convert
        return Form(
            schema,
            lambda value: make([convert_item(one) for one in a_list(value)]),
            plain=item.plain and make is list,
        )

    def _fixed_tuple(self, parts: tuple[Any, ...], parameter: str) -> Form:
        parts = () if parts == ((),) else parts
        forms = [self.read(part, parameter) for part in parts]
        schema: Schema = {
            "type": "array",
            "prefixItems": [form.schema for form in forms],
            "minItems": len(forms),
            "maxItems": len(forms),
        }

        def convert(value: Any) -> tuple[Any, ...]:
            if len(a_list(value)) != len(forms):
                raise ValueError(f"{len(forms)} items are needed")
            return tuple(form.convert(one) for form, one in zip(forms, value, strict=True))

        return Form(schema, convert)

    def _mapping(self, parts: tuple[Any, ...], parameter: str) -> Form:
        if not parts:
            return SIMPLE[dict]
        key, item = (self.read(part, parameter) for part in parts)
        if key.schema and key.schema.get("type") != "string":
            raise UsageError(
                f"{self.where}: {parameter!r} maps from {_name(parts[0])}, but keys in JSON are "
                "strings: annotate it dict[str, ...]"
            )
        schema: Schema = {"type": "object"}
        if item.schema:
            schema["additionalProperties"] = item.schema
        if key.schema and key is not SIMPLE[str]:
            schema["propertyNames"] = key.schema
        convert_key, convert_item = key.convert, item.convert
        return Form(
            schema,
            lambda value: {
                convert_key(name): convert_item(one) for name, one in an_object(value).items()
            },
            plain=key.plain and item.plain,
        )

    def _union(self, parts: tuple[Any, ...], parameter: str) -> Form:
        forms = [self.read(part, parameter) for part in parts]
        choices: list[Schema] = []
        for form in forms:
            for choice in form.schema["anyOf"] if set(form.schema) == {"anyOf"} else [form.schema]:
                if choice not in choices:
                    choices.append(choice)
        if {} in choices:
            return ANYTHING

        def convert(value: Any) -> Any:
            reason: Exception | None = None
            for form in forms:
                try:
                    return form.convert(value)
                except (ValueError, TypeError) as error:
                    reason = reason or error
            raise reason or ValueError("no form fits")

        schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
        return Form(schema, convert, plain=all(form.plain for form in forms))

    def _class(self, kind: type, parameter: str) -> Form:
        if issubclass(kind, enum.Enum):
            return enumeration(kind)
        if kind in self._finished:
            return self._finished[kind]
        if kind in self._open:
            return self._reference(kind)
        if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate"):
            return self._model(kind)
        typed_dict = issubclass(kind, dict) and hasattr(kind, "__required_keys__")
        if not typed_dict and not dataclasses.is_dataclass(kind):
            return self._refuse(kind, parameter)
        self._open[kind] = self._definition_name(kind)
        try:
            fields = self._dictionary(kind) if typed_dict else self._dataclass(kind)
        finally:
            name = self._open.pop(kind)
        if kind in self._recursive:
            self.definitions[name] = fields.schema
            fields = Form({"$ref": f"#/$defs/{name}"}, fields.convert)
        self._finished[kind] = fields
        return fields

    def _reference(self, kind: type) -> Form:
        self._recursive.add(kind)
        return Form(
            {"$ref": f"#/$defs/{self._open[kind]}"},
            lambda value: self._finished[kind].convert(value),  # noqa: PLW0108 - not finished yet
        )

    def _definition_name(self, kind: type) -> str:
        taken = {*self.definitions, *self._open.values()}
        name, number = kind.__name__, 2
        while name in taken:
            name, number = f"{kind.__name__}{number}", number + 1
        return name

    def _hints(self, kind: type) -> dict[str, Any]:
        try:
            return typing.get_type_hints(kind, include_extras=True)
        except Exception as error:
            raise UsageError(
                f"{self.where}: a type in {kind.__name__} cannot be resolved ({error}): define it "
                "at module level and import it there, or give the tool a schema="
            ) from error

    def _dictionary(self, kind: type) -> Form:
        forms = {name: self.read(hint, name) for name, hint in self._hints(kind).items()}
        required = [name for name in forms if name in kind.__required_keys__]  # type: ignore[attr-defined]
        return Form(
            object_schema({name: form.schema for name, form in forms.items()}, required),
            lambda value: _converted_fields(value, forms, required),
            plain=all(form.plain for form in forms.values()),
        )

    def _dataclass(self, kind: Any) -> Form:
        from failwise.tools.docstrings import parameter_descriptions

        hints, texts = self._hints(kind), parameter_descriptions(kind.__doc__)
        forms: dict[str, Form] = {}
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for field in dataclasses.fields(kind):
            if not field.init:
                continue
            form = forms[field.name] = self.read(hints[field.name], field.name)
            default = None if field.default is dataclasses.MISSING else (field.default,)
            text = field.metadata.get("description") or texts.get(field.name)
            properties[field.name] = described(form.schema, text, default)
            if default is None and field.default_factory is dataclasses.MISSING:
                required.append(field.name)
        return Form(
            object_schema(properties, required),
            lambda value: kind(**_converted_fields(value, forms, required)),
        )

    def _model(self, kind: Any) -> Form:
        """A pydantic model, or anything that speaks like one."""
        name = self._definition_name(kind)
        schema = dict(kind.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}"))
        for inner, definition in schema.pop("$defs", {}).items():
            self.definitions[f"{name}.{inner}"] = definition
        form = self._finished[kind] = Form(schema, kind.model_validate)
        return form

    def _refuse(self, annotation: Any, parameter: str) -> Form:
        raise UsageError(
            f"{self.where}: {parameter!r} has the type {_name(annotation)}, which has no form in "
            "JSON: use plain types, a dataclass, a TypedDict or a pydantic model, or give the "
            "tool a schema="
        )


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else repr(annotation)


def _converted_fields(
    value: Any, forms: Mapping[str, Form], required: typing.Sequence[str]
) -> dict[str, Any]:
    converted = {}
    for name, one in an_object(value).items():
        if name not in forms:
            raise ValueError(f"unknown field {name!r}")
        converted[name] = forms[name].convert(one)
    for name in required:
        if name not in converted:
            raise ValueError(f"field {name!r} is missing")
    return converted
