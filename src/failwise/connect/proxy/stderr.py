"""What a server wrote to its standard error last: often the only text that says why it ended."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final, TextIO

_KEPT: Final = 8_192
_CHUNK: Final = 4_096


class Stderr:
    """Keeps the last 8 KiB of what comes, over all of a server's starts."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def opened(self) -> Iterator[TextIO]:
        """A file to give to a process. A thread reads the other end until the last writer is gone."""
        reading, writing = os.pipe()
        thread = threading.Thread(
            target=self._read, args=(reading,), name="failwise-mcp-stderr", daemon=True
        )
        thread.start()
        with os.fdopen(writing, "w") as file:
            yield file

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                with self._lock:
                    self._chunks.append(chunk)
                    self._size += len(chunk)
                    while self._size - len(self._chunks[0]) >= _KEPT:
                        self._size -= len(self._chunks.popleft())

    def tail(self, length: int) -> str:
        """The last lines, redacted, at most `length` characters; empty where nothing was written."""
        with self._lock:
            text = b"".join(self._chunks).decode("utf-8", "replace")
        if not text.strip():
            return ""
        from failwise.redaction import default

        return default().text(text).strip()[-length:]
