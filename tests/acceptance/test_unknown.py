"""A failure that nobody knows (E31): no guess, no repeat of a write, one question to the advisor."""

import threading

import failwise
from failwise.testing import SteppingClock
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect, StopReason


def advised() -> None:
    """Wait until the advisor's threads are through."""
    for thread in threading.enumerate():
        if thread.name == "failwise-advisor":
            thread.join(5)


async def test_something_went_wrong_on_a_write() -> None:
    """No status, no words: unknown, no confidence, sent once, the advisor asked once; and what it says
    makes nothing safe to repeat."""
    asked: list[Failure] = []

    def ask(failure: Failure) -> str:
        asked.append(failure)
        return "network.connect_refused"

    runtime = failwise.Runtime(":memory:", advisor=ask, clock=SteppingClock())

    @runtime.tool()
    def order(number: int) -> str:
        raise RuntimeError("Something went wrong")

    codes = []
    for number in range(3):
        result = await runtime.call("order", {"number": number})
        advised()
        assert result.failure is not None
        codes.append(result.failure.code)
        assert (result.sent, result.stop_reason) == (1, StopReason.UNSAFE_EFFECT)
        assert result.failure.effect is Effect.UNKNOWN
        assert result.failure.confidence == 0.0
    assert codes == ["unknown.unclassified", *["network.connect_refused"] * 2]
    assert len(asked) == 1
    assert asked[0].message == "Something went wrong"
    runtime.close()


async def test_something_went_wrong_on_a_read() -> None:
    """A declared read is repeated once, after about a second; the advisor is asked once."""
    asked: list[Failure] = []
    clock = SteppingClock()
    runtime = failwise.Runtime(":memory:", advisor=asked.append, clock=clock, jitter=0)

    @runtime.tool(read_only=True)
    def look(number: int) -> str:
        raise RuntimeError("Something went wrong")

    for number in range(3):
        result = await runtime.call("look", {"number": number})
        advised()
        assert result.failure is not None
        assert result.failure.category is Category.UNKNOWN
        assert result.sent == 2
    assert clock.sleeps == [1.0] * 3
    assert len(asked) == 1
    runtime.close()
