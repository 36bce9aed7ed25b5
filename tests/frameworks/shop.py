"""The tools of every test here, as anybody writes them: plain functions with an HTTP client inside."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from failwise.faults import FaultServer

SECRET = "sk-live-4fGh7Kq2ZpW9xTb3VnR8sLd5"
"""Planted in an error; no model may read it."""

Function = Callable[..., Any]


class Shop:
    """Functions on one upstream, and how often each was run. `transport` may wrap the client's own."""

    def __init__(
        self, server: FaultServer, transport: Callable[[Any], Any] = lambda own: own
    ) -> None:
        self.server = server
        self._transport = transport
        self.ran: dict[str, int] = {}

    def _client(self, peer: str = "") -> httpx.Client:
        verify: Any = False
        if peer:
            import ssl

            verify = ssl.create_default_context(cafile=self.server.ca_file)
        return httpx.Client(
            transport=self._transport(httpx.HTTPTransport(verify=verify)), timeout=5
        )

    def _ask(self, method: str, path: str, *, peer: str = "", **options: Any) -> Any:
        url = self.server.tls(peer, path) if peer else self.server.url(path)  # type: ignore[arg-type]
        with self._client(peer) as client:
            answer = client.request(method, url, **options)
            answer.raise_for_status()
            return answer.json()

    def _counted(self, name: str) -> None:
        self.ran[name] = self.ran.get(name, 0) + 1

    def functions(self) -> dict[str, Function]:
        """All tools by name."""

        def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            self._counted("search")
            found = self._ask("GET", "/search", params={"query": query, "limit": limit})
            return dict(found)

        def create_order(sku: str, quantity: int = 1) -> dict[str, Any]:
            """Place an order."""
            self._counted("create_order")
            return dict(self._ask("POST", "/orders", json={"sku": sku, "quantity": quantity}))

        def profile(user: str) -> dict[str, Any]:
            """Look up a customer."""
            self._counted("profile")
            return dict(self._ask("GET", "/profile", params={"user": user}))

        def secure(query: str) -> dict[str, Any]:
            """Search over TLS."""
            self._counted("secure")
            return dict(self._ask("GET", "/search", peer="expired", params={"query": query}))

        def leak(query: str) -> dict[str, Any]:
            """Fail with a secret in the message."""
            self._counted("leak")
            raise RuntimeError(f"request with Authorization: Bearer {SECRET} was refused")

        def buggy(query: str) -> dict[str, Any]:
            """Has a slip in it."""
            self._counted("buggy")
            rows: Mapping[str, Any] = {}
            return {"found": rows["items"]}

        functions = (search, create_order, profile, secure, leak, buggy)
        return {function.__name__: function for function in functions}


READS = {"read_only": True}
DECLARED: Mapping[str, Mapping[str, Any]] = {
    "search": READS,
    "profile": READS,
    "secure": READS,
    "leak": READS,
    "buggy": READS,
}
"""What is known of them; an order is declared nowhere."""
