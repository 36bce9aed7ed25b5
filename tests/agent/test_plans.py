"""`run.plan`: calls that need each other's results."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import failwise
from failwise.testing import recorded
from failwise.vocabulary.errors import UsageError


@pytest.fixture
def tools(rt: failwise.Runtime) -> failwise.Runtime:
    @rt.tool(read_only=True)
    async def find(name: str) -> dict[str, Any]:
        """Find."""
        if name == "nobody":
            raise failwise.ToolError(
                "no such customer", code="business.not_found", effect="rejected", transient=False
            )
        return {"id": f"id-{name}", "tags": ["a", {"b/c": 7}]}

    @rt.tool
    async def order(customer: str, tag: Any = None) -> dict[str, Any]:
        """Order."""
        return {"order": f"o-{customer}", "tag": tag}

    return rt


def step(name: str, tool: Any, /, after: Any = (), **arguments: Any) -> dict[str, Any]:
    return {"id": name, "tool": tool, "arguments": arguments, "after": after}


def ref(path: str) -> dict[str, str]:
    return {"$ref": f"#/{path}"}


async def test_results_flow_from_step_to_step(tools: failwise.Runtime) -> None:
    """References are followed into values, whole or in part; results keep the order of the steps."""
    async with tools.run("plan-1") as run:
        results = await run.plan(
            [
                step("second", "order", customer=ref("first/id"), tag=ref("first/tags/1/b~1c")),
                step("first", "find", name="Ada"),
                step("third", "order", customer=ref("second/order"), tag=ref("first")),
            ]
        )
    assert [r.call_id for r in results] == ["second", "first", "third"]
    assert results[0].value == {"order": "o-id-Ada", "tag": 7}
    assert results[2].value["order"] == "o-o-id-Ada"
    assert results[2].value["tag"]["id"] == "id-Ada"


async def test_what_a_failure_made_impossible_is_skipped_and_says_why(
    tools: failwise.Runtime,
) -> None:
    """Dependents are not sent, name the first cause, and are recorded; everything else is done."""
    kept = recorded(tools)
    async with tools.run("plan-2") as run:
        lost, near, far, other = await run.plan(
            [
                step("lost", "find", name="nobody"),
                step("near", "order", customer=ref("lost/id")),
                step("far", "order", after="near", customer="x"),
                step("other", "find", name="Ada"),
            ]
        )
    assert (lost.success, other.success) == (False, True)
    for skipped in (near, far):
        assert skipped.failure is not None
        assert (skipped.failure.code, skipped.sent) == ("runtime.step_skipped", 0)
        cause = skipped.failure.detail("cause")
        assert cause == {"step": "lost", "tool": "find", "code": "business.not_found"}
        assert skipped in kept
    assert "step 'lost' (find) failed with business.not_found" in near.failure.message
    assert "Check first: find business.not_found." in far.for_model()
    assert "请先检查：find business.not_found。" in far.for_model("zh")


async def test_a_value_without_what_is_referred_to_skips_the_step(tools: failwise.Runtime) -> None:
    """The answer came, and does not hold it: nothing is sent with a hole in it."""
    async with tools.run("plan-3") as run:
        _, missing = await run.plan(
            [
                step("first", "find", name="Ada"),
                step("missing", "order", customer=ref("first/email")),
            ]
        )
    assert missing.failure is not None
    assert "nothing at #/first/email" in missing.failure.message


async def test_independent_steps_run_at_once_within_the_limit(rt: failwise.Runtime) -> None:
    """Each goes as soon as it can; `limit` bounds how many at once."""
    running = [0, 0]

    @rt.tool(read_only=True)
    async def work() -> None:
        """Works."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.005)
        running[0] -= 1

    async with rt.run() as run:
        await run.plan([step(f"s{n}", work) for n in range(6)], limit=3)
    assert running[1] == 3


def test_the_sync_twin_gives_the_same(tools: failwise.Runtime) -> None:
    """Level by level, in threads."""
    with tools.run("plan-4") as run:
        results = run.plan_sync(
            [
                step("a", "find", name="Ada"),
                step("b", "order", customer=ref("a/id")),
                step("c", "find", name="nobody"),
                step("d", "order", customer=ref("c/id")),
            ]
        )
    assert [r.success for r in results] == [True, True, False, False]
    assert results[1].value == {"order": "o-id-Ada", "tag": None}


async def test_a_plan_that_stops_skips_and_aborts(tools: failwise.Runtime) -> None:
    """A dead credential aborts what is left, as in any run."""

    @tools.tool(read_only=True)
    async def account() -> None:
        """Fails for good."""
        raise failwise.ToolError(
            "revoked", code="auth.account_disabled", effect="rejected", transient=False
        )

    async with tools.run() as run:
        _, after = await run.plan(
            [step("dead", account), step("after", "find", after=(), name="Ada")], limit=1
        )
    assert after.failure is not None
    assert after.failure.code == "runtime.chain_aborted"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("text", "give a list of steps"),
        ([{"tool": "find"}], "is no step"),
        ([step("a", "find"), step("a", "find")], "two steps are called 'a'"),
        ([step("a", "find", name=ref("b/id"))], "refers to 'b'; steps are a"),
        ([step("a", "find", after="b"), step("b", "find", after="a")], "wait for each other: a, b"),
        ([step("a", "find", name={"$ref": "b/id"})], "say '#/STEP'"),
        ([{"id": "a", "tool": "find", "argument": {}}], "unknown key 'argument'"),
        ([{"id": "a", "tool": "find", "arguments": "{}"}], "give a mapping"),
    ],
)
async def test_plans_that_cannot_work_are_refused_before_anything_is_sent(
    tools: failwise.Runtime, steps: Any, said: str
) -> None:
    """Each mistake is named with what to say instead; no call was made."""
    kept = recorded(tools)
    async with tools.run() as run:
        with pytest.raises(UsageError, match=said):
            await run.plan(steps)
        with pytest.raises(UsageError):
            run.plan_sync([step("a", "find", name="x")], limit=0)
    assert kept == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_fails_exactly_what_needs_it_is_skipped(data: st.DataObject) -> None:
    """Any plan without cycles: a step runs if and only if all that it needs, at any distance, worked."""
    count = data.draw(st.integers(1, 12))
    bad = data.draw(st.sets(st.integers(0, count - 1)))
    needs = [
        data.draw(st.sets(st.integers(0, n - 1), max_size=3)) if n else set() for n in range(count)
    ]
    with failwise.Runtime(":memory:", policy={"tool": {"retries_read": 0}}) as rt:

        @rt.tool(read_only=True, thread=False)
        def work(number: int, given: list[Any]) -> int:
            """Works, or not."""
            if number in bad:
                raise failwise.ToolError("no", code="business.refused", transient=False)
            return number

        order = data.draw(st.permutations(range(count)))
        steps = [
            step(f"s{n}", "work", number=n, given=[ref(f"s{m}") for m in sorted(needs[n])])
            for n in order
        ]
        with rt.run() as run:
            results = dict(zip(order, run.plan_sync(steps), strict=True))
    fine: dict[int, bool] = {}
    for n in range(count):
        possible = all(fine[m] for m in needs[n])
        fine[n] = possible and n not in bad
        assert results[n].success == fine[n]
        skipped = (
            results[n].failure is not None and results[n].failure.code == "runtime.step_skipped"
        )
        assert skipped == (not possible)
