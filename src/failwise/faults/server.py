"""`FaultServer`: a real HTTP and HTTPS server on loopback that fails exactly as it is told."""

import logging
import re
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from failwise.faults.ledger import Entry, Keys, Ledger, Tokens
from failwise.faults.listener import HOST, Listener
from failwise.faults.replies import Effect, Fault, Reply, Script
from failwise.faults.requests import Request
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    import ssl

    from failwise.faults.peers import Certificates, Peer

_log = logging.getLogger("failwise")

_REQUESTS_KEPT = 10_000

_NAME = re.compile(r"\{(\w{1,64})\}")


class _Route:
    """A method and path with its script, and where it stands in it."""

    def __init__(
        self, method: str, path: str, script: list[Script], tokens: Tokens | None, keyed: bool
    ) -> None:
        self.method = method
        self.path = path
        self.tokens = tokens
        self.keys = Keys() if keyed else None
        self._script = script
        self._lock = threading.Lock()
        self._number = 0
        literal = [re.escape(part) for part in _NAME.split(path)]
        names = _NAME.findall(path)
        for index, name in enumerate(names):
            literal[2 * index + 1] = f"(?P<{name}>[^/]+)"
        self._pattern = re.compile("".join(literal))

    def match(self, path: str) -> Mapping[str, str] | None:
        found = self._pattern.fullmatch(path)
        return found.groupdict() if found else None

    def next(self, request: Request) -> Reply:
        with self._lock:
            self._number += 1
            number = self._number
        entry = self._script[min(number, len(self._script)) - 1]
        reply = entry if isinstance(entry, Reply) else entry(request, number)
        if not isinstance(reply, Reply):
            raise TypeError(f"{entry!r} gave {reply!r}, not a Reply")
        return reply


