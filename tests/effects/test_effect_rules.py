"""The rules of a claim."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.effects.claims import StoredClaim, decide_claim, decide_settlement
from failwise.effects.identity import arguments_fingerprint, effect_key
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim

NOW = 1_000_000.0
REQUEST = Claim("k", "f", "run", "order", "call", {})


def stored(**changes: Any) -> StoredClaim:
    values: dict[str, Any] = {
        "key": "k",
        "run_id": "run",
        "fingerprint": "f",
        "tool": "order",
        "call_id": "call",
        "state": "claimed",
        "owner": "me",
        "claimed_at": NOW - 5,
        "lease_until": NOW + 7,
    }
    return StoredClaim(**(values | changes))


@pytest.mark.parametrize(
    ("existing", "open_effect", "answer"),
    [
        (None, None, "granted"),
        (stored(), None, "in_flight"),
        (stored(lease_until=NOW), None, "unknown"),
        (stored(state="unknown"), None, "unknown"),
        (stored(state="done"), None, "done"),
        (stored(state="not_done"), None, "granted"),
        (stored(fingerprint="other"), None, "conflict"),
        (stored(state="not_done", fingerprint="other"), None, "conflict"),
        (None, stored(key="k2", state="unknown"), "open"),
        (stored(state="not_done"), stored(key="k2", state="unknown"), "open"),
        (stored(state="done"), stored(key="k2", state="unknown"), "done"),
    ],
)
def test_each_state_has_one_answer(
    existing: StoredClaim | None, open_effect: StoredClaim | None, answer: str
) -> None:
    """Only an unused key, or one certainly not done, is granted."""
    assert decide_claim(existing, open_effect, REQUEST, NOW).state == answer


def test_waits_results_and_keys_are_told() -> None:
    """In flight tells the wait to the lease's end; done brings its result; open names the other key."""
    assert decide_claim(stored(), None, REQUEST, NOW).wait == 7
    result = ToolResult("order", True, 1)
    assert decide_claim(stored(state="done", result=result), None, REQUEST, NOW).result is result
    assert decide_claim(None, stored(key="k2", state="unknown"), REQUEST, NOW).key == "k2"


def test_the_same_arguments_under_way_elsewhere_are_waited_for() -> None:
    """Another owner sends the same thing under another id: it may be dead, so nobody sends beside it."""
    answer = decide_claim(None, stored(key="k2"), REQUEST, NOW)
    assert (answer.state, answer.wait, answer.key) == ("in_flight", 7, "k2")


def test_a_settled_unknown_is_known_to_have_happened() -> None:
    """Once somebody says that it happened, the call's own "nobody knows" is not its answer any more."""
    unsure = ToolResult[Any]("order", False, failure=Failure(Category.SERVER, "server.internal"))
    answer = decide_claim(stored(state="done", result=unsure), None, REQUEST, NOW)
    assert (answer.state, answer.result) == ("done", None)
    applied = Failure(Category.PARSING, "parsing.empty", effect=Effect.APPLIED)
    said = ToolResult[Any]("order", False, failure=applied)
    assert decide_claim(stored(state="done", result=said), None, REQUEST, NOW).result is said


@pytest.mark.parametrize(
    ("claim", "state", "holder", "allowed"),
    [
        (stored(), "done", 1, True),
        (stored(), "not_done", 1, True),
        (stored(), "unknown", 1, True),
        (stored(), "not_done", None, False),
        (stored(), "done", None, True),
        (stored(lease_until=NOW), "not_done", None, True),
        (stored(state="unknown"), "not_done", None, True),
        (stored(state="unknown"), "done", None, True),
        (stored(state="unknown"), "not_done", 1, True),
        (stored(generation=2), "not_done", 1, False),
        (stored(generation=2), "unknown", 1, False),
        (stored(generation=2), "done", 1, True),
        (stored(state="done"), "not_done", 1, False),
        (stored(state="done"), "unknown", None, False),
        (stored(state="not_done"), "done", None, True),
        (stored(state="not_done"), "unknown", 1, False),
    ],
)
def test_settlements(claim: StoredClaim, state: Any, holder: int | None, allowed: bool) -> None:
    """Done is final; "no" never counts over the head of somebody who is sending it now."""
    assert decide_settlement(claim, state, NOW, holder=holder) is allowed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    if isinstance(value, list):
        return [shuffled(item) for item in value]
    return value


@given(JSON)
def test_order_of_keys_does_not_count(value: Any) -> None:
    """The same arguments written in another order have the same fingerprint."""
    assert arguments_fingerprint("t", value) == arguments_fingerprint("t", shuffled(value))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 0.0}, {"n": -0.0}, True),
        ({"n": 2**60 + 1}, {"n": float(2**60)}, False),
        ({"n": 10**5000}, {"n": 10**5000 + 1}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": None}, {}, False),
        ({"t": "caf\u00e9"}, {"t": "cafe\u0301"}, True),
        ({"a": ["b", "c"]}, {"a": ["bc"]}, False),
        ({"a": []}, {"a": {}}, False),
        ({"a": "["}, {"a": []}, False),
        ({"a": {"b": 1}}, {"a": {}, "b": 1}, False),
        ({"t": "\ud800"}, {"t": "?"}, False),
    ],
)
def test_what_counts_as_the_same_arguments(one: Any, other: Any, alike: bool) -> None:
    """Numbers by value, texts in normal form C, types kept apart."""
    assert (arguments_fingerprint("t", one) == arguments_fingerprint("t", other)) is alike


def test_depth_is_no_limit() -> None:
    """Nesting beyond the recursion limit is read all the same."""
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    assert len(arguments_fingerprint("t", deep)) == 32
    while isinstance(
        deep, list
    ):  # taken apart here: the interpreter frees nested lists recursively
        deep = deep.pop()


def test_keys_do_not_run_together() -> None:
    """A run and a call cannot be split elsewhere and give the same key; keys never change."""
    assert effect_key("ab", "c") != effect_key("a", "bc")
    assert effect_key("job-42", "call_7") == effect_key("job-42", "call_7")
    assert len(effect_key("", "")) == 32
