"""What the loop learns: repeats, oscillation, corrections, orders that may have happened."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.agent.conduct import Conduct, essence, fingerprint
from failwise.agent.messages import ToolCall
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Effect, StopReason
from failwise.vocabulary.result import ToolResult


def failed(
    tool: str,
    code: str,
    *,
    effect: Effect = Effect.REJECTED,
    transient: bool | None = False,
    action: Action = Action.ASK_MODEL,
    retry_at: float | None = None,
    **details: Any,
) -> ToolResult[Any]:
    failure = Failure(category_of(code), code, effect=effect, transient=transient, details=details)
    return ToolResult(
        tool,
        False,
        failure=failure,
        suggested_action=action,
        stop_reason=StopReason.NOT_RETRIABLE,
        retry_at=retry_at,
    )


def good(tool: str) -> ToolResult[Any]:
    return ToolResult(tool, True, "ok")


class Played:
    """Calls by name, on a `Conduct`."""

    def __init__(self, rounds: int = 3) -> None:
        self.conduct = Conduct(rounds)

    def look(self, name: str, now: float = 0.0, order: str = "") -> str | None:
        verdict = self.conduct.look(name[0], name, order or name, now)
        if verdict is not None:
            self.conduct.refused(name[0], name)
        return verdict and verdict.kind

    def learn(
        self,
        name: str,
        result: ToolResult[Any],
        now: float = 0.0,
        *,
        read: bool = False,
        order: str = "",
    ) -> int:
        return self.conduct.learn(name, order or name, result, now, read_only=read)


def test_the_same_call_is_not_sent_again_while_nothing_changed() -> None:
    """A read that succeeds changes nothing; a write that succeeds may have."""
    play = Played()
    play.learn("a1", failed("a", "business.not_found"))
    assert play.look("a1") == "repeated"
    assert play.look("a2") is None
    play.learn("b1", good("b"), read=True)
    assert play.look("a1") == "repeated"
    play.learn("c1", good("c"), read=False)
    assert play.look("a1") is None


def test_what_passes_by_itself_may_be_tried_after_a_while() -> None:
    """A transient failure that did no harm: not at once, but after some time or other work."""
    result = failed(
        "a", "server.unavailable", effect=Effect.UNKNOWN, transient=True, read_only=True
    )
    play = Played()
    play.learn("a1", result, now=100.0)
    assert play.look("a1", now=101.0) == "repeated"
    assert play.look("a1", now=131.0) is None
    play.learn("a1", result, now=131.0)
    play.learn("b1", good("b"), read=True)
    assert play.look("a1", now=132.0) is None


def test_a_write_that_may_have_happened_is_not_tried_again_in_other_words() -> None:
    """The same order with a note added is the same order; nothing but another order is."""
    lost = failed("a", "network.read_timeout", effect=Effect.UNKNOWN, transient=True)
    play = Played()
    play.learn("a1", lost, order="sku=1")
    assert play.look("a2", order="sku=1") == "open"
    assert play.look("a3", order="sku=2") is None
    play.learn("c1", good("c"))
    assert play.look("a2", order="sku=1") == "open", "other work settles nothing"


def test_a_told_moment_is_waited_for() -> None:
    """Before `retry_at` the call is too early, and the model is told by how much; after it, it may go."""
    later = failed(
        "a", "rate_limit.requests", transient=True, action=Action.RETRY_LATER, retry_at=160.0
    )
    play = Played()
    play.learn("a1", later, now=100.0)
    verdict = play.conduct.look("a", "a1", "a1", 130.0)
    assert verdict is not None
    assert (verdict.kind, verdict.seconds) == ("early", 30.0)
    assert play.look("a1", now=161.0) is None


def test_going_back_and_forth_is_seen() -> None:
    """Two calls that fail in turns: the model is told both names."""
    play = Played()
    for name in ("a1", "b1"):
        play.learn(name, failed(name[0], "business.refused"))
    assert play.conduct.look("a", "a1", "a1", 0.0) is not None
    assert play.look("a1") == "repeated"
    verdict = play.conduct.look("b", "b1", "b1", 0.0)
    assert verdict is not None
    assert verdict.between in (("b", "a"), ("a", "b"))


def test_corrections_are_counted_for_each_cause_until_the_tool_succeeds() -> None:
    """Three rounds for one kind of mistake, then the tool is closed; a success forgets them."""
    wrong = failed("a", "model_output.schema_violation", effect=Effect.NOT_SENT)
    other = failed("a", "invalid_request.parameter")
    play = Played()
    assert [play.learn(f"a{n}", wrong) for n in range(2)] == [1, 2]
    assert play.learn("a2", other) == 1
    play.learn("a3", good("a"))
    assert [play.learn(f"a{n}", wrong) for n in range(4, 8)] == [1, 2, 3, 4]
    assert play.look("a9") == "closed"
    assert play.look("b1") is None
    assert play.conduct.corrections == 7


def test_failures_that_are_no_mistake_of_the_models_use_no_round() -> None:
    """Outages and refusals are not corrections, however many."""
    play = Played()
    for number in range(20):
        assert play.learn(f"a{number}", failed("a", "business.not_found")) == 0
    assert play.look("a99") is None


@pytest.mark.parametrize("between", [True, False])
def test_nothing_new_is_an_end(between: bool) -> None:
    """A call that is asked for again and again ends the task, also with idle reads in between."""
    play = Played(rounds=3)
    play.learn("a1", failed("a", "business.refused"))
    for number in range(3):
        assert not play.conduct.stuck
        assert play.look("a1") == "repeated"
        if between:
            play.learn(f"n{number}", good("n"), read=True)
    assert play.conduct.stuck


def test_a_fingerprint_is_by_value_and_an_essence_by_what_is_required() -> None:
    """Order of keys, spaces and 1 against 1.0 do not matter; unreadable text counts as it is."""
    one = ToolCall("1", "a", '{"x": 1, "y": "é"}')
    same = ToolCall("2", "a", {"y": "é", "x": 1.0})
    assert fingerprint("a", one) == fingerprint("a", same)
    assert fingerprint("a", one) != fingerprint("b", one)
    broken = ToolCall("3", "a", "{'x': 1")
    assert fingerprint("a", broken) == fingerprint("a", broken)
    noted = ToolCall("4", "a", '{"x": 1, "y": "other"}')
    assert essence("a", one, ["x"]) == essence("a", noted, ["x"])
    assert essence("a", one, ["y"]) != essence("a", noted, ["y"])
    assert essence("a", broken, ["x"]) == fingerprint("a", broken)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 3),
            st.sampled_from(["good", "read", "refused", "lost", "wrong"]),
        ),
        max_size=60,
    )
)
def test_whatever_is_played_no_call_is_let_through_for_ever(steps: list[Any]) -> None:
    """Between two changes of the world, one failed call is sent at most rounds + 1 times; an order
    that may have happened is never sent again in other words."""
    play = Played(rounds=3)
    sent: dict[str, int] = {}
    opened: set[str] = set()
    for tool, number, kind in steps:
        name = f"{tool}{number}"
        if play.look(name, order=f"{tool}-order") is not None:
            continue
        if kind == "good":
            play.learn(name, good(tool), order=f"{tool}-order")
            sent.clear()
            opened.discard(tool)
        elif kind == "read":
            play.learn(name, good(tool), read=True, order=f"{tool}-order")
            sent.pop(name, None)
            opened.discard(tool)
        else:
            assert tool not in opened or name in sent or kind
            result = {
                "refused": failed(tool, "business.refused"),
                "lost": failed(tool, "network.read_timeout", effect=Effect.UNKNOWN, transient=True),
                "wrong": failed(tool, "invalid_request.parameter"),
            }[kind]
            if kind == "lost":
                opened.add(tool)
            sent[name] = sent.get(name, 0) + 1
            assert sent[name] <= 4
            play.learn(name, result, order=f"{tool}-order")
