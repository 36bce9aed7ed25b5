"""How a scenario is played against an MCP server: a client calls its tools as a host would, over a real
transport or in memory, and what a model would read is what comes back."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from failwise.faults import FaultServer
from failwise.testing import recorded
from tests.frameworks.driving import alike, by_runtime, runtime
from tests.frameworks.scenarios import SCENARIOS, Scenario
from tests.frameworks.shop import SECRET, Function, Shop

Call = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Calls a tool, gives the result as it stands on the wire."""
Serve = Callable[[Any, Mapping[str, Function]], AbstractAsyncContextManager[Call]]
"""A server with these tools on this runtime (or run), and a client of it."""

OF_SERVERS = [one for one in SCENARIOS if not one.needs]
"""A client hands over an object, and knows which tools there are."""


PLACES = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
"""The environment in which a server in a process of its own finds what we have here."""


def text_of(result: Mapping[str, Any]) -> str:
    """What a model reads."""
    return "".join(item.get("text", "") for item in result["content"])


async def check_server(
    serve: Serve, scenario: Scenario, server: FaultServer, *, records: bool = True
) -> None:
    """A scenario ends as it must, and a model reads what a runtime says. `records`: failures carry them."""
    shop = Shop(server)
    scenario.routes(server)
    rt = runtime()
    results = recorded(rt)
    # Which calls belong together a server is not told: where they do, it is said.
    chain = scenario.name == "auth_stops_the_chain"
    async with serve(rt.run() if chain else rt, shop.functions()) as call:
        answers = [await call(name, raw) for name, raw in scenario.calls]
    await rt.flush_async()
    read = [text_of(answer) for answer in answers]
    assert [bool(answer.get("isError")) for answer in answers] == list(scenario.told), read
    assert [text.startswith("FAILED:") for text in read] == list(scenario.told), read
    assert scenario.holds(shop), (shop.ran, server.requests)
    assert [result.success for result in results] == [not told for told in scenario.told]
    whole = json.dumps(answers, ensure_ascii=False)
    assert SECRET not in whole
    assert SECRET[8:] not in whole
    rt.close()
    with FaultServer() as other:
        expected = await asyncio.to_thread(by_runtime, scenario, other)
    for text, own, told, answer in zip(
        alike(read), alike(expected), scenario.told, answers, strict=True
    ):
        if told:
            assert text == own
            if records:
                assert answer["_meta"]["dev.failwise/result"]["success"] is False
        else:
            assert "shoes 1" in text
            assert answer["structuredContent"] == {"items": ["shoes 1", "shoes 2"]}


def wire(result: Any) -> dict[str, Any]:
    """A result of the SDK's as it stands on the wire."""
    plain: dict[str, Any] = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    return plain


@asynccontextmanager
async def over_http(application: Any) -> AsyncIterator[str]:
    """An ASGI application on a port of its own; gives the address."""
    import uvicorn

    settings = uvicorn.Config(application, port=0, log_level="error", lifespan="on", ws="none")
    server = uvicorn.Server(settings)
    task = asyncio.create_task(server.serve())
    for _ in range(500):
        if server.started:
            break
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
