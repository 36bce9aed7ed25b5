"""The file in which each running proxy says how its servers are doing: ``failwise mcp status`` reads it."""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from failwise.connect.proxy.front import Proxy

logger = logging.getLogger("failwise")

_EVERY: Final = 1.0


@contextlib.asynccontextmanager
async def reported(proxy: "Proxy", folder: Path) -> AsyncIterator[None]:
    """Keep the status file of this process fresh; take it away at the end."""
    path = folder / f"{os.getpid()}.json"

    async def report() -> None:
        before = ""
        while True:
            said = json.dumps(proxy.status(), ensure_ascii=False)
            if said != before:
                before = said
                try:
                    _write(path, said)
                except OSError as error:
                    logger.warning("the proxy's status cannot be kept: %s", error)
                    return
            await asyncio.sleep(_EVERY)

    task = asyncio.ensure_future(report())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        with contextlib.suppress(OSError):
            path.unlink()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    beside.replace(path)


def statuses(folder: Path) -> list[dict[str, Any]]:
    """The proxies that run now, as their status files tell; files of dead ones are removed."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            number = int(path.stem)
            data = json.loads(path.read_text("utf-8"))
            if _lives(number):
                found.append({"pid": number, **data})
            elif time.time() - path.stat().st_mtime > _EVERY:
                path.unlink()
        except (OSError, ValueError):
            continue
    return found


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
