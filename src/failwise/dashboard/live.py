"""Live updates: one look at the journal a second for all viewers, and a line to each when it changed."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

EVERY: Final = 1.0
"""Seconds between two looks."""
QUIET: Final = 15.0
"""Seconds after which a line that says nothing keeps the connection alive."""
VIEWERS: Final = 500
"""Viewers that are told; more have to reload the page themselves."""


class Live:
    """`look` gives what is compared, may block, and is asked only while somebody watches."""

    def __init__(self, look: Callable[[], Any], every: float = EVERY) -> None:
        self._look = look
        self._every = every
        self._viewers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self.changes = 0

    @property
    def full(self) -> bool:
        """No further viewer can be told."""
        return len(self._viewers) >= VIEWERS

    async def lines(self) -> AsyncIterator[str]:
        """Server-sent events, for ever: ``change`` with a number that grows."""
        woken = asyncio.Event()
        self._viewers.add(woken)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch())
        try:
            yield f"retry: 5000\ndata: {json.dumps({'changes': self.changes})}\n\n"
            while True:
                try:
                    await asyncio.wait_for(woken.wait(), QUIET)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                woken.clear()
                yield f"event: change\ndata: {json.dumps({'changes': self.changes})}\n\n"
        finally:
            self._viewers.discard(woken)

    async def _watch(self) -> None:
        before = None
        while self._viewers:
            seen = before
            with contextlib.suppress(Exception):  # the pages themselves say what is wrong
                seen = await asyncio.get_running_loop().run_in_executor(None, self._look)
            if before is not None and seen != before:
                self.changes += 1
                for woken in tuple(self._viewers):
                    woken.set()
            before = seen
            await asyncio.sleep(self._every)
