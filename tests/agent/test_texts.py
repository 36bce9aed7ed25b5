"""Everything that the loop itself says, in both languages, as golden files."""

import os
import re
import string
from pathlib import Path
from typing import Any

import pytest

import failwise
from failwise.agent import Agent, Budget, Completion
from failwise.testing import ScriptedTool, SteppingClock
from failwise.vocabulary.sentences import say, table
from tests.agent.conftest import Script, asks

GOLDEN = Path(__file__).parent / "golden"
OURS = ("agent_", "trouble_", "report_", "what_")
FACTS: dict[str, Any] = {
    "tool": "create_order", "seconds": 12, "one": "search", "other": "fetch", "limit": 3, "count": 2,
    "what": "tokens", "calls": 9, "left": 1200, "size": 5000, "handle": "r1", "offset": 2400,
    "start": 0, "end": 400, "code": "network.read_timeout", "turns": 7, "good": 5, "bad": 2,
    "names": "create_order", "meaning": "The credential has expired", "text": "Renew the key.",
    "name": "cheaper", "time": "2026-11-30 12:00:00 UTC", "failed": 8, "minutes": 5,
    "category": "server",
}  # fmt: skip


def held(name: str, text: str) -> None:
    """The text is the golden file's; FAILWISE_WRITE_GOLDEN=1 writes it anew."""
    path = GOLDEN / name
    if os.environ.get("FAILWISE_WRITE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_sentences(lang: str) -> None:
    """Each sentence of the loop, filled in."""
    names = sorted(name for name in table(lang) if name.startswith(OURS))
    assert len(names) >= 50
    held(f"sentences.{lang}.txt", "".join(f"{n}: {say(lang, n, **FACTS)}\n" for n in names))


@pytest.mark.parametrize("name", sorted(n for n in table("en") if n.startswith(OURS)))
def test_both_languages_need_the_same_facts(name: str) -> None:
    """A place filled in English is filled in Chinese, and Chinese reads as Chinese."""
    fields = [
        {field for _, field, _, _ in string.Formatter().parse(table(lang)[name]) if field}
        for lang in ("en", "zh")
    ]
    assert fields[0] == fields[1]
    assert re.search(r"[\u4e00-\u9fff]", table("zh")[name])


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_what_a_model_reads_in_a_hard_task(lang: Any, clock: SteppingClock) -> None:
    """One task with a wrong call, a repeat, a lost order, an order in other words, and a limit."""
    with failwise.Runtime(":memory:", clock=clock) as rt:
        refused = failwise.ToolError(
            "the shop is closed", code="business.refused", effect="rejected", transient=False
        )
        schema = {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "note": {"type": "string"}},
            "required": ["sku"],
        }
        rt.add(ScriptedTool("visit", [refused], schema=schema, read_only=True).spec())
        rt.add(ScriptedTool("order", [TimeoutError("lost")], schema=schema).spec())
        model = Script(
            [
                asks(("visit", '{"sku": [1]}')),
                asks(("visit", '{"sku": "A"}')),
                asks(("visit", '{"sku": "A"}')),
                asks(("order", '{"sku": "A"}')),
                asks(("order", '{"sku": "A", "note": "please"}')),
                asks(("vizit", "{}")),
                Completion("I have done everything."),
                asks(("visit", '{"sku": "B"}')),
                Completion("Some of it is uncertain."),
            ]
        )
        result = await Agent(model, rt, lang=lang, budget=Budget(turns=8)).run("Order A.")
    told = [message["content"] for message in model.heard[-1] if message["role"] != "assistant"]
    heard = [history[-1]["content"] for history in model.heard[1:]]
    text = "\n\n".join([*heard, "--- at the end", *told[1:], "--- report", result.report()])
    held(f"task.{lang}.txt", text + "\n")
