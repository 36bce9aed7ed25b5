"""The world of the demonstration: a fault server, and a runtime that knows its tools."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failwise.tools.http import HttpTool

if TYPE_CHECKING:
    from failwise.faults import FaultServer, Tokens
    from failwise.faults.replies import Script
    from failwise.runtime.runtime import Runtime

READ_TIMEOUT = 0.5
"""Seconds without an answer after which a slow upstream is given up."""


class World:
    """What a scene prepares: routes on the server, tools on the runtime, secrets planted in both.

    A scene's paths begin with its name, which also names its upstream: no scene's circuit touches
    another's.
    """

    def __init__(self, server: "FaultServer", runtime: "Runtime") -> None:
        self.server, self.runtime = server, runtime
        self.planted: list[str] = []
        """Secrets that must be seen nowhere."""
        self.credentials: dict[str, Callable[[], str]] = {}

    def secret(self, prefix: str) -> str:
        """A secret made on the spot, to be planted where an upstream leaks it."""
        value = prefix + secrets.token_hex(16)
        self.planted.append(value)
        return value

    def get(
        self,
        name: str,
        path: str,
        replies: "Script | Sequence[Script]",
        properties: Mapping[str, Any] | None = None,
        *,
        at: str | None = None,
        tokens: "Tokens | None" = None,
        **options: Any,
    ) -> None:
        """A read: a route and the tool that asks it. `at`: another address than the plain one."""
        self._http(name, "GET", path, replies, properties, at, tokens, options)

    def post(
        self,
        name: str,
        path: str,
        replies: "Script | Sequence[Script]",
        properties: Mapping[str, Any] | None = None,
        *,
        at: str | None = None,
        tokens: "Tokens | None" = None,
        **options: Any,
    ) -> None:
        """A write: as `get`. Nothing is declared of it unless `options` do."""
        self._http(name, "POST", path, replies, properties, at, tokens, options)

    def _http(
        self,
        name: str,
        method: str,
        path: str,
        replies: "Script | Sequence[Script]",
        properties: Mapping[str, Any] | None,
        at: str | None,
        tokens: "Tokens | None",
        options: dict[str, Any],
    ) -> None:
        self.server.route(method, path, replies, tokens=tokens)
        schema = {
            "type": "object",
            "properties": dict(properties or {}),
            "required": list(properties or {}),
            "additionalProperties": False,
        }
        url = at if at is not None else self.server.url(path)
        options.setdefault("upstream", path.split("/")[1])
        self.runtime.add(HttpTool(name, method, url, schema=schema, **options))

    def credential(self, name: str, get: Callable[[], str], refresh: Callable[[], str]) -> None:
        self.credentials[name] = get
        self.runtime.credential(name, get, refresh=refresh)

    def requests(self, scene: str) -> int:
        """How many requests of a scene arrived."""
        return sum(1 for request in self.server.requests if request.path.split("/")[1] == scene)
