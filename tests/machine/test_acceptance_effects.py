"""An effect happens at most once, through whichever door: over all three drivers.

Time is virtual and jitter is off, so that every second can be compared. The marks E1, E2, ... are
the acceptance examples of the project.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failwise import Effect, StopReason, ToolError
from tests.machine.failures import (
    certificate_expired,
    connect_timeout,
    read_timeout,
    reset,
    server_error,
    too_many,
)
from tests.machine.stages import STAGES, After, Open

# Effects


def test_a_reset_read_is_repeated_slowly(stage: Open) -> None:
    """E20: reset after sending a read: 5, 10, 20 s."""
    it = stage()
    read = it.tool("read", reset(), read_only=True)
    it.call("read")
    assert read.times == [0, 5, 15, 35]


def test_a_reset_write_is_never_sent_again(stage: Open) -> None:
    """E20: reset after sending a write: one request, and "it may have happened"."""
    it = stage()
    order = it.tool("order", reset())
    result = it.call("order")
    assert order.requests == 1
    assert result.stop_reason is StopReason.UNSAFE_EFFECT
    assert result.failure
    assert result.failure.effect is Effect.UNKNOWN
    assert "may have" in result.for_model("en")


def test_verify_answers_instead_of_a_second_send(stage: Open) -> None:
    """E20: with verify, an unknown order is looked up, and found."""
    asked: list[Any] = []

    def verify(arguments: Any) -> Any:
        asked.append(arguments)
        return {"order": 42}

    it = stage()
    order = it.tool("order", reset(), verify=verify)
    result = it.call("order", {"sku": "x"})
    assert order.requests == 1
    assert asked == [{"sku": "x"}]
    assert (result.success, result.value, result.verified) == (True, {"order": 42}, True)


@pytest.mark.parametrize("answer", [False, None])
def test_a_no_from_verify_means_not_yet(stage: Open, answer: bool | None) -> None:
    """An order can land late: neither "no" nor "don't know" leads to a second send."""
    it = stage()
    order = it.tool("order", reset(), verify=lambda arguments: answer)
    result = it.call("order")
    assert order.requests == 1
    assert result.stop_reason is StopReason.UNSAFE_EFFECT
    assert result.failure
    assert result.failure.effect is Effect.UNKNOWN


def test_a_final_no_from_verify_allows_the_next_send(stage: Open) -> None:
    """`verify_final_after`: a "no" after that long is final, and the order is placed anew."""
    it = stage()
    order = it.tool(
        "order", reset(), "placed", verify=lambda arguments: False, verify_final_after=30.0
    )
    result = it.call("order")
    assert result.value == "placed"
    assert order.requests == 2
    assert order.times[1] >= 30
    assert order.keys[0] == order.keys[1]


def test_an_honoured_key_allows_a_second_send(stage: Open) -> None:
    """An upstream that honours the idempotency key is asked again, with the very same key."""
    it = stage()
    order = it.tool("order", reset(), "placed", idempotency_key="Idempotency-Key")
    assert it.call("order").success
    assert order.times == [0, 5]
    assert order.keys[0]
    assert order.keys[0] == order.keys[1]


def test_an_idempotent_write_is_repeated(stage: Open) -> None:
    """Doing it twice does no harm, says the tool."""
    it = stage()
    put = it.tool("put", reset(), "stored", idempotent=True)
    assert it.call("put").success
    assert put.requests == 2


def test_already_exists_after_an_unknown_is_verified(stage: Open) -> None:
    """ "Already exists" answering a repeat after an unknown effect means probably done by us."""
    it = stage()
    order = it.tool(
        "order",
        reset(),
        ToolError("exists", code="business.already_exists", effect="rejected"),
        idempotent=True,
        verify=lambda arguments: "found",
    )
    result = it.call("order")
    assert order.requests == 2
    assert result.success
    assert result.verified is True


def test_retry_not_sent_false_forbids_every_repeat_of_a_write(stage: Open) -> None:
    """`retry_not_sent = false`: not even a write that never left is sent again; reads are."""
    it = stage({"retry_not_sent": False})
    write = it.tool("write", connect_timeout())
    read = it.tool("read", connect_timeout(), "found", read_only=True)
    assert not it.call("write").success
    assert it.call("read").success
    assert write.requests == 1
    assert read.requests == 2


def test_a_write_that_never_left_is_repeated(stage: Open) -> None:
    """Connecting failed, so nothing happened: even a payment is sent again."""
    it = stage()
    pay = it.tool("pay", connect_timeout(), "paid")
    assert it.call("pay").value == "paid"
    assert pay.times == [0, 1]


def test_phases_of_a_timeout_differ(stage: Open) -> None:
    """E21: a connect timeout was not sent, a read timeout is unknown: a write is repeated only once."""
    it = stage()
    write = it.tool("write", connect_timeout(), read_timeout(), "late")
    result = it.call("write")
    assert write.times == [0, 1]
    assert [a.failure.effect for a in result.attempts if a.failure] == [
        Effect.NOT_SENT,
        Effect.UNKNOWN,
    ]


# Other doors


def test_a_fallback_is_a_call_with_a_record_of_its_own(stage: Open) -> None:
    """E25: degraded_to is set, two linked records, and the model is told the answer may be older."""
    it = stage()
    it.tool("search", certificate_expired(), read_only=True, fallback=("cache",))
    it.tool("cache", {"items": []}, read_only=True)
    result = it.call("search", call_id="call_7")
    assert result.success
    assert result.degraded_to == "cache"
    child, parent = it.results
    assert (child.tool_name, child.parent_id) == ("cache", "call_7")
    assert parent.tool_name == "search"
    assert child.call_id != parent.call_id
    assert "cache" in result.for_model("en")
    assert "older" in result.for_model("en").lower()


def test_a_write_of_unknown_effect_never_falls_back(stage: Open) -> None:
    """E25: the order may stand: another door would place it twice."""
    it = stage()
    order = it.tool("order", reset(), fallback=("other_shop",))
    other = it.tool("other_shop", "placed")
    result = it.call("order")
    assert not result.success
    assert order.requests == 1
    assert other.requests == 0


@pytest.mark.parametrize("nature", [{"idempotency_key": "Key"}, {"idempotent": True}])
def test_a_key_holds_at_its_own_door_only(stage: Open, nature: dict[str, Any]) -> None:
    """Even an idempotent write of unknown effect does not fall back."""
    it = stage()
    it.tool("order", reset(), fallback=("other_shop",), **nature)
    other = it.tool("other_shop", "placed")
    assert not it.call("order").success
    assert other.requests == 0


def test_a_write_that_never_left_may_fall_back(stage: Open) -> None:
    """Nothing was sent at the first door, so the second may be opened."""
    it = stage()
    it.tool("order", connect_timeout(), fallback=("other_shop",))
    it.tool("other_shop", "placed")
    assert it.call("order").degraded_to == "other_shop"


def test_what_another_door_did_is_not_done_again(stage: Open) -> None:
    """The same call later, with its own door open again: the fallback's order is handed back."""
    it = stage()
    order = it.tool("order", *[connect_timeout()] * 4, "second", fallback=("other_shop",))
    other = it.tool("other_shop", {"order": 7})
    run = it.runtime.run("job")
    first = it.call_in(run, "order", {"sku": "x"}, call_id="c1")
    again = it.call_in(run, "order", {"sku": "x"}, call_id="c1")
    assert first.value == again.value == {"order": 7}
    assert again.degraded_to == "other_shop"
    assert (order.requests, other.requests) == (4, 1)


