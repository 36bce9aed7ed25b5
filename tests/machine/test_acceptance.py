"""What a call promises, over all three drivers: exact send times, requests, decisions.

Time is virtual and jitter is off, so that every second can be compared. The marks E1, E2, ... are
the acceptance examples of the project.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise import Action, Category, Effect, FixBy, StopReason, ToolError, UsageError
from failwise.vocabulary.errors import ConfigurationError
from tests.machine.stages import STAGES, After, Stage

Open = Callable[..., Stage]


@pytest.fixture(params=list(STAGES))
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a stage of one driver with a policy."""
    stages: list[Stage] = []

    def open_stage(policy: Any = None, **options: Any) -> Stage:
        made = STAGES[request.param](tmp_path).open(policy, **options)
        stages.append(made)
        return made

    yield open_stage
    for made in stages:
        assert made.guards.held == 0, "a slot was lost"
        made.close()


def connect_timeout() -> ToolError:
    return ToolError("no connection", code="network.connect_timeout", effect="not_sent")


def read_timeout() -> ToolError:
    return ToolError("no answer in time", code="network.read_timeout")


def reset() -> ToolError:
    return ToolError("reset by peer", code="network.connection_reset")


def server_error() -> ToolError:
    return ToolError("internal error", code="server.internal", http_status=500)


def too_many(told: float | None = None) -> ToolError:
    return ToolError("slow down", code="rate_limit.requests", effect="rejected", retry_after=told)


def forbidden() -> ToolError:
    return ToolError("no", code="auth.forbidden", effect="rejected", http_status=403)


def expired_token() -> ToolError:
    return ToolError("old", code="auth.credential_expired", effect="rejected", http_status=401)


# Retries and their times


def test_connect_timeouts_are_repeated_at_1_2_4_seconds(stage: Open) -> None:
    """E1: a read that never connects is sent at 0, 1, 3, 7 s, then handed to the model."""
    it = stage()
    search = it.tool("search", connect_timeout(), read_only=True)
    result = it.call("search")
    assert search.times == [0, 1, 3, 7]
    assert (result.success, result.retries) == (False, 3)
    assert result.stop_reason is StopReason.RETRIES_EXHAUSTED
    assert result.suggested_action is Action.ASK_MODEL
    assert [a.decision.delay for a in result.attempts if a.decision][:3] == [1, 2, 4]


def test_exhausted_retries_lead_to_the_fallback(stage: Open) -> None:
    """E1: with a fallback declared, that is what comes after the last retry."""
    it = stage()
    it.tool("search", connect_timeout(), read_only=True, fallback=("cache",))
    cache = it.tool("cache", ["shoes"], read_only=True)
    result = it.call("search", {"query": "shoes"})
    assert cache.times == [7]
    assert cache.sent == [{"query": "shoes"}]
    assert result.value == ["shoes"]
    assert result.degraded_to == "cache"


def test_jitter_spreads_each_wait_by_half(stage: Open) -> None:
    """E1: with the preset's jitter each wait stays within 0.5 to 1.5 of 1, 2, 4 s, and is not exact."""
    it = stage(jitter=None)
    search = it.tool("search", connect_timeout(), read_only=True)
    it.call("search")
    waits = [b - a for a, b in zip(search.times, search.times[1:], strict=False)]
    assert [0.5 * m <= w <= 1.5 * m for w, m in zip(waits, (1, 2, 4), strict=True)] == [True] * 3
    assert waits != [1, 2, 4]


def test_interactive_gives_two_retries(stage: Open) -> None:
    """E2: `interactive` sends at 0, 1, 3 s."""
    it = stage("interactive")
    search = it.tool("search", connect_timeout(), read_only=True)
    result = it.call("search")
    assert search.times == [0, 1, 3]
    assert result.retries == 2


def test_interactive_hands_long_waits_back(stage: Open) -> None:
    """`interactive` does not sleep through a told wait above 10 s."""
    it = stage("interactive")
    search = it.tool("search", too_many(11), read_only=True)
    assert it.call("search").stop_reason is StopReason.WAIT_TOO_LONG
    assert search.times == [0]


