"""`Runtime(tls_probe=True)`: one look at a peer whose certificate a tool's own client refused."""

import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import failwise
from failwise.faults import Fault, FaultServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """Its root is the one this machine trusts; no proxy is named."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with FaultServer() as running:
        monkeypatch.setenv("SSL_CERT_FILE", running.ca_file)
        running.route("GET", "/", Fault.json({"ok": True}))
        yield running


def with_requests(url: str, ca_file: str) -> Any:
    return requests.get(url, verify=ca_file, timeout=5).json()


def with_urllib(url: str, ca_file: str) -> Any:
    context = ssl.create_default_context(cafile=ca_file)
    with urllib.request.urlopen(url, context=context, timeout=5) as answer:
        return answer.read()


def with_httpx(url: str, ca_file: str) -> Any:
    context = ssl.create_default_context(cafile=ca_file)
    with httpx.Client(verify=context, trust_env=False) as client:
        return client.get(url).json()


async def with_aiohttp(url: str, ca_file: str) -> Any:
    context = ssl.create_default_context(cafile=ca_file)
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        return await answer.json()


class OpaqueClientError(Exception):
    """Of a client that tells in words alone."""


def with_words(url: str, ca_file: str) -> Any:
    raise OpaqueClientError(f"GET {url} failed: x509: certificate has expired or is not yet valid")


CLIENTS = [with_requests, with_httpx, with_aiohttp, with_words]


@pytest.mark.parametrize("client", CLIENTS)
async def test_one_look_fills_in_the_certificate(server: FaultServer, client: Any) -> None:
    """Dates, names and chain are there; one connection is the call's, one the look's."""
    url, ca_file = server.tls("expired", "/"), server.ca_file
    with failwise.Runtime(":memory:", tls_probe=True) as rt:
        rt.add(client, name="fetch", read_only=True)
        result = await rt.call("fetch", {"url": url, "ca_file": ca_file})
    failure = result.failure
    assert failure is not None
    assert failure.code == "security.certificate_expired"
    facts = failure.detail("certificate")
    assert facts["probe"] == "expired"
    assert facts["names"] == ["localhost", "127.0.0.1"]
    assert facts["not_after"] in failure.remedy or facts["not_after"][:10] in failure.remedy
    assert server.connections("expired") == (1 if client is with_words else 2)
    assert server.count() == 0


@pytest.mark.parametrize("client", CLIENTS)
async def test_without_being_asked_nobody_looks(server: FaultServer, client: Any) -> None:
    """The default: the one connection that failed, and what its exception tells."""
    url, ca_file = server.tls("expired", "/"), server.ca_file
    with failwise.Runtime(":memory:") as rt:
        rt.add(client, name="fetch", read_only=True)
        result = await rt.call("fetch", {"url": url, "ca_file": ca_file})
    assert result.failure is not None
    assert result.failure.code == "security.certificate_expired"
    assert not (result.failure.detail("certificate") or {}).get("chain")
    assert server.connections("expired") == (0 if client is with_words else 1)


def test_what_the_machine_trusts_and_the_client_does_not(server: FaultServer) -> None:
    """A client with another bundle: the look says that this machine's roots trust the peer."""

    def fetch(url: str) -> Any:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with httpx.Client(verify=context, trust_env=False) as client:
            return client.get(url).json()

    with failwise.Runtime(":memory:", tls_probe=True) as rt:
        rt.add(fetch, read_only=True)
        failure = rt.call_sync("fetch", {"url": server.tls("good", "/")}).failure
    assert failure is not None
    assert failure.code == "security.unknown_issuer"
    assert failure.detail("certificate")["probe"] == "ok"


def test_a_write_is_looked_at_and_never_repeated(server: FaultServer) -> None:
    """The look is a handshake: no request is sent by it."""
    server.route("POST", "/orders", Fault.effect("order", Fault.json({})))

    def order(url: str) -> Any:
        return requests.post(url, verify=server.ca_file, timeout=5).json()

    with failwise.Runtime(":memory:", tls_probe=True) as rt:
        rt.add(order)
        result = rt.call_sync("order", {"url": server.tls("wrong_host", "/orders")})
    assert result.failure is not None
    assert result.failure.code == "security.hostname_mismatch"
    assert result.failure.detail("certificate")["names"] == [
        "api.other.example",
        "www.other.example",
    ]
    assert (result.sent, server.count(), len(server.ledger)) == (1, 0, 0)


def test_a_chain_that_was_kept_is_not_looked_at_again(server: FaultServer) -> None:
    """`HttpTool` keeps the chain of the connection that failed: there is nothing to look for."""
    with failwise.Runtime(":memory:", tls_probe=True) as rt:
        url = server.tls("expired", "/")
        rt.add(failwise.HttpTool("fetch", "GET", url, ca_file=server.ca_file))
        failure = rt.call_sync("fetch").failure
    assert failure is not None
    assert failure.detail("certificate")["chain"]
    assert server.connections("expired") == 1


def test_behind_a_proxy_nobody_looks(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the proxy it would be another connection's certificate."""
    monkeypatch.setenv("HTTPS_PROXY", server.proxy_url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    def fetch() -> Any:
        return requests.get("https://api.parts.example/", verify=server.ca_file, timeout=5).json()

    with failwise.Runtime(":memory:", tls_probe=True) as rt:
        rt.add(fetch, read_only=True)
        failure = rt.call_sync("fetch").failure
    assert failure is not None
    assert failure.category is failwise.Category.SECURITY
    facts = failure.detail("certificate")
    assert facts["proxy"] == server.proxy_url
    assert "probe" not in facts
    assert server.connections("proxy") == 1
