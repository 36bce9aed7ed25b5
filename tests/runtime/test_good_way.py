"""The good way (a read that simply works, without the machine) is the machine's way, only shorter."""

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from failwise import Runtime, ToolError
from failwise.runtime.execution import Execution
from failwise.testing import SteppingClock, recorded
from failwise.vocabulary.spec import ToolSpec

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "day": {"type": "string", "format": "date"}},
    "required": ["n"],
}


class Signal(Exception):
    """Passes through."""


VALUES: list[Any] = [
    None,
    0,
    "",
    "fine",
    [],
    [1, 2],
    {},
    {"items": [1]},
    {"price": 500},
    {"ok": True, "items": []},
    {"ok": False, "error": "not_found"},
    {"error": None},
    {"error": {"code": "rate_limited", "message": "slow down"}},
    {"code": 10001, "msg": "账户余额不足"},
    {"errcode": 0, "data": 1},
    {"errors": [{"message": "no such field"}]},
    {"Response": {"Error": {"Code": "InternalError", "Message": "x"}}},
    [{"error": "x"}],
    "<!doctype html><html><title>Log in</title></html>",
    {"status": "error", "message": "boom"},
    (1, 2),
    b"bytes",
]

OUTCOMES = st.one_of(
    st.sampled_from(VALUES).map(lambda value: ("value", value)),
    st.sampled_from(
        ["network.connect_refused", "network.read_timeout", "server.internal", "auth.forbidden",
         "rate_limit.requests", "business.not_found", "tool.exception", "unknown.unclassified"]
    ).map(lambda code: ("code", code)),
    st.sampled_from([ValueError, KeyError, ConnectionResetError, TimeoutError, StopIteration]).map(
        lambda kind: ("raise", kind)
    ),
    st.just(("signal", None)),
    st.just(("hang", None)),
)  # fmt: skip

RAWS = st.sampled_from(
    ['{"n": 1}', '{"n": "1"}', {"n": 1, "day": "2024-1-1"}, "{n: 1}", '{"n": 1,}', "", "nonsense",
     '{"m": 1}', {"n": 2}, b'{"n": 3}']
)  # fmt: skip

PAUSES = st.sampled_from([0.0, 0.0, 0.0, 15.0, 45.0])
CALLS = st.lists(st.tuples(RAWS, st.booleans(), PAUSES), min_size=1, max_size=8)


def play(directory: Path, script: list[Any], calls: list[Any], options: dict[str, Any]) -> Any:
    """Run the calls over the script; everything that anybody could see of it."""
    clock, answers, sent = SteppingClock(), iter(script), []
    rt = Runtime(":memory:", clock=clock, passthrough=(Signal,))
    results = recorded(rt)

    def finish(kind: str, what: Any) -> Any:
        if kind == "value":
            return what
        if kind == "code":
            raise ToolError("as scripted", code=what, retry_after=2 if "rate" in what else None)
        raise Signal("ask") if kind == "signal" else what("as scripted")

    async def call(arguments: Any, context: Any) -> Any:
        sent.append((clock.monotonic(), dict(arguments), context.attempt, context.remaining))
        kind, what = next(answers, ("value", "end"))
        clock.advance(0.25)
        if options["suspends"]:
            await asyncio.sleep(0)
        if kind == "hang":
            await clock.expire()
        return finish(kind, what)

    def call_sync(arguments: Any, context: Any) -> Any:
        sent.append((clock.monotonic(), dict(arguments), context.attempt, context.remaining))
        kind, what = next(answers, ("value", "end"))
        return finish("value" if kind == "hang" else kind, what)

    rt.add(
        ToolSpec(
            "read",
            schema=SCHEMA,
            call_async=call if options["asynchronous"] else None,
            call=None if options["asynchronous"] else call_sync,
            thread=False,
            read_only=True,
            timeout=10.0,
            fallback_value=options["fallback"],
            repair=options["repair"],
        )
    )

    async def chain() -> list[str]:
        ends, run = [], rt.run("job")
        for number, (raw, truncated, pause) in enumerate(calls):
            clock.advance(pause)
            try:
                result = await run.call("read", raw, call_id=f"c{number}", truncated=truncated)
                ends.append(repr(result.value))
            except Signal:
                ends.append("signal")
        return ends

    ends = asyncio.run(chain())
    guards: Any = rt._guards
    rows = [tuple(row) for row in rt.journal.rows("SELECT * FROM calls ORDER BY id")]
    attempts = [tuple(row) for row in rt.journal.rows("SELECT * FROM attempts")]
    rt.close()
    seen = [r.to_dict() for r in results]
    return ends, seen, sent, rows, attempts, guards.statistics(), clock.sleeps


@settings(max_examples=150, deadline=None)
@given(
    st.lists(OUTCOMES, max_size=20),
    CALLS,
    st.fixed_dictionaries(
        {
            "asynchronous": st.booleans(),
            "suspends": st.booleans(),
            "fallback": st.sampled_from(["cached", None]),
            "repair": st.sampled_from(["confirm", "auto", "off"]),
        }
    ),
)
@example(  # a circuit opens, and its probes fail and succeed
    [("code", "network.connect_refused")] * 6
    + [("code", "network.read_timeout")]
    + [("value", 1), ("code", "server.internal")],
    [('{"n": 1}', False, pause) for pause in (0.0, 0.0, 45.0, 100.0, 0.0)],
    {"asynchronous": True, "suspends": False, "fallback": None, "repair": "auto"},
)
def test_with_and_without_the_good_way(
    script: list[Any], calls: list[Any], options: dict[str, Any]
) -> None:
    """Over random answers: the same results, requests, records, guards and sleeps, to the digit."""
    short = play(Path(), script, calls, options)
    with mock.patch.object(Execution, "straight", False):
        long = play(Path(), script, calls, options)
    assert repr(short) == repr(long)


def test_the_good_way_is_taken() -> None:
    """The property above compares two ways indeed: a plain read does not wake the machine."""
    rt = Runtime(":memory:")
    rt.add(ToolSpec("read", call=lambda arguments, context: 1, read_only=True, thread=False))
    with mock.patch.object(Execution, "machine", side_effect=AssertionError("the machine")):
        assert asyncio.run(rt.call("read", {})).value == 1
    rt.close()
