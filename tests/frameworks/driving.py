"""How a scenario is played: by a runtime alone, and by a framework's agent with a scripted model."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import failwise
from failwise.faults import FaultServer
from failwise.testing import ProviderServer, Says
from tests.frameworks.scenarios import POLICY, Scenario
from tests.frameworks.shop import DECLARED, SECRET, Function, Shop

DONE = Says("done")
_TOLD = re.compile(r"^(?:Observation|(?:Call id: .*\n)?Error):\n", re.MULTILINE)
"""What goes before the outputs of tools in a user's message, where a framework has no messages of tools."""
_PORT = re.compile(r"127\.0\.0\.1:\d+|localhost:\d+")


def runtime(**options: Any) -> failwise.Runtime:
    """A runtime as anybody makes it: nothing but what is known of the tools, and quick."""
    given: dict[str, Any] = {"declarations": DECLARED, "policy": POLICY, "jitter": 0, **options}
    return failwise.Runtime(":memory:", **given)


Play = Callable[[failwise.Runtime, Mapping[str, Function], ProviderServer], str]
"""Makes an agent of the framework with these tools on this runtime, asks it "hi", gives what it said."""

FILE = """
[journal]
path = "journal.db"

[policy.network]
connection_reset = { base = 0.02 }

[declare."stock_*"]
read_only = true
timeout = 7
upstream = "warehouse"
"""


def check_declarations(play: Play, folder: Path, last: Says | None = None) -> None:
    """What a ``failwise.toml`` declares by glob holds for a framework's tools: one that reads is repeated, with
    the limit and the upstream of the file; one that nobody declared, and that fails alike, is not."""
    from failwise.cli.configuration import load
    from failwise.testing import recorded

    ran: list[str] = []

    def stock_of(query: str) -> dict[str, str]:
        """Count what is there."""
        ran.append("stock_of")
        if ran.count("stock_of") == 1:
            raise ConnectionResetError("reset by peer")
        return {"found": query}

    def book(query: str) -> dict[str, str]:
        """Book what is there."""
        ran.append("book")
        raise ConnectionResetError("reset by peer")

    file = folder / "failwise.toml"
    file.write_text(FILE, "utf-8")
    calls = [Says(calls=[(name, {"query": "x"})]) for name in ("stock_of", "book")]
    with ProviderServer([*calls, last or DONE]) as provider, load(file) as rt:
        results = recorded(rt)
        play(rt, {"stock_of": stock_of, "book": book}, provider)
        spec = rt.tools["stock_of"]
    assert (spec.read_only, spec.timeout, spec.upstream) == (True, 7, "warehouse")
    assert ran == ["stock_of", "stock_of", "book"]
    assert [(result.success, result.retries) for result in results] == [(True, 1), (False, 0)]


class Played(NamedTuple):
    """What the model read of each call, in order, and how the agent ended."""

    read: list[str]
    said: str


def by_framework(
    play: Play,
    scenario: Scenario,
    server: FaultServer,
    last: Says = DONE,
    **options: Any,
) -> tuple[Played, Shop, list[failwise.ToolResult[Any]]]:
    """Play a scenario with a framework's agent; what the model was sent is read from the wire.
    `last` is the model's last turn: how it ends where a plain answer is no end."""
    from failwise.testing import recorded

    shop = Shop(server)
    scenario.routes(server)
    turns: list[Any] = [Says(calls=[(name, raw)]) for name, raw in scenario.calls]
    rt = runtime(**options)
    results = recorded(rt)
    with ProviderServer([*turns, last]) as provider:
        said = play(rt, shop.functions(), provider)
        whole = json.dumps(provider.requests, ensure_ascii=False)
        read = tool_texts(provider.requests[-1])
    rt.close()
    assert SECRET not in whole
    assert SECRET[8:] not in whole
    return Played(read, said), shop, results


def by_runtime(scenario: Scenario, server: FaultServer, lang: str = "en") -> list[str]:
    """What a runtime itself says to the same calls."""
    shop = Shop(server)
    scenario.routes(server)
    with runtime() as rt:
        for name, function in shop.functions().items():
            rt.tool(function) if name not in DECLARED else rt.tool(**DECLARED[name])(function)
        with rt.run() as run:
            return [
                run.call_sync(name, raw, call_id=f"call_{number}").for_model(lang)  # type: ignore[arg-type]
                for number, (name, raw) in enumerate(scenario.calls)
            ]


def tool_texts(request: Mapping[str, Any]) -> list[str]:
    """What a provider's request holds as the outputs of tools, without the framework's own wrapping."""
    texts = []
    for item in request.get("messages") or request.get("input") or ():
        if item.get("role") == "tool":
            texts.append(_text(item["content"]))
        elif item.get("type") == "function_call_output":
            texts.append(_text(item["output"]))
        elif isinstance(item.get("content"), list):
            texts += [
                _text(block["content"])
                for block in item["content"]
                if isinstance(block, Mapping) and block.get("type") == "tool_result"
            ]
            if item.get("role") == "user":
                texts += _TOLD.split(_text(item["content"]))[1:]
    return [unwrapped(text) for text in texts]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content)


def unwrapped(text: str) -> str:
    """``{"error": "FAILED: ..."}`` → ``FAILED: ...``: how some frameworks hand on a failure."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, Mapping) and set(value) == {"error"}:
        return str(value["error"])
    return text


def alike(texts: Sequence[str]) -> list[str]:
    """The texts without what differs from one server to the next."""
    return [_PORT.sub("HOST", text) for text in texts]


def check(play: Play, scenario: Scenario, server: FaultServer, last: Says = DONE) -> None:
    """A scenario ends as it must: the shop saw what it should, the model read what a runtime says."""
    played, shop, results = by_framework(play, scenario, server, last)
    assert played.said == "done"
    assert [text.startswith("FAILED:") for text in played.read] == list(scenario.told), played.read
    assert scenario.holds(shop), (shop.ran, server.requests)
    assert [result.success for result in results] == [not told for told in scenario.told]
    with FaultServer() as other:
        expected = by_runtime(scenario, other)
    for text, own, told in zip(alike(played.read), alike(expected), scenario.told, strict=True):
        if told:
            assert text == own
        else:
            assert "shoes 1" in text
