"""Answers that no repetition changes, permission and credentials, what a row overrides: over all three drivers.

Time is virtual and jitter is off, so that every second can be compared. The marks E1, E2, ... are
the acceptance examples of the project.
"""

from typing import Any

import pytest

from failwise import Action, Category, FixBy, StopReason, ToolError, UsageError
from failwise.vocabulary.errors import ConfigurationError
from tests.machine.failures import (
    connect_timeout,
    expired_token,
    forbidden,
    read_timeout,
    server_error,
)
from tests.machine.stages import Open

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
