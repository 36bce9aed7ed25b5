"""How function tools are called: sync, async, generators, and what they may declare."""

import functools
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from failwise.tools.function import MAXIMUM_ITEMS, MAXIMUM_LENGTH, function_tool
from failwise.tools.signature import positional_names
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.spec import CallContext


async def fetch(name: str) -> str:
    return f"fetched {name}"


def test_a_sync_function_has_call_only() -> None:
    """A sync function runs in the calling thread; nothing pretends it is async."""
    spec = function_tool(lambda query: query, name="echo")
    assert spec.call_async is None
    assert spec.call is not None
    assert spec.call({"query": 1}, CallContext()) == 1


async def test_async_functions_in_every_dress() -> None:
    """Async functions, partials of them, wrapped ones and async __call__ are awaited."""

    @functools.wraps(fetch)
    def wrapped(name: str) -> Any:
        return fetch(name)

    class Fetcher:
        async def __call__(self, name: str) -> str:
            return await fetch(name)

    for function in (fetch, functools.partial(fetch), wrapped, Fetcher()):
        spec = function_tool(function, name="fetch")
        assert spec.call is None
        assert spec.call_async is not None
        assert await spec.call_async({"name": "x"}, CallContext()) == "fetched x"


def test_a_hidden_coroutine_is_told() -> None:
    """A lambda around an async function is refused with what to do, its coroutine closed."""
    spec = function_tool(lambda name: fetch(name), name="hidden")  # noqa: PLW0108
    assert spec.call is not None
    with pytest.raises(UsageError, match="async def"):
        spec.call({"name": "x"}, CallContext())


async def test_iterators_are_drained() -> None:
    """Generators, async generators and other iterators become lists; files stay files."""

    def count(limit: int) -> Iterator[int]:
        yield from range(limit)

    async def count_async(limit: int) -> AsyncIterator[int]:
        for number in range(limit):
            yield number

    sync_spec, async_spec = function_tool(count), function_tool(count_async)
    assert sync_spec.call is not None
    assert async_spec.call_async is not None
    assert sync_spec.call({"limit": 3}, CallContext()) == [0, 1, 2]
    assert await async_spec.call_async({"limit": 3}, CallContext()) == [0, 1, 2]
    opened = io.StringIO("a\nb")
    file_spec = function_tool(lambda: opened, name="open_file")
    assert file_spec.call is not None
    assert file_spec.call({}, CallContext()) is opened


async def test_draining_has_limits() -> None:
    """An endless generator is stopped, closed, and said to be too large."""
    closed = []

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append("sync")

    async def endless_async() -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * (MAXIMUM_LENGTH // 4)
        finally:
            closed.append("async")

    sync_spec, async_spec = function_tool(endless), function_tool(endless_async)
    assert sync_spec.call is not None
    assert async_spec.call_async is not None
    with pytest.raises(ToolError, match=str(MAXIMUM_ITEMS)) as caught:
        sync_spec.call({}, CallContext())
    assert caught.value.code == "parsing.too_large"
    with pytest.raises(ToolError):
        await async_spec.call_async({}, CallContext())
    assert closed == ["sync", "async"]


def do(thing: str) -> None: ...


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "no spaces please"}, "1 to 128 letters"),
        ({"name": ""}, "1 to 128 letters"),
        ({"repair": "maybe"}, "auto, confirm, off"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": float("inf")}, "seconds above 0"),
        ({"timeout": "10"}, "seconds above 0"),
        ({"timeout": True}, "seconds above 0"),
        ({"fallback": ["do"]}, "its own fallback"),
        ({"fallback": [1, 2]}, "fallback_value"),
        ({"fallback": {"a": 1}}, "fallback_value"),
        ({"fallback": ["a", "a"]}, "twice"),
        ({"verify_final_after": 5}, "give verify= too"),
        ({"verify": 5}, "give a function"),
        ({"read_only": "yes"}, "a function of the arguments"),
        ({"read_only": True, "destructive": True}, "contradict"),
        ({"credential": ""}, "give a name"),
        ({"passthrough": [ValueError("x")]}, "exception types"),
        ({"errors": [ValueError]}, "mapping of exception type"),
        ({"errors": {"ValueError": "business.conflict"}}, "exception types"),
        ({"policy": []}, "mapping of rows"),
        ({"schema": []}, "JSON Schema as a mapping"),
        ({"schema": {"type": "array"}}, "arguments are an object"),
        ({"schema": {"properties": {"a": {"type": "text"}}}}, "no JSON type"),
        ({"schema": {"properties": {"a": "string"}}}, "is no schema"),
        ({"schema": {"required": "a"}}, "list of property names"),
    ],
)
def test_declarations_that_cannot_hold(options: dict[str, Any], says: str) -> None:
    """Each is refused when the tool is made, with what to do."""
    with pytest.raises(UsageError, match=says):
        function_tool(do, **options)


def test_declarations_are_kept() -> None:
    """What is declared stands in the spec, names and types in one form."""

    def other() -> None: ...

    spec = function_tool(
        do, fallback=["cache", other], passthrough=KeyError, read_only=lambda arguments: True
    )
    assert spec.fallback == ("cache", "other")
    assert spec.passthrough == (KeyError,)
    assert function_tool(do, fallback="cache").fallback == ("cache",)


def test_positional_arguments_from_code() -> None:
    """A call from code may give arguments by position; the context is never one of them."""

    def order(sku: str, context: CallContext, count: int = 1, *, note: str = "") -> None: ...

    assert positional_names(order) == ("sku", "count")
    assert positional_names(object()) == ()
