"""The hosts in front of the proxy: whose effects belong together, and who is told of changed lists."""

import hashlib
from typing import TYPE_CHECKING, Any, Final

from failwise.runtime.run import LooseRun

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

_MOST: Final = 10_000


class Host:
    """One host. `run` holds its open effects together; nothing in it is interrupted. `session` is
    where a handshake-era host listens. `connection` is kept so that its identity is nobody else's."""

    __slots__ = ("connection", "run", "session")

    def __init__(self, run: LooseRun, session: Any, connection: Any) -> None:
        self.run, self.session, self.connection = run, session, connection


class Hosts:
    """Hosts by connection (handshake era), or by what they say of themselves with each request."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._hosts: dict[Any, Host] = {}

    def of(self, context: Any) -> Host:
        """The host a request came from."""
        connection, session = getattr(context.session, "_connection", context.session), None
        request = getattr(context, "request", None)
        if _stands_alone(context, request):
            key: Any = _said(request)
        else:
            key, session = id(connection), context.session
        host = self._hosts.get(key)
        if host is None:
            while len(self._hosts) >= _MOST:
                del self._hosts[next(iter(self._hosts))]
            run = LooseRun(self._runtime, self._runtime._new_id("mcp-host"), None, {})
            host = self._hosts[key] = Host(run, session, connection)
        return host

    def to_tell(self) -> list[Host]:
        """Those that are told of changed lists on the connection that they opened."""
        return [host for host in self._hosts.values() if host.session is not None]

    def forget(self, host: Host) -> None:
        """It has hung up."""
        self._hosts.pop(id(host.connection), None)


def _stands_alone(context: Any, request: Any) -> bool:
    """No connection holds this request and the host's next together: the modern era has none, and a
    stateless server makes one for each."""
    version = getattr(context, "protocol_version", None)
    if version is not None:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if version in MODERN_PROTOCOL_VERSIONS:
            return True
    headers = getattr(request, "headers", None)
    return headers is not None and "mcp-session-id" not in headers


def _said(request: Any) -> str:
    """Hosts without a connection of their own are told apart by token and program; over stdio there
    is one."""
    headers = getattr(request, "headers", None)
    if headers is None:
        return ""
    said = f"{headers.get('authorization', '')}\0{headers.get('user-agent', '')}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()
