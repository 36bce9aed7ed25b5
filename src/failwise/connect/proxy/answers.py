"""What came over HTTP for each call: the SDK folds every status into one error, this keeps it.

A call is found by an id of ours in its ``_meta``, which the request's body carries.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

CALL: Final = "dev.failwise/call"
"""The key in ``_meta`` by which a request is found again."""

_BODY_SECONDS: Final = 5.0
_MOST: Final = 10_000


class UpstreamStatus(Exception):
    """An upstream answered with an HTTP status instead of a message. `response` is what it sent."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.status_code: int = response.status_code
        super().__init__(f"HTTP {response.status_code} {response.reason_phrase}".strip())


class HttpAnswers:
    """The refusals and broken connections of one upstream's requests, by call."""

    def __init__(self, forward_authorization: bool) -> None:
        self._forward = forward_authorization
        self._found: dict[str, Any] = {}
        self._tokens: dict[str, str] = {}

    def expect(self, call: str, authorization: str | None) -> None:
        """A request of this call is about to go; the host's token goes with it where that is wanted."""
        if self._forward and authorization:
            self._tokens[call] = authorization

    def take(self, call: str) -> Any:
        """What came for a call instead of its answer: a response, an exception, or None."""
        self._tokens.pop(call, None)
        return self._found.pop(call, None)

    async def transport(self, stack: AsyncExitStack, url: str, headers: Mapping[str, str]) -> Any:
        """The MCP transport to `url`, watched."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        answers = self

        class Watched(httpx2.AsyncHTTPTransport):
            async def handle_async_request(self, request: Any) -> Any:
                call = _call_of(request)
                if call is not None and call in answers._tokens:
                    request.headers["authorization"] = answers._tokens[call]
                try:
                    response = await super().handle_async_request(request)
                except Exception as error:
                    answers._keep(call, error)
                    raise
                if call is not None and response.status_code >= 400:
                    response.request = request
                    try:
                        async with asyncio.timeout(_BODY_SECONDS):
                            await response.aread()
                    except Exception:
                        await response.aclose()
                        response = httpx2.Response(
                            response.status_code, headers=response.headers, request=request
                        )
                    answers._keep(call, response)
                return response

        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                transport=Watched(),
                headers=dict(headers),
                timeout=httpx2.Timeout(30.0, read=None),
                follow_redirects=False,
            )
        )
        return streamable_http_client(url, http_client=client)

    def _keep(self, call: str | None, what: Any) -> None:
        if call is not None:
            while len(self._found) >= _MOST:
                del self._found[next(iter(self._found))]
            self._found[call] = what


def _call_of(request: Any) -> str | None:
    """The id of ours in a request's body."""
    if request.method != "POST":
        return None
    try:
        meta = json.loads(request.content)["params"]["_meta"]
        call = meta.get(CALL)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        return None
    return call if isinstance(call, str) else None