def test_batch_is_patient(stage: Open) -> None:
    """`batch` sleeps through a wait that `default` hands back, and repeats six times."""
    it = stage("batch")
    patient = it.tool("search", too_many(120), "found", read_only=True)
    assert it.call("search").value == "found"
    assert patient.times == [0, 120]
    slow = it.tool("slow", connect_timeout(), read_only=True)
    it.call("slow")
    assert slow.requests == 7


def test_server_errors_are_repeated_linearly(stage: Open) -> None:
    """E3: a 500 on a read is sent at 0, 2, 6 s."""
    it = stage()
    search = it.tool("search", server_error(), read_only=True)
    result = it.call("search")
    assert search.times == [0, 2, 6]
    assert result.failure
    assert result.failure.category is Category.SERVER


def test_delays_are_capped_at_30_seconds(stage: Open) -> None:
    """E4: with the ceiling raised to 8: 1, 2, 4, 8, 16, 30, 30, 30 s."""
    it = stage({"retries_ceiling": 8, "network": {"retries": 8, "retries_read": 8}})
    search = it.tool("search", connect_timeout(), read_only=True)
    it.call("search")
    waits = [b - a for a, b in zip(search.times, search.times[1:], strict=False)]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_rows_above_the_ceiling_are_clamped_and_said_once(
    stage: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """E4: with the ceiling left at 3, a row of 8 means 3 retries and one warning."""
    with caplog.at_level(logging.WARNING, "failwise"):
        it = stage({"network": {"retries_read": 8}})
        search = it.tool("search", connect_timeout(), read_only=True)
        it.call("search")
        it.call("search")
    assert search.requests == 8
    assert sum("retries_ceiling" in record.message for record in caplog.records) == 1


def test_a_call_cannot_raise_its_retries_past_the_ceiling(stage: Open) -> None:
    """The ceiling holds for a tool's and a call's own rows too."""
    it = stage()
    search = it.tool("search", connect_timeout(), read_only=True)
    it.call("search", policy={"network": {"retries_read": 9}})
    assert search.requests == 4


# Told waits


@pytest.mark.parametrize("jitter", [0.0, None], ids=["exact", "jitter"])
def test_a_told_wait_is_a_floor(stage: Open, jitter: float | None) -> None:
    """E5: after Retry-After: 3 the second request comes at 3.0 to 3.3 s, never before."""
    it = stage(jitter=jitter)
    search = it.tool("search", too_many(3), "found", read_only=True)
    result = it.call("search")
    assert result.success
    assert search.requests == 2
    assert 3.0 <= search.times[1] <= 3.3
    assert jitter is None or search.times[1] == 3.0


def test_a_told_wait_above_the_ceiling_is_handed_back(stage: Open) -> None:
    """E6: Retry-After: 120 means one request, back at once, with the moment to come again."""
    it = stage()
    search = it.tool("search", too_many(120), read_only=True)
    result = it.call("search")
    assert search.times == [0]
    assert it.clock.monotonic() == 0
    assert result.stop_reason is StopReason.WAIT_TOO_LONG
    assert result.suggested_action is Action.RETRY_LATER
    assert result.retry_at == pytest.approx(it.clock.time() + 120)
    assert result.retriable


def test_a_limit_that_tells_no_wait_is_repeated_at_1_2_4(stage: Open) -> None:
    """E6: a 429 that tells nothing waits 1, 2, 4 s."""
    it = stage()
    search = it.tool("search", too_many(), read_only=True)
    it.call("search")
    assert search.times == [0, 1, 3, 7]


def test_a_write_is_repeated_after_a_limit(stage: Open) -> None:
    """A 429 refused the order before it acted: repeating cannot do it twice."""
    it = stage()
    order = it.tool("order", too_many(3), {"order": 1})
    assert it.call("order").success
    assert order.times == [0, 3]
    assert len(set(order.keys)) == 1


# Time


def test_the_deadline_is_looked_ahead(stage: Open) -> None:
    """A wait that would pass the deadline is not begun: the call comes back at once."""
    it = stage()
    search = it.tool("search", connect_timeout(), read_only=True)
    result = it.call("search", deadline=3)
    assert search.times == [0, 1]
    assert it.clock.monotonic() == 1
    assert result.stop_reason is StopReason.DEADLINE


def test_a_told_wait_past_the_deadline_is_handed_back(stage: Open) -> None:
    """A told wait beyond the deadline is not slept: `retry_at` says when."""
    it = stage()
    search = it.tool("search", too_many(20), read_only=True)
    result = it.call("search", deadline=10)
    assert search.times == [0]
    assert result.stop_reason is StopReason.DEADLINE
    assert result.retry_at == pytest.approx(it.clock.time() + 20)


def test_the_timeout_grows_after_a_read_timeout(stage: Open) -> None:
    """After each read timeout the next attempt may take 1.5 times as long."""
    it = stage()
    search = it.tool("search", After(10, read_timeout()), read_only=True, timeout=10.0)
    it.call("search")
    assert search.limits == [10, 15, 22.5, 33.75]


def test_the_grown_timeout_is_cut_by_the_deadline(stage: Open) -> None:
    """An attempt may never take longer than the time that is left."""
    it = stage()
    search = it.tool("search", After(4, read_timeout()), read_only=True, timeout=10.0)
    it.call("search", deadline=12)
    assert search.times == [0, 5, 11]
    assert search.limits == [10, 7, 1]


def test_a_run_shares_its_deadline(stage: Open) -> None:
    """The calls of a run have one deadline together; one that begins past it is not sent."""
    it = stage()
    step = it.tool("step", After(6, "done"), read_only=True)
    run = it.runtime.run(deadline=10)
    assert it.call_in(run, "step").success
    it.call_in(run, "step")
    late = it.call_in(run, "step")
    assert late.failure
    assert late.failure.code == "runtime.deadline"
    assert step.requests == 2
    assert late.sent == 0


# Identity and permission


def test_a_refusal_of_permission_stops_the_chain(stage: Open) -> None:
    """E7: a 403 in step 2 is asked once, without a refresh; steps 3 to 5 are not sent and say why."""
    refreshes = []
    it = stage()
    it.runtime.credential("shop", "old-secret-1", refresh=lambda: refreshes.append(1))
    steps = [
        it.tool(f"step_{n}", forbidden() if n == 2 else "done", credential="shop")
        for n in range(1, 6)
    ]
    run = it.runtime.run("chain")
    results = [it.call_in(run, f"step_{n}", call_id=f"c{n}") for n in range(1, 6)]
    assert [step.requests for step in steps] == [1, 1, 0, 0, 0]
    assert not refreshes
    assert results[1].suggested_action is Action.ABORT
    assert results[1].interrupts == "run"
    assert [r.failure.code for r in results[2:] if r.failure] == ["runtime.chain_aborted"] * 3
    assert all(r.suggested_action is Action.ABORT for r in results[1:])
    assert "step_2" in results[2].for_model()
    assert "auth.forbidden" in results[2].for_model()
    remedy = results[1].failure.remedy.lower() if results[1].failure else ""
    assert "scope" in remedy or "permission" in remedy


def test_a_refusal_about_one_object_is_an_answer(stage: Open) -> None:
    """A credential that worked with this tool in this run is sound: its 403 does not stop the chain."""
    it = stage()
    it.runtime.credential("shop", "secret-1")
    read = it.tool("read", "page", forbidden(), "page", credential="shop", read_only=True)
    run = it.runtime.run("chain")
    results = [it.call_in(run, "read", {"page": n}) for n in range(3)]
    assert [r.success for r in results] == [True, False, True]
    assert read.requests == 3


@pytest.mark.parametrize(("scope", "sent"), [("run", 0), ("credential", 1), ("", 2)])
def test_a_row_narrows_what_is_interrupted(stage: Open, scope: str, sent: int) -> None:
    """`interrupt`: the whole run, only calls to the same upstream and credential, or nothing."""
    it = stage({"auth": {"forbidden": {"interrupt": scope}}})
    it.runtime.credential("shop", "secret-1")
    it.tool("first", forbidden(), credential="shop", upstream="shop")
    same = it.tool("same", "done", credential="shop", upstream="shop")
    other = it.tool("other", "done", upstream="elsewhere")
    run = it.runtime.run("chain")
    for name in ("first", "same", "other"):
        it.call_in(run, name)
    assert same.requests + other.requests == sent
    assert other.requests == (scope != "run")


def test_calls_outside_of_a_run_do_not_stop_each_other(stage: Open) -> None:
    """There is no chain to interrupt where nobody began one."""
    it = stage()
    it.tool("read", forbidden(), "page", read_only=True)
    assert not it.call("read").success
    assert it.call("read").success


def test_an_expired_credential_is_renewed_once(stage: Open) -> None:
    """E8: 401 then success: two requests, one refresh, no wait."""
    it = stage()
    fresh = iter(["secret-2", "secret-3"])
    it.runtime.credential("shop", "secret-1", refresh=lambda: next(fresh))
    order = it.tool("order", expired_token(), "placed", credential="shop")
    result = it.call("order")
    assert result.value == "placed"
    assert order.times == [0, 0]
    assert next(fresh) == "secret-3"


def test_a_renewed_credential_that_fails_again_stops_the_chain(stage: Open) -> None:
    """E8: 401 after the refresh: two requests, one refresh, and the run is over."""
    refreshes = []
    it = stage()
    it.runtime.credential("shop", "secret-1", refresh=lambda: refreshes.append(1) or "secret-2")
    order = it.tool("order", expired_token(), credential="shop")
    run = it.runtime.run("chain")
    result = it.call_in(run, "order", call_id="c1")
    after = it.call_in(run, "order", {"other": 1}, call_id="c2")
    assert order.requests == 2
    assert len(refreshes) == 1
    assert result.suggested_action is Action.ABORT
    assert after.failure
    assert after.failure.code == "runtime.chain_aborted"


def test_without_a_refresher_a_dead_credential_is_asked_once(stage: Open) -> None:
    """No refresher: one request, and the operator is told."""
    it = stage()
    it.runtime.credential("shop", "secret-1")
    order = it.tool("order", expired_token(), credential="shop")
    result = it.call("order")
    assert order.requests == 1
    assert result.failure
    assert result.failure.fix_by is FixBy.OPERATOR


# Answers that no repetition changes


@pytest.mark.parametrize("read_only", [True, None])
def test_a_domain_refusal_is_an_answer(stage: Open, read_only: bool | None) -> None:
    """E9: too little money is one request, and the user's to solve; never "try again later"."""
    it = stage()
    pay = it.tool(
        "pay",
        ToolError("账户余额不足", code="business.insufficient_balance", effect="rejected"),
        read_only=read_only,
    )
    result = it.call("pay")
    assert pay.requests == 1
    assert result.suggested_action is Action.ASK_USER
    assert result.stop_reason is StopReason.NOT_RETRIABLE
    assert "余额" in result.for_user("zh")
    assert "稍后重试" not in result.for_user("zh")
    assert "later" not in result.for_model("en").lower()


@pytest.mark.parametrize(
    ("failure", "action"),
    [
        (forbidden(), Action.ABORT),
        (
            ToolError(
                "size: must be one of S, M",
                code="invalid_request.parameter",
                effect="rejected",
                http_status=422,
            ),
            Action.ASK_MODEL,
        ),
        (ToolError("余额不足", code="business.insufficient_balance", effect="rejected"), Action.ASK_USER),
    ],
    ids=["403", "422", "balance"],
)  # fmt: skip
def test_classic_mistakes(stage: Open, failure: ToolError, action: Action) -> None:
    """E34: a 403 is no timeout, a 422 no domain refusal, too little money no network fault."""
    it = stage()
    tool = it.tool("tool", failure)
    result = it.call("tool")
    assert tool.requests == 1
    assert result.suggested_action is action
    assert not result.retriable
    assert result.retry_at is None


def test_what_nobody_understands_is_repeated_only_on_a_read(stage: Open) -> None:
    """E31: an unknown failure: none on a write, one retry after 1 s on a declared read."""
    it = stage()
    unknown = ToolError("Something went wrong", code="unknown.unclassified")
    read = it.tool("read", unknown, read_only=True)
    write = it.tool("write", unknown)
    assert it.call("read").suggested_action is Action.ASK_MODEL
    assert read.times == [0, 1]
    written = it.call("write")
    assert write.requests == 1
    assert written.failure
    assert written.failure.category is Category.UNKNOWN
    assert written.stop_reason is StopReason.UNSAFE_EFFECT


def test_security_makes_exactly_one_connection(stage: Open) -> None:
    """E22: a certificate that cannot be trusted is not asked twice."""
    it = stage()
    tool = it.tool(
        "read",
        ToolError("expired", code="security.certificate_expired", effect="not_sent"),
        read_only=True,
    )
    result = it.call("read")
    assert tool.requests == 1
    assert result.suggested_action is Action.ABORT


def test_the_same_wrong_form_twice_means_the_format_changed(stage: Open) -> None:
    """E17: HTML for JSON is repeated once on a read; a second time alike ends it, for the operator."""
    page = ToolError(
        "expected JSON object, got text/html", code="parsing.html_instead_of_json", effect="applied"
    )
    it = stage({"parsing": {"retries_read": 3}})
    read = it.tool("read", page, read_only=True)
    result = it.call("read")
    assert read.times == [0, 1]
    assert result.stop_reason is StopReason.SAME_FAILURE
    assert result.failure
    assert result.failure.fix_by is FixBy.OPERATOR


def test_an_unreadable_answer_to_a_write_is_verified(stage: Open) -> None:
    """E17: on a write the effect is applied: no retry, and verify tells what came of it."""
    page = ToolError("got text/html", code="parsing.html_instead_of_json", effect="applied")
    it = stage()
    order = it.tool("order", page, verify=lambda arguments: {"order": 7})
    result = it.call("order")
    assert order.requests == 1
    assert result.value == {"order": 7}
    assert result.verified is True


def test_three_failures_are_kept_apart(stage: Open) -> None:
    """E19: read timeout, 502 page, 200 page: three attempts with a code each, in one result."""
    it = stage()
    it.tool(
        "read",
        read_timeout(),
        ToolError("bad gateway", code="network.bad_gateway", http_status=502),
        ToolError("a page", code="parsing.html_instead_of_json", effect="applied"),
        read_only=True,
    )
    result = it.call("read")
    codes = [a.failure.code for a in result.attempts if a.failure]
    assert codes[:3] == [
        "network.read_timeout",
        "network.bad_gateway",
        "parsing.html_instead_of_json",
    ]
    for code in codes[:3]:
        assert code.partition(".")[2] in result.for_model()


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
    it.tool("search", forbidden_read(), read_only=True, fallback=("cache",))
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


def forbidden_read() -> ToolError:
    return ToolError("gone", code="security.certificate_expired", effect="not_sent")


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


# Overrides


def test_rows_can_be_overridden_per_code(stage: Open) -> None:
    """A code's row changes columns of its category's row, and only for that code."""
    it = stage(
        {"network": {"connect_timeout": {"strategy": "fixed", "base": 7.0, "retries_read": 1}}}
    )
    one = it.tool("one", connect_timeout(), read_only=True)
    two = it.tool("two", read_timeout(), read_only=True)
    it.call("one")
    it.call("two")
    assert one.times == [0, 7]
    assert two.requests == 4


def test_rows_can_be_overridden_per_tool(stage: Open) -> None:
    """``[tools.NAME]`` holds for that tool, ``policy=`` of the tool itself wins over it."""
    it = stage(
        {"tools": {"one": {"server": {"retries_read": 1}}, "two": {"server": {"retries_read": 1}}}}
    )
    one = it.tool("one", server_error(), read_only=True)
    two = it.tool("two", server_error(), read_only=True, policy={"server": {"retries_read": 0}})
    three = it.tool("three", server_error(), read_only=True)
    for name in ("one", "two", "three"):
        it.call(name)
    assert [one.requests, two.requests, three.requests] == [2, 1, 3]


def test_rows_can_be_overridden_per_call(stage: Open) -> None:
    """``policy=`` of one call wins over all, for that call."""
    it = stage()
    one = it.tool("one", server_error(), read_only=True, policy={"server": {"retries_read": 1}})
    it.call("one", policy={"server": {"retries_read": 0}})
    assert one.requests == 1
    it.call("one")
    assert one.requests == 3


def test_rows_can_be_overridden_per_provider(stage: Open) -> None:
    """``[providers.NAME]`` holds for failures that this provider's profile explained."""
    body = {"error": {"code": "server_error", "type": "server_error", "message": "boom"}}
    it = stage({"providers": {"openai": {"server": {"retries_read": 0}}}})
    known = it.tool("known", body, read_only=True, profile="openai")
    other = it.tool("other", server_error(), read_only=True)
    failure = it.call("known").failure
    it.call("other")
    assert failure
    assert failure.provider == "openai"
    assert [known.requests, other.requests] == [1, 3]


def test_a_wrong_override_is_said_at_once(stage: Open) -> None:
    """A misspelt column is the caller's mistake: it raises, with what was meant."""
    it = stage()
    one = it.tool("one", server_error(), read_only=True)
    for wrong in ({"server": {"retrys": 1}}, {"sever": {"retries": 1}}, "default"):
        with pytest.raises(UsageError, match="policy="):
            it.call("one", policy=wrong)
    assert one.requests == 0
    with pytest.raises(UsageError, match="retries"):
        it.tool("two", server_error(), policy={"server": {"retrys": 1}})
    with pytest.raises(ConfigurationError):
        stage({"netwrok": {"retries": 1}})


# Repairs after a refusal


def test_a_named_fix_is_applied_once(stage: Open) -> None:
    """A refusal that names what is wrong is answered with one corrected request; a second goes to the user."""
    schema = {"type": "object", "properties": {"city_code": {"type": "string"}}}
    refusal = ToolError(
        "city_code must be 3 digits, got '12'",
        code="invalid_request.parameter",
        effect="rejected",
        http_status=400,
        details={"violations": [{"parameter": "city_code", "rule": "digits", "length": 3, "got": "12"}]},
    )  # fmt: skip
    it = stage()
    good = it.tool("good", refusal, "ok", schema=schema, repair="auto")
    bad = it.tool("bad", refusal, schema=schema, repair="auto")
    off = it.tool("off", refusal, schema=schema, repair="off")
    result = it.call("good", {"city_code": "12"})
    assert result.success
    assert [sent["city_code"] for sent in good.sent] == ["12", "012"]
    assert [repair.after for repair in result.repairs] == ["012"]
    assert it.call("bad", {"city_code": "12"}).suggested_action is Action.ASK_USER
    assert bad.requests == 2
    assert it.call("off", {"city_code": "12"}).suggested_action is Action.ASK_MODEL
    assert off.requests == 1


def test_a_refusal_about_what_was_not_sent_has_no_fix(stage: Open) -> None:
    """E11: a hint about a parameter that the call did not send: nothing is made up, the model is asked."""
    it = stage()
    tool = it.tool(
        "tool",
        ToolError(
            "city_code must be 3 digits",
            code="invalid_request.parameter",
            effect="rejected",
            details={"violations": [{"parameter": "city_code", "rule": "digits", "length": 3}]},
        ),
        schema={
            "type": "object",
            "properties": {"city_code": {"type": "string"}, "region": {"type": "string"}},
        },
        repair="auto",
    )
    result = it.call("tool", {"region": "north"})
    assert tool.sent == [{"region": "north"}]
    assert result.suggested_action is Action.ASK_MODEL
    assert result.repairs == ()


@pytest.mark.parametrize("answer", [True, False])
def test_a_guess_asks_first(stage: Open, answer: bool) -> None:
    """E10: `confirm` shows the edit; yes sends it once more, no sends nothing."""
    asked = []

    def confirm(tool: str, repairs: Any) -> bool:
        asked.extend((r.before, r.after, r.grade.value) for r in repairs)
        return answer

    it = stage(confirm=confirm)
    tool = it.tool(
        "tool",
        ToolError(
            "city_code must be 3 digits",
            code="invalid_request.parameter",
            effect="rejected",
            details={"violations": [{"parameter": "city_code", "rule": "digits", "length": 3}]},
        ),
        "ok",
        schema={"type": "object", "properties": {"city_code": {"type": "string"}}},
        repair="confirm",
    )
    result = it.call("tool", {"city_code": "12"})
    assert asked == [("12", "012", "guess")]
    assert result.success is answer
    assert tool.requests == (2 if answer else 1)


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