class FaultServer:
    """An upstream for tests and demonstrations: real sockets, real TLS, scripted misbehaviour.

    ```python
    with FaultServer() as server:
        server.route("GET", "/search", [Fault.status(502), Fault.json({"items": []})])
        httpx.get(server.url("/search"))        # 502, an HTML page
        httpx.get(server.url("/search"))        # 200, and so on: the last reply repeats
        assert server.count("/search") == 2
    ```

    Also ``async with``. It listens on 127.0.0.1 only, on ports the system chooses; listeners start
    when first asked for (`url`, `tls`). Everything ends with the block: threads, connections, files.
    Requests are bounded: 64 KiB of headers (431), 1 MiB of body (413), `connections` open at once
    (one more is closed). The last 10,000 requests are kept.
    """

    def __init__(self, *, host: str = HOST, connections: int = 256) -> None:
        if host != HOST:
            raise UsageError(f"FaultServer(host={host!r}): it serves {HOST} only, never a network")
        self.ledger = Ledger()
        """The effects that were really done."""
        self._most = connections
        self._lock = threading.RLock()
        self._running = False
        self._routes: list[_Route] = []
        self._requests: deque[Request] = deque(maxlen=_REQUESTS_KEPT)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._listeners: dict[str, Listener] = {}
        self._certificates: Certificates | None = None
        self._refused: socket.socket | None = None
        self._landing: set[threading.Timer] = set()

    # Life

    def __enter__(self) -> "FaultServer":
        self._running = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> "FaultServer":
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Stop everything; effects still to land are dropped. May be called twice."""
        with self._lock:
            self._running = False
            listeners, self._listeners = self._listeners, {}
            landing, self._landing = self._landing, set()
            certificates, self._certificates = self._certificates, None
            refused, self._refused = self._refused, None
        for timer in landing:
            timer.cancel()
        for listener in listeners.values():
            listener.close()
        for timer in landing:
            timer.join(5)
        if refused is not None:
            refused.close()
        if certificates is not None:
            certificates.close()

    # What it is told

    def route(
        self,
        method: str,
        path: str,
        replies: Script | Sequence[Script],
        *,
        tokens: Tokens | None = None,
        honours_key: bool = False,
    ) -> None:
        """Say what happens to requests for this method and path, one entry each, the last for ever.

        `path` may hold ``{names}`` for one segment each. An entry is a `Reply` (see `Fault`) or a
        function of the request and its number. With `tokens`, requests without a valid bearer token
        get 401 and the script does not move. With `honours_key`, the Idempotency-Key header holds:
        an effect happens once for a key, and a repeated request gets its first sound answer again.
        Routing the same method and path again replaces its script.
        """
        script = list(replies) if isinstance(replies, Sequence) else [replies]
        if not script:
            raise UsageError(f"route({method!r}, {path!r}): give at least one reply")
        for entry in script:
            if not isinstance(entry, Reply) and not callable(entry):
                raise UsageError(f"route({path!r}): {entry!r} is neither a Reply nor a function")
        if not path.startswith("/"):
            raise UsageError(f"route({path!r}): a path begins with a slash")
        route = _Route(method.upper(), path, script, tokens, honours_key)
        with self._lock:
            place = (route.method, route.path)
            self._routes = [old for old in self._routes if (old.method, old.path) != place]
            self._routes.append(route)

    # Where it is

    def url(self, path: str = "") -> str:
        """The address of the plain HTTP listener, with `path`."""
        return f"http://{HOST}:{self._listener('http').port}{path}"

    def tls(self, peer: "Peer" = "good", path: str = "") -> str:
        """The address of an HTTPS listener with the same routes behind it.

        ``good``: right in everything, for clients that trust `ca_file`. Wrong in one thing each:
        ``expired`` (five days ago), ``not_yet_valid``, ``wrong_host``, ``by_address`` (the
        certificate names localhost, the address does not), ``self_signed``, ``unknown_root``,
        ``missing_intermediate``; ``intercepted`` (the authority of an intercepting proxy signed);
        ``wrong_purpose`` (for clients only), ``weak_key`` (RSA of 1024 bits); ``client_certificate``
        (it wants one), ``old_protocol`` (TLS 1.1 at most).
        """
        host = HOST if peer == "by_address" else "localhost"
        return f"https://{host}:{self._listener(peer).port}{path}"

    @property
    def proxy_url(self) -> str:
        """The address of an HTTP proxy that breaks TLS open, as company proxies do.

        It answers ``CONNECT`` for any host, and then speaks TLS in that host's name with a
        certificate of its own authority; behind it are the same routes. Its connections count as
        ``proxy``.
        """
        return f"http://{HOST}:{self._listener('proxy').port}"

    @property
    def ca_file(self) -> str:
        """Path of the trusted root, PEM; removed at the end of the block."""
        return self._authority().root_file

    @property
    def refused_url(self) -> str:
        """An address where nobody listens: the connection is refused."""
        with self._lock:
            self._must_run()
            if self._refused is None:
                # Bound, never listening: refused, and nobody else can get the port.
                self._refused = socket.socket()
                self._refused.bind((HOST, 0))
            return f"http://{HOST}:{self._refused.getsockname()[1]}"

    # What it saw

    @property
    def requests(self) -> list[Request]:
        """The last requests, oldest first."""
        with self._lock:
            return list(self._requests)

    def count(self, path: str | None = None, method: str | None = None) -> int:
        """How many requests came for this path (as sent, without its query), or in all."""
        with self._lock:
            return sum(
                number
                for (seen_method, seen_path), number in self._counts.items()
                if path in (None, seen_path) and method in (None, seen_method)
            )

    def connections(self, listener: str = "http") -> int:
        """How many connections were accepted: ``http``, or the kind of TLS peer."""
        with self._lock:
            found = self._listeners.get(listener)
        return found.accepted if found is not None else 0

    # Inside

    def _must_run(self) -> None:
        if not self._running:
            raise UsageError("the fault server is not running: use `with FaultServer() as server:`")

    def _authority(self) -> "Certificates":
        with self._lock:
            self._must_run()
            if self._certificates is None:
                from failwise.faults.peers import Certificates

                self._certificates = Certificates()
            return self._certificates

    def _listener(self, name: str) -> Listener:
        with self._lock:
            self._must_run()
            if name not in self._listeners:
                self._listeners[name] = Listener(
                    name, self._answer, most=self._most, secured=self._secured(name)
                )
            return self._listeners[name]

    def _secured(self, name: str) -> "Callable[[socket.socket], ssl.SSLContext | None] | None":
        """How a listener's connections are secured: not, by one context, or per CONNECT request."""
        if name == "http":
            return None
        if name == "proxy":
            from failwise.faults.proxy import Tunnel

            return Tunnel(self._authority().intercepting)
        context = self._authority().context(name)
        return lambda plain: context

    def _answer(self, request: Request) -> Reply:
        """Called by a connection's thread for each request."""
        found = self._find(request)
        if not isinstance(found, Reply):
            request = replace(request, parameters=found[1])
        with self._lock:
            self._requests.append(request)
            self._counts[request.method, request.path] += 1
        if isinstance(found, Reply):
            return found
        route = found[0]
        problem = route.tokens.problem(request.bearer) if route.tokens else None
        if problem is not None:
            challenge = f'Bearer error="invalid_token", error_description="{problem}"'
            return Fault.json(
                {"error": "invalid_token", "error_description": problem},
                401,
                headers={"WWW-Authenticate": challenge},
            )
        keys = route.keys
        if keys is not None:
            if keys.conflict(request):
                reason = "This idempotency key was used with another body"
                return Fault.json({"error": "idempotency_key_reused", "message": reason}, 422)
            again = keys.answer(request)
            if again is not None:
                return again
        try:
            reply = route.next(request)
        except Exception as error:
            _log.exception("a route's function failed: %s %s", route.method, route.path)
            return Fault.json({"error": "fault_server", "message": repr(error)}, 500)
        if reply.effect is not None and (keys is None or keys.first(request, reply.effect)):
            self._do(reply.effect, request)
        if keys is not None:
            keys.keep(request, reply)
        return reply

    def _find(self, request: Request) -> tuple[_Route, Mapping[str, str]] | Reply:
        """The route with the values of its names; or what is said where there is none."""
        with self._lock:
            routes = self._routes
        allowed = []
        for route in routes:
            parameters = route.match(request.path)
            if parameters is None:
                continue
            if route.method == request.method:
                return route, parameters
            allowed.append(route.method)
        if not allowed:
            return Fault.json({"error": "no such route"}, 404)
        return Fault.json({"error": "wrong method"}, 405, headers={"Allow": ", ".join(allowed)})

    def _do(self, effect: Effect, request: Request) -> None:
        data = request.json if effect.data is None else effect.data

        def land() -> None:
            self.ledger.add(Entry(effect.name, request.idempotency_key, data, time.monotonic()))
            with self._lock:
                self._landing.discard(timer)

        timer = threading.Timer(effect.after, land)
        timer.daemon = True
        if effect.after <= 0:
            land()
            return
        with self._lock:
            if self._running:
                self._landing.add(timer)
                timer.start()
