"""Bodies of HTTP messages, as much as is needed: of a request for its record, of a refusal as evidence."""

import json
from collections.abc import Mapping
from typing import Any, Final

from failwise.tools.answer import HttpAnswer

BEGINNING: Final = 65_536
"""Bytes of a refusal's body that are read before the answer is handed on."""
READING_SECONDS: Final = 5.0
"""How long reading them may take."""
_BODY_KEPT: Final = 16_384


def recorded(content: bytes | None, replayable: bool) -> Any:
    """A request's body for the record of its claim: JSON as data, else its digest and length."""
    import hashlib

    if content is None:
        return None if replayable else "(a stream)"
    if len(content) <= _BODY_KEPT:
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            pass
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def refusal(
    status: int, headers: Mapping[str, str], content: bytes, method: str, url: str, *, raw: bool
) -> HttpAnswer:
    """A refusal as evidence. `raw`: the content is as it came, and may be compressed."""
    if raw and content:
        coding = next((v for k, v in headers.items() if k.lower() == "content-encoding"), "")
        content = unpacked(content, coding)
    return HttpAnswer(status, headers, content, method=method, url=url)


def unpacked(content: bytes, coding: str) -> bytes:
    """The beginning of a body without its compression, bounded; empty where it cannot be undone."""
    import zlib

    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return content
    if coding not in ("gzip", "x-gzip", "deflate"):
        return b""
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # deflate comes with and without a head
        try:
            return zlib.decompressobj(window).decompress(content, BEGINNING)
        except zlib.error:
            continue
    return b""
