"""Reading a provider's stream within the limits of a model's call."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from failwise.agent.messages import Limits
from failwise.vocabulary.errors import ToolError, UsageError


@contextlib.asynccontextmanager
async def events(opening: Any, limits: Limits) -> AsyncIterator[AsyncIterator[Any]]:
    """The events of a stream; `opening` is awaited for it. The stream is closed however this ends.

    The first event, and each after it, must come within ``limits.first_token`` seconds.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + limits.first_token
    stream = await _within(opening, until, limits, "first_token")
    try:
        yield _paced(stream, until, limits)
    finally:
        await stream.close()


async def _paced(stream: Any, until: float, limits: Limits) -> AsyncIterator[Any]:
    loop = asyncio.get_running_loop()
    iterator, phase = stream.__aiter__(), "first_token"
    while True:
        try:
            event = await _within(anext(iterator), until, limits, phase)
        except StopAsyncIteration:
            return
        yield event
        until, phase = loop.time() + limits.first_token, "stream"


async def _within(waiting: Any, until: float, limits: Limits, phase: str) -> Any:
    try:
        async with asyncio.timeout_at(until):
            return await waiting
    except TimeoutError as error:
        what = "first token" if phase == "first_token" else "further token"
        raise ToolError(
            f"no {what} within {limits.first_token:g} s",
            code="network.read_timeout",
            effect="unknown",
            transient=True,
            details={"limit": limits.first_token},
        ) from error


def client_of(client: Any, package: str, kind: str, limits: Limits) -> Any:
    """The SDK's client with its own retries off (ours would multiply with them) and our limits.

    Raises `UsageError` for a client that is not the async one.
    """
    with_options = getattr(client, "with_options", None)
    if not callable(with_options) or not type(client).__name__.startswith("Async"):
        raise UsageError(
            f"give {package}'s async client, {package}.{kind}(...), not {type(client).__name__}"
        )
    import importlib

    timeout = importlib.import_module(package).Timeout
    return with_options(max_retries=0, timeout=timeout(limits.whole, connect=limits.connect))


def upstream_of(client: Any, model: str) -> str:
    """Whom the guards count: the host that is asked, and the model."""
    host = getattr(getattr(client, "base_url", None), "host", None)
    return f"{host or 'model'}/{model}"
