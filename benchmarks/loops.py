"""The three ways to run a model's tool calls that are compared, on the same shop and the same model."""

import json
import random
from collections.abc import Callable
from typing import Any

import httpx

import failwise
from benchmarks.shop import ASIDES, KEYED, READS, WRITES, Job, Shop
from benchmarks.simulated_model import SimulatedModel
from failwise.testing import SteppingClock
from failwise.vocabulary.tokens import estimated

_TURNS = 40
_THINKING = 2.0
"""Seconds of a model's turn, on the stepped clock."""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ticket": {"type": "string"},
        "note": {"type": "string"},
        "priority": {"type": "integer"},
    },
    "required": ["ticket"],
}
PURPOSE = {
    "find": "Find the customer.",
    "price": "Get the price.",
    "reserve": "Reserve the goods.",
    "order": "Place the order.",
    "pay": "Charge the customer.",
    "receipt": "Send the receipt.",
    "news": "The shop's news.",
    "hours": "The shop's hours.",
}


class Outcome:
    """What a loop says of one task, and what it cost."""

    def __init__(self, said_done: bool, result_tokens: int, turns: int, peak: int = 0) -> None:
        self.said_done, self.result_tokens, self.turns, self.peak = (
            said_done,
            result_tokens,
            turns,
            peak,
        )


def model_of(job: Job, seed: int, thinks: Callable[[], object] | None = None) -> SimulatedModel:
    """The same model for the same task in each loop."""
    chance = random.Random(f"{seed}-{job.number}")
    return SimulatedModel(job.chain, job.start, ASIDES, chance, thinks)


def tools() -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": name, "description": text, "parameters": SCHEMA},
        }
        for name, text in PURPOSE.items()
    ]


# Without Failwise


def bare(client: httpx.Client, *, attempts: int) -> Callable[[Job, int], Outcome]:
    """A loop with try/except, whose exceptions go to the model; `attempts` 4: a blanket retry of
    whatever failed, three times, around each call."""

    def send(name: str, arguments: dict[str, Any]) -> str:
        if name in ASIDES:
            return client.get(f"/{name}").text
        if name in READS:
            answer = client.get(f"/{name}/{arguments['ticket']}")
        else:
            answer = client.post(f"/{name}", json=arguments)
        answer.raise_for_status()
        return answer.text

    def call(name: str, raw: str) -> str:
        for number in range(1, attempts + 1):
            try:
                return send(name, json.loads(raw))
            except Exception as error:
                if number == attempts:
                    return f"Error: {type(error).__name__}: {error}"
        raise AssertionError

    def run(job: Job, seed: int) -> Outcome:
        model = model_of(job, seed)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Get it done."}]
        read = 0
        for _ in range(_TURNS):
            read += sum(estimated(m["content"]) for m in messages if m["role"] == "tool")
            said = model.complete(messages, tools())
            messages.append(said)
            if not said.get("tool_calls"):
                break
            for asked in said["tool_calls"]:
                text = call(asked["function"]["name"], asked["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": asked["id"], "content": text})
        return Outcome(model.believes_done, read, model.turns)

    return run


# With Failwise


def runtime(shop: Shop) -> failwise.Runtime:
    """The shop's tools with what a user of it would declare."""
    rt = failwise.Runtime(":memory:", clock=SteppingClock())
    url = shop.server.url()
    for name in READS:
        rt.add(
            failwise.HttpTool(
                name,
                "GET",
                f"{url}/{name}/{{ticket}}",
                schema=SCHEMA,
                description=PURPOSE[name],
                query={},
            )
        )
    for name in WRITES:
        more: dict[str, Any] = {}
        if name in KEYED:
            more["idempotency_key"] = "Idempotency-Key"
        if name == "reserve":
            more |= {"verify": _verify(url), "verify_final_after": 2}
        rt.add(
            failwise.HttpTool(
                name, "POST", f"{url}/{name}", schema=SCHEMA, description=PURPOSE[name], **more
            )
        )
    for name in ASIDES:
        rt.add(
            failwise.HttpTool(
                name,
                "GET",
                f"{url}/{name}",
                schema={"type": "object", "properties": {}},
                description=PURPOSE[name],
            )
        )
    return rt


def _verify(url: str) -> Callable[[dict[str, Any]], Any]:
    def verify(arguments: dict[str, Any]) -> Any:
        found = httpx.get(f"{url}/reserved/{arguments['ticket']}", timeout=5).json()
        return found["reservation"] or False

    return verify


def ours(rt: failwise.Runtime) -> Callable[[Job, int], Any]:
    """`failwise.Agent` with the same model, each of whose turns takes `_THINKING` seconds."""
    clock = rt.clock
    assert isinstance(clock, SteppingClock)

    async def run(job: Job, seed: int) -> Outcome:
        model = model_of(job, seed, lambda: clock.advance(_THINKING))
        agent = failwise.Agent(model, rt)
        result = await agent.run("Get it done.", id=f"job-{seed}-{job.number}")
        return Outcome(result.status == "done", result.result_tokens, result.turns)

    return run