def test_what_another_door_may_have_done_is_not_repeated(stage: Open) -> None:
    """A fallback of unknown effect leaves the order open: under no id is it sent again."""
    it = stage()
    order = it.tool("order", *[connect_timeout()] * 4, "second", fallback=("other_shop",))
    it.tool("other_shop", read_timeout())
    run = it.runtime.run("job")
    first = it.call_in(run, "order", {"sku": "x"}, call_id="c1")
    assert first.effect is Effect.UNKNOWN
    for call_id in ("c1", "c2"):
        again = it.call_in(run, "order", {"sku": "x"}, call_id=call_id)
        assert again.failure
        assert again.failure.code == "runtime.effect_open"
    assert order.requests == 4


def test_a_fallback_value_is_the_last_resort(stage: Open) -> None:
    """A declared value, None included, stands in when all tools failed."""
    it = stage()
    it.tool("search", connect_timeout(), read_only=True, fallback=("cache",), fallback_value=None)
    it.tool("cache", connect_timeout(), read_only=True)
    result = it.call("search")
    assert result.success
    assert result.value is None
    assert result.degraded_to == "value"


def test_a_failed_fallback_leaves_the_first_failure(stage: Open) -> None:
    """When the other door fails too, the caller hears of the tool that was asked."""
    it = stage()
    it.tool("search", server_error(), read_only=True, fallback=("cache",))
    it.tool("cache", connect_timeout(), read_only=True)
    result = it.call("search")
    assert result.failure
    assert result.failure.code == "server.internal"
    assert result.tool_name == "search"


def test_a_refused_request_does_not_fall_back(stage: Open) -> None:
    """Wrong parameters are wrong at every door."""
    it = stage()
    it.tool("search", ToolError("bad", code="invalid_request.parameter", effect="rejected"),
            read_only=True, fallback=("cache",))  # fmt: skip
    cache = it.tool("cache", "old", read_only=True)
    assert not it.call("search").success
    assert cache.requests == 0


def test_no_fallback_past_the_deadline(stage: Open) -> None:
    """When the time is up, it is up for the other door too."""
    it = stage()
    it.tool("search", After(5, connect_timeout()), read_only=True, fallback=("cache",))
    cache = it.tool("cache", "old", read_only=True)
    result = it.call("search", deadline=5)
    assert result.stop_reason is StopReason.DEADLINE
    assert cache.requests == 0


# One call, one log


def test_every_process_decides_alike() -> None:
    """The same evidence, history and policy give the same decisions in any process."""
    program = (
        "from failwise.policy import TablePolicy; from tests.machine import worlds\n"
        "print([worlds.play(seed, TablePolicy()).result.to_json() for seed in range(60)])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1


def test_all_drivers_decide_alike(tmp_path: Path) -> None:
    """One script over the three drivers gives the same requests, decisions and result."""
    seen = []
    for name, make in STAGES.items():
        directory = tmp_path / name
        directory.mkdir()
        it = make(directory).open(jitter=None)
        tool = it.tool("tool", too_many(2), server_error(), connect_timeout(), read_only=True,
                       fallback=("other",))  # fmt: skip
        it.tool("other", reset(), read_only=True)
        run = it.runtime.run("job")
        data = it.call_in(run, "tool", {"a": 1}, call_id="call_1").to_dict()
        seen.append((tool.times, data["attempts"], data["stop_reason"], data["duration_ms"]))
        it.close()
    assert seen[0] == seen[1] == seen[2]
