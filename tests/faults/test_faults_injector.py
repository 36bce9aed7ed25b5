"""Faults injected into plain functions."""

import inspect
import threading

import pytest

from failwise.faults import AfterCall, Passes, Returns, inject
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.spec import CallContext, ToolSpec


def test_calls_meet_the_faults_in_order_then_go_through() -> None:
    """Raised instance, raised class, a value, a lost answer, a call left alone, the end."""
    done = []

    def order(sku: str) -> str:
        """Place an order."""
        done.append(sku)
        return f"ordered {sku}"

    faulty = inject(
        order,
        [
            ConnectionResetError(104, "reset"),
            TimeoutError,
            Returns({"error": "busy"}),
            AfterCall(TimeoutError("lost")),
            Passes(),
        ],
    )
    with pytest.raises(ConnectionResetError, match="reset"):
        faulty("a")
    with pytest.raises(TimeoutError):
        faulty("b")
    assert faulty("c") == {"error": "busy"}  # type: ignore[comparison-overlap]
    assert done == []
    with pytest.raises(TimeoutError, match="lost"):
        faulty("d")
    assert done == ["d"]
    assert [faulty("e"), faulty("f")] == ["ordered e", "ordered f"]
    assert (faulty.__name__, faulty.__doc__) == ("order", "Place an order.")
    assert inspect.signature(faulty) == inspect.signature(order)


async def test_async_functions_stay_async() -> None:
    """The wrapped function is a coroutine function, with the same faults."""

    async def read() -> int:
        return 1

    faulty = inject(read, [ValueError("x"), Returns(2), AfterCall(KeyError("k"))])
    assert inspect.iscoroutinefunction(faulty)
    with pytest.raises(ValueError, match="x"):
        await faulty()
    assert await faulty() == 2
    with pytest.raises(KeyError):
        await faulty()
    assert await faulty() == 1


def test_an_outage_repeats_its_last_fault_without_piling_up_tracebacks() -> None:
    """`repeat_last`: the same exception every time, as short as on the first."""
    faulty = inject(len, [OSError("down")], repeat_last=True)
    depths = []
    for _ in range(5):
        with pytest.raises(OSError, match="down") as caught:
            faulty("abc")
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


def test_a_tool_specification_gets_faulty_calls() -> None:
    """The declarations stay; both ways of calling share one script."""
    spec = ToolSpec("add", call=lambda arguments, context: arguments["a"] + 1, read_only=True)
    faulty = inject(spec, [OSError("down")])
    assert (faulty.name, faulty.read_only) == ("add", True)
    assert faulty.call is not None
    with pytest.raises(OSError, match="down"):
        faulty.call({"a": 1}, CallContext())
    assert faulty.call({"a": 1}, CallContext()) == 2


def test_each_fault_is_met_once_however_many_threads_call() -> None:
    """A hundred faults, ten threads, two hundred calls: a hundred failures."""

    def nothing() -> None:
        pass

    faulty = inject(nothing, [OSError] * 100)
    failures = []

    def work() -> None:
        for _ in range(20):
            try:
                faulty()
            except OSError:
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 100


@pytest.mark.parametrize("wrong", ["timeout", int, None])
def test_what_is_no_fault_is_refused_at_once(wrong: object) -> None:
    """A bare value must be said as `Returns`."""
    with pytest.raises(UsageError):
        inject(len, [wrong])  # type: ignore[list-item]
    with pytest.raises(UsageError):
        inject(wrong and 3, [])  # type: ignore[type-var]
