"""A function's signature as a tool: its schema, and how JSON arguments become a Python call."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from failwise.tools.annotations import AnnotationReader
from failwise.tools.declarations import callable_name
from failwise.tools.docstrings import split_docstring
from failwise.tools.forms import ANYTHING, Form, Schema, described, object_schema
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.spec import Arguments, CallContext

REASON_LENGTH = 300
"""How much of a conversion's reason is kept, in characters."""


class Binding:
    """How arguments reach one function.

    `schema` describes what the model gives; `description` is the docstring's text. `takes_key`
    says whether the function can see the idempotency key at all.
    """

    __slots__ = (
        "_context_names",
        "_converters",
        "_extra",
        "_function",
        "_key_name",
        "_parameters",
        "_positional",
        "description",
        "schema",
        "takes_key",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        schema: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        where = f"{callable_name(function)}()"
        self._function = function
        base = underlying(function)
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError, NameError) as error:
            raise UsageError(
                f"{where}: its signature cannot be read ({error}): wrap it in a Python function"
            ) from error
        self.description, texts = split_docstring(_docstring(function, base))
        self._context_names: list[str] = []
        self._converters: dict[str, Callable[[Any], Any]] = {}
        self._extra: Callable[[Any], Any] | None = None
        self._key_name: str | None = None
        self._positional: list[inspect.Parameter] = []
        self._parameters = frozenset(parameters)
        reader = AnnotationReader(where)
        properties: dict[str, Schema] = {}
        required: list[str] = []
        others: bool | Schema = False
        for index, (name, parameter) in enumerate(parameters.items()):
            if parameter.kind is parameter.VAR_POSITIONAL:
                raise UsageError(
                    f"{where}: *{name} has no name that a model could use: "
                    f"take a list, {name}: list[...]"
                )
            if index == 0 and name in ("self", "cls") and parameter.annotation is parameter.empty:
                raise UsageError(
                    f"{where}: this is a method without its object: register the bound method, "
                    f"such as tool(thing.{where[:-2]})"
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append(parameter)
            if schema is not None:
                if _is_context(_lenient_hint(parameter, base)):
                    self._context_names.append(name)
                elif name == idempotency_key:
                    self._key_name = name
                elif parameter.kind is parameter.VAR_KEYWORD:
                    others = True
                continue
            hint = _hint(parameter, base, where)
            if _is_context(hint):
                self._context_names.append(name)
                continue
            if name == idempotency_key:
                self._key_name = name
                continue
            form = reader.read(hint, name) if hint is not parameter.empty else ANYTHING
            if parameter.kind is parameter.VAR_KEYWORD:
                others = form.schema or True
                self._extra = None if form.plain else form.convert
                continue
            if parameter.default is None:
                form = _or_null(form)
            if not form.plain:
                self._converters[name] = form.convert
            default = None if parameter.default is parameter.empty else (parameter.default,)
            properties[name] = described(form.schema, texts.get(name), default)
            if default is None:
                required.append(name)
        self.takes_key = bool(self._context_names or self._key_name or others)
        if schema is not None:
            self.schema: Mapping[str, Any] = schema
            return
        made = object_schema(properties, required)
        made["additionalProperties"] = others
        if reader.definitions:
            made["$defs"] = reader.definitions
        self.schema = made

    @property
    def direct(self) -> bool:
        """Whether arguments go to the function as they are: nothing to convert or fill in."""
        return not (
            self._converters
            or self._extra
            or self._context_names
            or self._key_name
            or self._positional
        )

    def call(self, arguments: Arguments, context: CallContext) -> Any:
        """Call the function with validated arguments.

        Raises `ToolError` with ``model_output.schema_violation`` for a value that has the right
        JSON type but names nothing (the 31st of June).
        """
        if self._converters or self._extra:
            arguments = self._converted(arguments)
        if not (self._context_names or self._key_name or self._positional):
            return self._function(**arguments)
        arguments = dict(arguments)
        for name in self._context_names:
            arguments[name] = context
        if self._key_name is not None:
            arguments[self._key_name] = context.idempotency_key
        positional = [
            arguments.pop(parameter.name, parameter.default)
            for parameter in self._positional
            if parameter.name in arguments or parameter.default is not parameter.empty
        ]
        return self._function(*positional, **arguments)

    def _converted(self, arguments: Arguments) -> Arguments:
        """The arguments as Python values: the same dictionary where nothing had to change."""
        converted = arguments
        for name, value in arguments.items():
            convert = self._converters.get(name)
            if convert is None:
                if self._extra is None or name in self._parameters:
                    continue
                convert = self._extra
            try:
                made = convert(value)
            except (ValueError, TypeError) as error:
                raise refused_argument(name, str(error)) from error
            if made is not value:
                if converted is arguments:
                    converted = dict(arguments)
                converted[name] = made
        return converted


def positional_names(function: Any) -> tuple[str, ...]:
    """The parameters that positional arguments of a call from code fill, in order.

    Empty for what is no function, such as an `HttpTool`.
    """
    if not callable(function):
        return ()
    base = underlying(function)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in positional and not _is_context(_lenient_hint(parameter, base))
    )


