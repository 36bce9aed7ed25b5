"""TLS peers, each wrong in one thing, met by real clients that verify."""

import os
import socket
import ssl
from collections.abc import Iterator

import httpx
import pytest
import requests

from failwise.faults import Fault, FaultServer
from failwise.vocabulary.errors import UsageError

# peer → OpenSSL's verify code
WRONG = {
    "expired": 10,
    "not_yet_valid": 9,
    "wrong_host": 62,
    "by_address": 64,
    "self_signed": 18,
    "unknown_root": 20,
    "missing_intermediate": 20,
}


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        running.route("GET", "/", Fault.json({"ok": True}))
        running.route("GET", "/teapot", Fault.status(418))
        running.route("GET", "/reset", Fault.reset())
        running.route("GET", "/silent", Fault.silent())
        yield running


def verify_code(server: FaultServer, peer: str) -> int:
    host, _, port = server.tls(peer).removeprefix("https://").partition(":")  # type: ignore[arg-type]
    context = ssl.create_default_context(cafile=server.ca_file)
    with socket.create_connection((host, int(port)), timeout=5) as raw:
        try:
            with context.wrap_socket(raw, server_hostname=host):
                return 0
        except ssl.SSLCertVerificationError as error:
            return error.verify_code


@pytest.mark.parametrize(("peer", "code"), WRONG.items())
def test_each_peer_is_wrong_in_exactly_one_thing(server: FaultServer, peer: str, code: int) -> None:
    """The verify code of OpenSSL, at one connection."""
    before = server.connections(peer)
    assert verify_code(server, peer) == code
    assert server.connections(peer) == before + 1


def test_the_good_peer_is_good_and_serves_the_same_routes(server: FaultServer) -> None:
    """For a client that trusts `ca_file`, by name and by address."""
    context = ssl.create_default_context(cafile=server.ca_file)
    with httpx.Client(verify=context, trust_env=False, timeout=5) as client:
        assert client.get(server.tls("good", "/")).json() == {"ok": True}
        by_address = server.tls("good", "/teapot").replace("localhost", "127.0.0.1")
        assert client.get(by_address).status_code == 418
        # Before 3.12.4 the ssl module reads a reset as an end of file (CPython gh-115627).
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            client.get(server.tls("good", "/reset"))
        with pytest.raises(httpx.ReadTimeout):
            client.get(server.tls("good", "/silent"), timeout=0.1)
    assert server.requests[-1].listener == "good"


@pytest.mark.parametrize("peer", WRONG)
def test_clients_refuse_before_a_request_is_sent(server: FaultServer, peer: str) -> None:
    """httpx and requests raise their own exceptions; no request arrives."""
    url = server.tls(peer)  # type: ignore[arg-type]
    before = server.count()
    context = ssl.create_default_context(cafile=server.ca_file)
    with (
        httpx.Client(verify=context, trust_env=False, timeout=5) as client,
        pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.get(url)
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(url, verify=server.ca_file, timeout=5)
    assert server.count() == before


async def test_a_loop_meets_the_same(server: FaultServer) -> None:
    """httpx under asyncio."""
    context = ssl.create_default_context(cafile=server.ca_file)
    async with httpx.AsyncClient(verify=context, trust_env=False, timeout=5) as client:
        with pytest.raises(httpx.ConnectError, match="expired"):
            await client.get(server.tls("expired"))
        assert (await client.get(server.tls("good", "/"))).status_code == 200


def test_a_client_without_our_root_trusts_nothing_here(server: FaultServer) -> None:
    """The root is nobody's but the test's."""
    with httpx.Client(trust_env=False, timeout=5) as client, pytest.raises(httpx.ConnectError):
        client.get(server.tls("good"))


def test_plain_http_at_a_tls_port_is_no_crash(server: FaultServer) -> None:
    """The handshake fails quietly and the listener goes on."""
    with pytest.raises(httpx.HTTPError):
        httpx.get(server.tls("good").replace("https", "http"), trust_env=False, timeout=5)
    assert verify_code(server, "good") == 0


def test_certificates_are_gone_after_the_block() -> None:
    """Keys never outlive the server, not even on disk."""
    with FaultServer() as server:
        server.tls("good")
        path = server.ca_file
        assert os.listdir(os.path.dirname(path)) == ["root.pem"]
    assert not os.path.exists(os.path.dirname(path))


def test_an_unknown_peer_is_said_with_those_there_are() -> None:
    """No KeyError."""
    with FaultServer() as server, pytest.raises(UsageError, match="self_signed"):
        server.tls("worst")  # type: ignore[arg-type]
