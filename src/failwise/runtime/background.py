"""One event loop in a thread of its own, and one pool of threads, per process; both on first need.

The loop runs async tools and callbacks for callers without a loop: it works inside a notebook and
keeps connection pools alive between calls. After a fork the child makes its own.
"""

import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

THREADS = 256
"""Sync tools that may run at once; a tool past its time limit keeps its thread."""


LOOP_THREAD = "failwise-loop"


class _Background:
    """What this process has started."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Threads do not follow a fork: the child starts its own."""
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.pool: ThreadPoolExecutor | None = None


_here = _Background()


def loop() -> "asyncio.AbstractEventLoop":
    """The background loop, started on first need."""
    with _here.lock:
        if _here.loop is None:
            import asyncio

            _here.loop = asyncio.new_event_loop()
            threading.Thread(target=_here.loop.run_forever, name=LOOP_THREAD, daemon=True).start()
        return _here.loop


def submit(coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
    """Run a coroutine on the background loop; called on that very loop, on one of its own."""
    import asyncio

    if threading.current_thread().name == LOOP_THREAD:
        # Whoever blocks this loop to wait for it would wait for ever.
        return in_thread(asyncio.run, coroutine)
    return asyncio.run_coroutine_threadsafe(coroutine, loop())


def pool() -> "ThreadPoolExecutor":
    """The pool that sync tools run in, started on first need."""
    with _here.lock:
        if _here.pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _here.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="failwise-tool")
        return _here.pool


def in_thread(function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
    """Run a function in the pool, with the caller's context variables."""
    return pool().submit(contextvars.copy_context().run, _contained, function, arguments)


def _contained(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except StopIteration as error:
        # An asyncio future cannot carry it: whoever waits would wait for ever.
        raise RuntimeError("a function raised StopIteration") from error


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_here.forget)
