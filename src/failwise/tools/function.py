"""Function tools: a typed Python function, sync or async, as a `ToolSpec`."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import CoroutineType
from typing import Any, get_origin

from failwise.tools.declarations import (
    callable_name,
    check_schema,
    checked,
    exception_types,
    fallback_names,
)
from failwise.tools.signature import Binding, is_async
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import UNSET, Unset
from failwise.vocabulary.spec import Arguments, CallContext, Flag, ToolSpec

MAXIMUM_ITEMS = 10_000
"""How many items of a returned iterator are taken."""
MAXIMUM_LENGTH = 5_000_000
"""How many characters or bytes the text items of a returned iterator may have together."""


# What most tools return: known at a glance to be no iterator and nothing to await.
_PLAIN = frozenset({dict, list, str, int, float, bool, tuple, bytes, type(None)})


def function_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    read_only: Flag = None,
    idempotent: Flag = None,
    destructive: bool | None = None,
    timeout: float | None = None,
    fallback: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] = (),
    fallback_value: Any | Unset = UNSET,
    verify: Callable[..., Any] | None = None,
    verify_final_after: float | None = None,
    idempotency_key: str | None = None,
    credential: str | None = None,
    profile: str | None = None,
    upstream: str | None = None,
    success: Callable[[Any], bool] | None = None,
    errors: Mapping[type[BaseException], Any] | None = None,
    passthrough: type[BaseException] | Sequence[type[BaseException]] = (),
    policy: Mapping[str, Any] | None = None,
    repair: str | None = None,
    fixer: Callable[..., Any] | None = None,
    thread: bool = True,
) -> ToolSpec:
    """Make a tool of a function; the options are those of `ToolSpec`.

    The schema is read from the signature: types, defaults, descriptions from ``Annotated[T, "..."]``
    or the docstring. A parameter annotated with `CallContext` is hidden from it and filled in; so
    is the parameter that `idempotency_key` names. With a `schema` of your own, arguments are
    handed over as JSON gave them. A returned iterator or generator is drained into a list.

    Raises `UsageError` for a signature that no model could call, and for declarations that cannot
    hold, such as an idempotency key that the function has no way to send.
    """
    if not callable(function):
        raise UsageError(f"tool({function!r}): give a function")
    tool_name = callable_name(function) if name is None else name
    if tool_name == "<lambda>":
        raise UsageError("a lambda has no name: give name=...")
    if schema is not None:
        check_schema(tool_name, schema)
    binding = Binding(function, schema, idempotency_key)
    if idempotency_key is not None and not binding.takes_key:
        raise UsageError(
            f"{tool_name}: idempotency_key={idempotency_key!r}, but the function never sees the "
            "key: add a parameter `context: CallContext` and send context.idempotency_key, or "
            "name the parameter that takes it"
        )
    asynchronous = is_async(function)
    return checked(
        ToolSpec(
            tool_name,
            binding.description if description is None else description,
            binding.schema,
            call=None if asynchronous else _sync_call(function, binding, tool_name),
            call_async=_async_call(function, binding) if asynchronous else None,
            read_only=read_only,
            idempotent=idempotent,
            destructive=destructive,
            timeout=timeout,
            fallback=fallback_names(tool_name, fallback),
            fallback_value=fallback_value,
            verify=verify,
            verify_final_after=verify_final_after,
            idempotency_key=idempotency_key,
            credential=credential,
            profile=profile,
            upstream=upstream,
            success=success,
            errors=errors,
            passthrough=exception_types(tool_name, passthrough),
            policy=policy,
            repair=repair,
            fixer=fixer,
            thread=thread,
        )
    )


def _sync_call(
    function: Callable[..., Any], binding: Binding, name: str
) -> Callable[[Arguments, CallContext], Any]:
    bound = None if binding.direct else binding.call

    def call(arguments: Arguments, context: CallContext) -> Any:
        value = function(**arguments) if bound is None else bound(arguments, context)
        if type(value) in _PLAIN:
            return value
        if isinstance(value, Iterator):
            return drain(value)
        if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
            if inspect.iscoroutine(value):
                value.close()
            raise UsageError(
                f"{name}: the function gave back something to await: declare it `async def`"
            )
        return value

    return call


def _promises_plain(function: Callable[..., Any]) -> bool:
    """Its return annotation promises plain data, so that there is nothing to drain."""
    promised = getattr(function, "__annotations__", {}).get("return")
    return (get_origin(promised) or promised) in _PLAIN


def _async_call(
    function: Callable[..., Any], binding: Binding
) -> Callable[[Arguments, CallContext], Any]:
    bound = None if binding.direct else binding.call
    if bound is None and inspect.iscoroutinefunction(function) and _promises_plain(function):

        def call_directly(arguments: Arguments, context: CallContext) -> Any:
            return function(**arguments)

        return call_directly

    async def call_async(arguments: Arguments, context: CallContext) -> Any:
        value = function(**arguments) if bound is None else bound(arguments, context)
        if type(value) is CoroutineType or inspect.isawaitable(value):
            value = await value
        if type(value) in _PLAIN:
            return value
        if isinstance(value, AsyncIterator):
            return await _drain_async(value)
        return drain(value) if isinstance(value, Iterator) else value

    return call_async


class _Drained:
    """Items taken so far, within the limits."""

    __slots__ = ("items", "length")

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.length = 0

    def add(self, item: Any) -> None:
        if isinstance(item, (str, bytes, bytearray)):
            self.length += len(item)
        if len(self.items) >= MAXIMUM_ITEMS or self.length > MAXIMUM_LENGTH:
            raise ToolError(
                f"the tool returned more than {MAXIMUM_ITEMS} items or {MAXIMUM_LENGTH} characters",
                code="parsing.too_large",
                effect=Effect.UNKNOWN,
                transient=False,
                details={"items": len(self.items), "limit": MAXIMUM_ITEMS},
            )
        self.items.append(item)


def drain(iterator: Iterator[Any]) -> Any:
    """All items of an iterator as a list; an open file (it has ``read``) is left as it is.

    Raises `ToolError` (``parsing.too_large``) past the limits, after closing the iterator.
    """
    if hasattr(iterator, "read"):
        return iterator
    drained = _Drained()
    try:
        for item in iterator:
            drained.add(item)
    finally:
        if inspect.isgenerator(iterator):
            iterator.close()
    return drained.items


async def _drain_async(iterator: AsyncIterator[Any]) -> Any:
    if hasattr(iterator, "read"):
        return iterator
    drained = _Drained()
    try:
        async for item in iterator:
            drained.add(item)
    finally:
        if inspect.isasyncgen(iterator):
            await iterator.aclose()
    return drained.items