def refused_argument(name: str, reason: str) -> ToolError:
    """The failure for an argument that cannot be used: the model's to correct, nothing was sent."""
    reason = reason if len(reason) <= REASON_LENGTH else reason[: REASON_LENGTH - 1] + "…"
    return ToolError(
        f"{name}: {reason}",
        code="model_output.schema_violation",
        effect=Effect.NOT_SENT,
        transient=False,
        details={"path": f"/{name}", "parameter": name},
    )


def underlying(function: Callable[..., Any]) -> Any:
    """The plain function below partials, wrappers, methods and callable objects."""
    found: Any = function
    for _ in range(64):
        if hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        elif inspect.ismethod(found):
            found = found.__func__
        elif hasattr(found, "func") and callable(found.func):
            found = found.func
        elif not inspect.isroutine(found) and not isinstance(found, type):
            found = type(found).__call__
        else:
            return found
    return found


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await (or an async generator)."""
    base = underlying(function)
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
        for one in (function, base)
    )


def _docstring(function: Any, base: Any) -> str | None:
    """Its own, where it has one of its own: an instance shows its class's, a partial partial's."""
    if inspect.isroutine(function) and function.__doc__:
        return str(function.__doc__)
    text = base.__doc__
    if not text and not inspect.isroutine(function) and not hasattr(function, "func"):
        text = type(function).__doc__
    return str(text) if text else None


def _hint(parameter: inspect.Parameter, base: Any, where: str) -> Any:
    """The parameter's annotation with every name in it resolved."""
    if parameter.annotation is parameter.empty:
        return parameter.empty
    holder = types.SimpleNamespace(__annotations__={"hint": parameter.annotation})
    try:
        return typing.get_type_hints(holder, getattr(base, "__globals__", {}), include_extras=True)[
            "hint"
        ]
    except Exception as error:
        raise UsageError(
            f"{where}: the type of {parameter.name!r}, {parameter.annotation!r}, cannot be "
            f"resolved ({error}): define it at module level and import it at run time (not under "
            "TYPE_CHECKING), or give the tool a schema="
        ) from error


def _lenient_hint(parameter: inspect.Parameter, base: Any) -> Any:
    try:
        return _hint(parameter, base, "")
    except UsageError:
        text = str(parameter.annotation)
        return CallContext if text.rpartition(".")[2].strip("'\" ") == "CallContext" else None


def _is_context(hint: Any) -> bool:
    if hint is CallContext:
        return True
    if typing.get_origin(hint) in (typing.Annotated, typing.Union, types.UnionType):
        return any(part is CallContext for part in typing.get_args(hint))
    return False


def _or_null(form: Form) -> Form:
    """``limit: int = None`` takes null too: the function itself says so."""
    choices = form.schema["anyOf"] if set(form.schema) == {"anyOf"} else [form.schema]
    null = {"type": "null"}
    if null in choices or not form.schema:
        return form
    return Form(
        {"anyOf": [*choices, null]},
        lambda value: None if value is None else form.convert(value),
        form.plain,
    )
