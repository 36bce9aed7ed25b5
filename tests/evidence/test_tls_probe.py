"""`diagnose_tls`: one connection to real TLS peers on loopback, and what is said of each."""

import datetime
import email.utils
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any, get_args
from urllib.parse import urlsplit

import httpx
import pytest

from failwise.classify import classify_exception
from failwise.evidence.tls import capturing_context
from failwise.evidence.tls_certificates import certificate_facts
from failwise.evidence.tls_labels import Words, labels, remedies
from failwise.evidence.tls_probe import TlsDiagnosis, diagnose_tls
from failwise.evidence.tls_surroundings import clock_facts, s_client_line, with_surroundings
from failwise.faults import Fault, FaultServer
from failwise.faults.peers import Peer
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.errors import UsageError
from tests.evidence.conftest import Peer as Plain

# peer → label, and a word of the remedy
PEERS = {
    "good": ("ok", ""),
    "expired": ("expired", "Renew the certificate of localhost"),
    "not_yet_valid": ("not_yet_valid", "clock"),
    "wrong_host": ("wrong_host", "api.other.example"),
    "by_address": ("wrong_host", "not by the address 127.0.0.1"),
    "self_signed": ("self_signed", "trust store"),
    "unknown_root": ("untrusted_root", "A root nobody installed"),
    "missing_intermediate": ("incomplete_chain", "must send the intermediate"),
    "intercepted": ("intercepted", "exempted from interception"),
    "wrong_purpose": ("wrong_purpose", "serverAuth"),
    "weak_key": ("weak_key", "longer key"),
    "client_certificate": ("client_cert_required", "client certificate"),
    "old_protocol": ("protocol_version", "TLS 1.2 or 1.3"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def diagnosed(server: FaultServer, peer: Any, **options: Any) -> TlsDiagnosis:
    place = urlsplit(server.tls(peer))
    assert place.hostname is not None
    assert place.port is not None
    return diagnose_tls(place.hostname, place.port, ca_file=server.ca_file, **options)


def test_every_kind_of_peer_is_in_this_table() -> None:
    """The fault server's peers and this file's are the same."""
    assert set(PEERS) == set(get_args(Peer))


@pytest.mark.parametrize("peer", PEERS)
def test_one_connection_tells_what_is_wrong(server: FaultServer, peer: str) -> None:
    """Label, two facts, a sentence and a remedy in both languages; nothing is sent."""
    label, remedy = PEERS[peer]
    before = server.connections(peer)
    found = diagnosed(server, peer)
    assert server.connections(peer) == before + 1
    assert (found.diagnosis, found.ok, found.retry) == (label, peer == "good", False)
    assert (found.facts["tcp"], found.facts["tls"]) == (True, peer == "good")
    assert found.facts["address"] == f"127.0.0.1:{found.port}"
    data = found.to_dict()
    if peer == "good":
        assert (found.code, found.remedy(), data["remedies"]) == (None, None, None)
        assert found.cipher
    else:
        assert remedy in (found.remedy() or "")
        assert found.remedy("zh") != found.remedy()
        assert found.meaning("zh") != found.meaning()
        assert data["effect"] == "not_sent"
    assert server.count() == 0


@pytest.mark.parametrize("peer", [one for one in PEERS if one != "good"])
def test_a_failed_call_is_told_the_same(server: FaultServer, peer: Any) -> None:
    """The verdict on a client's exception and the diagnosis agree in code and remedy."""
    found = diagnosed(server, peer)
    context = capturing_context(ssl.create_default_context(cafile=server.ca_file))
    with (
        httpx.Client(verify=context, trust_env=False, timeout=5) as client,
        pytest.raises(httpx.TransportError) as raised,
    ):
        client.get(server.tls(peer))
    failure = classify_exception(raised.value)
    assert failure.code == found.code
    if peer != "client_certificate":  # TLS 1.3: refused after the handshake, no chain is kept
        assert failure.remedy == found.remedy()
        assert failure.effect.value == "not_sent"


def test_the_chain_as_a_person_reads_it(server: FaultServer) -> None:
    """A certificate a line, its dates, key and hash; who must be above stands last."""
    lines = list(diagnosed(server, "missing_intermediate").chain())
    assert lines[0].startswith("0  CN=localhost  (20")
    assert "EC secp256r1, sha256" in lines[0]
    assert lines[1] == "↑  CN=Failwise test intermediate CA"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("peer", ["expired", "by_address"])
def test_the_line_to_check_by_hand_shows_the_same(server: FaultServer, peer: str) -> None:
    """It runs as it is printed, and shows the same issuer."""
    found = diagnosed(server, peer)
    shown = subprocess.run(
        shlex.split(found.command), input="", capture_output=True, text=True, timeout=20, check=False
    ).stdout  # fmt: skip
    organisation = found.facts["issuer"].split("O=")[-1]
    assert organisation in shown


def test_the_line_for_names_addresses_and_odd_names() -> None:
    """SNI is sent for names only; nothing that a shell would read as its own."""
    assert s_client_line("a.example", 443) == (
        "openssl s_client -connect a.example:443 -servername a.example"
    )
    assert s_client_line("::1", 8443) == "openssl s_client -connect '[::1]:8443' -noservername"
    assert shlex.split(s_client_line("a;rm -rf", 1))[3] == "a;rm -rf:1"


def test_a_clock_that_is_off(server: FaultServer) -> None:
    """The peer's Date says that its certificate is in date: it is this clock that is wrong."""
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=30)
    date = email.utils.format_datetime(then, usegmt=True)
    server.route("HEAD", "/", Fault.json({}, headers={"Date": date}))
    before = server.connections("expired")
    found = diagnosed(server, "expired", clock=True)
    assert server.connections("expired") == before + 2
    assert found.diagnosis == "clock_off"
    assert found.code == "security.certificate_expired"
    assert abs(found.facts["clock"]["off_by"] - 30 * 86_400) < 5
    assert "clock" in (found.remedy() or "")


def test_a_clock_that_is_right(server: FaultServer) -> None:
    """The peer's Date agrees with ours: the certificate is expired."""
    server.route("HEAD", "/", Fault.json({}))
    found = diagnosed(server, "expired", clock=True)
    assert found.diagnosis == "expired"
    assert abs(found.facts["clock"]["off_by"]) < 5
    assert found.facts["clock"]["wrong"] is False


def test_the_clock_is_asked_for_only_where_a_date_is_wrong(server: FaultServer) -> None:
    """`clock` opens no second connection for other faults."""
    before = server.connections("wrong_host")
    diagnosed(server, "wrong_host", clock=True)
    assert server.connections("wrong_host") == before + 1


def test_a_clock_from_before_this_package() -> None:
    """A machine that woke up in 1970 sees certificates that are not valid yet."""
    assert clock_facts(0.0)["wrong"] is True
    facts = certificate_facts((), host="a.example", verify_code=9, now=86_400.0)
    assert facts["diagnosis"] == "clock_off"
    assert "1970-01-02" in (remedies(facts) or {})["zh"]
    # an expired certificate is no sign of a clock that is behind
    assert (
        certificate_facts((), host="a.example", verify_code=10, now=86_400.0)["diagnosis"]
        == "expired"
    )


def test_no_root_store(server: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Neither file nor folder: the machine has nothing to check with, whoever the peer is."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    place = urlsplit(server.tls("good"))
    assert place.port is not None
    found = diagnose_tls("localhost", place.port)
    assert found.diagnosis == "no_root_store"
    assert found.code == "security.unknown_issuer"
    assert str(tmp_path / "none.pem") in (found.remedy() or "")
    assert found.facts["roots"]["count"] == 0


def test_a_store_that_only_lacks_this_root(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A folder with entries is a store, though none of them was needed so far."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "a.pem").write_text("")
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    place = urlsplit(server.tls("good"))
    assert place.port is not None
    assert diagnose_tls("localhost", place.port).diagnosis == "untrusted_root"


def test_an_intercepting_proxy(server: FaultServer) -> None:
    """A real one: CONNECT, and TLS in the host's name by an authority of its own."""
    context = capturing_context(ssl.create_default_context(cafile=server.ca_file))
    with (
        httpx.Client(proxy=server.proxy_url, verify=context, trust_env=False) as client,
        pytest.raises(httpx.ConnectError) as raised,
    ):
        client.get("https://api.parts.example/")
    failure = classify_exception(raised.value)
    facts = failure.detail("certificate")
    assert (failure.code, facts["diagnosis"]) == ("security.unknown_issuer", "intercepted")
    assert facts["names"] == ["api.parts.example"]
    assert "mitmproxy" in facts["interceptor"]
    assert "mitmproxy" in failure.remedy
    assert server.connections("proxy") == 1


def test_a_proxy_takes_connect_only(server: FaultServer) -> None:
    """Anything else is refused, and the proxy goes on."""
    answer = httpx.get(server.proxy_url, trust_env=False, timeout=5)
    assert answer.status_code == 405


def _peer(answer: Callable[[socket.socket], None], peer: Callable[..., Plain]) -> TlsDiagnosis:
    return diagnose_tls("127.0.0.1", peer(answer).port, timeout=0.5)


def test_peers_that_speak_no_tls(peer: Callable[..., Plain]) -> None:
    """Plain HTTP, another protocol, silence, an end: told apart, the connection stood."""

    def http(connection: socket.socket) -> None:
        connection.recv(4_096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def ssh(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        connection.recv(4_096)

    def close(connection: socket.socket) -> None:
        connection.recv(4_096)

    for answer, label, retry in ((http, "plain_http", False), (ssh, "not_tls", False), (close, "closed", True)):  # fmt: skip
        found = _peer(answer, peer)
        assert (found.diagnosis, found.retry) == (label, retry)
        assert (found.facts["tcp"], found.facts["tls"]) == (True, False)
        assert "127.0.0.1" in (found.remedy() or "")


def test_silence_and_nobody(server: FaultServer) -> None:
    """A peer that accepts and says nothing; a port where nobody listens; a name that is none."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = diagnose_tls("127.0.0.1", silent.getsockname()[1], timeout=0.2)
    assert (found.diagnosis, found.facts["tcp"], found.retry) == ("timeout", True, True)
    place = urlsplit(server.refused_url)
    assert place.port is not None
    found = diagnose_tls("127.0.0.1", place.port)
    assert (found.diagnosis, found.facts["tcp"], found.retry) == ("refused", False, True)
    assert found.connect_ms is None
    found = diagnose_tls("no-such-name.invalid", 443)
    assert (found.diagnosis, found.retry, found.code) == ("dns", False, "network.dns")


@pytest.mark.parametrize("arguments", [("", 443), ("a.example", 0), ("a.example", 70_000)])
def test_what_cannot_be_asked(arguments: tuple[str, int]) -> None:
    """Misuse is said at once."""
    with pytest.raises(UsageError):
        diagnose_tls(*arguments)
    with pytest.raises(UsageError, match="cannot be read"):
        diagnose_tls("a.example", ca_file="/no/such/file.pem")
    with pytest.raises(UsageError, match="seconds"):
        diagnose_tls("a.example", timeout=0)


@pytest.mark.parametrize("name", sorted(labels().words))
def test_each_diagnosis_has_words_and_a_known_code(name: str) -> None:
    """Both languages, a registered code, and templates that name facts there are."""
    words: Words = labels().words[name]
    assert words.meaning["en"] != words.meaning["zh"]
    assert words.code is None or lookup(words.code) is not None
    assert words.code is not None or name in ("ok", "clock_off")
    if words.remedy:
        facts = with_surroundings(
            {"diagnosis": name, "host": "a.example", "names": ["b.example"]}, 0
        )
        facts |= {"issuer": "CN=C", "roots": {"looked_for": ["/x"]}, "clock": clock_facts(0)}
        facts["diagnosis"], facts["by_address"] = name, name == "by_address"
        said = remedies({**facts, "diagnosis": "wrong_host" if name == "by_address" else name})
        assert said is not None
        assert "{" not in said["en"] + said["zh"]


def test_many_at_once(server: FaultServer) -> None:
    """Threads share nothing."""
    seen: list[str] = []
    threads = [
        threading.Thread(target=lambda: seen.append(diagnosed(server, "expired").diagnosis))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == ["expired"] * 8
