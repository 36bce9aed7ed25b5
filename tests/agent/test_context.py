"""The history stays small, whole and valid, however long the task."""

import random
from typing import Any

import pytest

import failwise
from failwise.agent import Budget, Completion
from failwise.testing import refusals
from failwise.vocabulary.tokens import estimated
from tests.agent.conftest import Script, asks


@pytest.fixture
def tools(rt: failwise.Runtime) -> failwise.Runtime:
    @rt.tool(read_only=True)
    async def read(page: int, size: int = 100) -> str:
        """Read a page."""
        if page < 0:
            raise failwise.ToolError(
                f"no page {page}", code="business.not_found", effect="rejected", transient=False
            )
        return f"<{page}>" + "".join(str(n % 10) for n in range(size)) + f"</{page}>"

    return rt


async def test_a_long_result_has_its_ends_and_a_handle(tools: failwise.Runtime) -> None:
    """Head and tail are shown; the model reads on with the built-in tool, which is offered only then."""
    model = Script(
        [
            asks(("read", '{"page": 7, "size": 20000}')),
            asks(("read_result", '{"handle": "r1", "offset": 5000, "length": 50}')),
            asks(("read_result", '{"handle": "r9"}')),
            asks(("read_result", '{"handle": 5}')),
            "Read.",
        ]
    )
    result = await failwise.Agent(model, tools).run("Read page 7.")
    assert result.status == "done"
    cut = model.heard[1][-1]["content"]
    assert len(cut) <= 4000
    assert cut.startswith("<7>0123")
    assert cut.endswith("</7>")
    assert 'read on with read_result(handle="r1", offset=' in cut
    assert [t["function"]["name"] for t in model.offered[0]] == ["read"]
    assert [t["function"]["name"] for t in model.offered[1]] == ["read", "read_result"]
    piece = model.heard[2][-1]["content"]
    assert piece.startswith("[characters 5000 to 5050 of 20007]\n")
    assert len(piece.splitlines()[1]) == 50
    assert model.heard[3][-1]["content"].startswith("FAILED: there is no result r9")
    assert result.results[0].value.endswith("</7>"), "the record has the whole value"


async def test_old_failures_become_one_line(tools: failwise.Runtime) -> None:
    """After two turns only what failed is left, and whether it may have taken effect."""

    @tools.tool
    async def pay(amount: int) -> None:
        """Pay."""
        raise failwise.ToolError("lost", code="network.read_timeout", effect="unknown")

    model = Script(
        [
            asks(("read", '{"page": -1}'), ("pay", '{"amount": 5}')),
            asks(("read", '{"page": 1}')),
            asks(("read", '{"page": 2}')),
            "Done.",
        ]
    )
    await failwise.Agent(model, tools, remind=False).run("Go.")
    texts = [m["content"] for m in model.heard[-1] if m["role"] == "tool"]
    assert texts[0] == "FAILED earlier: read (business.not_found)."
    assert texts[1] == "FAILED earlier: pay (network.read_timeout). It may have taken effect."
    assert "FAILED: tool read" in model.heard[1][-2]["content"]


@pytest.mark.parametrize("dialect", ["openai", "openai_responses", "anthropic"])
async def test_two_hundred_calls_with_failures_stay_within_the_limit(
    tools: failwise.Runtime, dialect: str
) -> None:
    """30 % of 200 calls fail: no request is over the limit, each history is one that the API takes,
    the task stands in it, and what was left out is said."""
    chance = random.Random(5)
    limit = 8000

    def turn(messages: Any) -> Any:
        page = len(model.heard)
        if page > 200:
            return "Read them all."
        size = chance.randint(100, 4500)
        return asks(("read", {"page": -page if chance.random() < 0.3 else page, "size": size}))

    model = Script([turn], dialect=dialect)
    agent = failwise.Agent(
        model, tools, context_tokens=limit, budget=Budget(turns=None), remind=False
    )
    result = await agent.run("Read two hundred pages.")
    assert result.text == "Read them all."
    assert len(result.results) == 200
    assert 40 <= sum(not r.success for r in result.results) <= 80
    check, field = CHECKS[dialect]
    for history in model.heard:
        assert check({field: history, "tools": []}) is None
        assert estimated(str(history)) <= limit * 1.5, "with what the wire adds to it"
    assert "Read two hundred pages." in str(model.heard[-1][0])
    assert "earlier turns are left out here" in str(model.heard[-1][:2])


CHECKS: dict[str, tuple[Any, str]] = {
    "openai": (refusals.openai_history, "messages"),
    "openai_responses": (refusals.responses_history, "input"),
    "anthropic": (refusals.anthropic_history, "messages"),
}


async def test_the_limit_holds_for_one_turn_with_many_results(tools: failwise.Runtime) -> None:
    """Twenty long results at once are shortened too, each with a handle."""
    calls = [("read", f'{{"page": {n}, "size": 3500}}') for n in range(20)]
    model = Script([asks(*calls), Completion("Done.")])
    agent = failwise.Agent(model, tools, context_tokens=6000)
    result = await agent.run("Read.")
    assert result.status == "done"
    texts = [m["content"] for m in model.heard[-1] if m["role"] == "tool"]
    assert len(texts) == 20
    assert sum(map(estimated, texts)) <= 8000
    assert "read on with read_result" in texts[0]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("four", 1), ("eight ch", 2), ("你好", 2), ("ok 好", 2)]
)
def test_tokens_are_estimated_from_characters(text: str, tokens: int) -> None:
    """Four ASCII characters to a token, any other character one."""
    assert estimated(text) == tokens
