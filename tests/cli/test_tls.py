"""``failwise tls``: one connection to real TLS peers on loopback, and what is said of them."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from failwise.faults import FaultServer
from tests.cli.conftest import Failwise


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture(autouse=True)
def trusted(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault server's root is the one this machine trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", server.ca_file)
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("peer", "diagnosis"),
    [
        ("good", "ok"),
        ("expired", "expired"),
        ("not_yet_valid", "not_yet_valid"),
        ("wrong_host", "wrong_host"),
        ("by_address", "wrong_host"),
        ("self_signed", "self_signed"),
        ("unknown_root", "untrusted_root"),
    ],
)
def test_each_peer_is_told(
    failwise: Failwise, server: FaultServer, peer: Any, diagnosis: str
) -> None:
    """The label, no retry for what no wait cures, and the exit code, by exactly one connection."""
    place = urlsplit(server.tls(peer)).netloc
    before = server.connections(peer)
    ended = failwise("tls", place, "--json")
    data = json.loads(ended.out)
    assert (data["diagnosis"], data["retry"]) == (diagnosis, False)
    assert ended.code == (0 if diagnosis == "ok" else 1)
    assert server.connections(peer) == before + 1


def test_people_see_certificate_and_remedy(failwise: Failwise, server: FaultServer) -> None:
    """What is wrong, until when it was valid, what to do; in Chinese too."""
    place = urlsplit(server.tls("expired")).netloc
    out = failwise("tls", place).out
    assert "past its end date" in out
    assert "security.certificate_expired" in out
    assert "remedy" in out
    assert "证书已过期" in failwise("tls", place, "--lang", "zh").out
    out = failwise("tls", urlsplit(server.tls("good")).netloc).out
    assert "days left" in out


def test_who_does_not_speak_tls(failwise: Failwise) -> None:
    """A port that answers in plain HTTP is told as such; no repetition cures that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        data = json.loads(failwise("tls", f"127.0.0.1:{port}", "--json").out)
        thread.join(10)
    assert (data["diagnosis"], data["retry"]) == ("plain_http", False)


def test_who_does_not_listen(failwise: Failwise, server: FaultServer) -> None:
    """A refused connection: nothing was sent, another try may help."""
    data = json.loads(failwise("tls", urlsplit(server.refused_url).netloc, "--json").out)
    assert (data["diagnosis"], data["retry"], data["effect"]) == ("refused", True, "not_sent")


def test_who_never_answers(failwise: Failwise) -> None:
    """A peer that accepts and keeps silent is a timeout, within the time given."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        data = json.loads(failwise("tls", f"127.0.0.1:{port}", "--timeout", "0.2", "--json").out)
    assert (data["diagnosis"], data["retry"]) == ("timeout", True)


@pytest.mark.parametrize("peer", ["host:99999", "host:port", "", "a b", "[::1"])
def test_a_peer_that_is_none(failwise: Failwise, peer: str) -> None:
    """How a peer is written."""
    ended = failwise("tls", peer)
    assert (ended.code, "HOST:PORT" in ended.err) == (2, True)


def test_two_facts_the_chain_and_a_line_to_check_by_hand(
    failwise: Failwise, server: FaultServer
) -> None:
    """That TCP is fine and TLS is not; the chain; the equal openssl line."""
    place = urlsplit(server.tls("intercepted")).netloc
    ended = failwise("tls", place)
    assert f"connected to 127.0.0.1:{place.partition(':')[2]}" in ended.out
    assert "the handshake fails" in ended.out
    assert "0  " in ended.out
    assert "mitmproxy" in ended.out
    assert f"openssl s_client -connect {place} -servername localhost" in ended.out
    assert "握手失败" in failwise("tls", place, "--lang", "zh").out
    data = json.loads(failwise("tls", place, "--json").out)
    assert (data["diagnosis"], data["tcp"], data["tls"]) == ("intercepted", True, False)
    assert data["command"].endswith(f"{place} -servername localhost")


def test_another_trust_store(
    failwise: Failwise, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--ca-file` stands in for the machine's roots; a file that is none is said."""
    place, ca_file = urlsplit(server.tls("good")).netloc, server.ca_file
    monkeypatch.delenv("SSL_CERT_FILE")
    assert failwise("tls", place, "--ca-file", ca_file).code == 0
    ended = failwise("tls", place, "--ca-file", "no-such-file.pem")
    assert (ended.code, "no-such-file.pem" in ended.err) == (2, True)


def test_the_clock_is_compared_on_request(failwise: Failwise, server: FaultServer) -> None:
    """What both clocks say stands in the answer."""
    place = urlsplit(server.tls("expired")).netloc
    assert "this machine says" in failwise("tls", place).out
    out = failwise("tls", place, "--clock").out
    assert "the peer 20" in out
