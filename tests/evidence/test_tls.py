"""TLS peers on loopback with certificates made on the spot: the facts, from one connection each."""

import asyncio
import datetime
import ipaddress
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from failwise.evidence import from_exception
from failwise.evidence.tls import capturing_context
from tests.evidence.conftest import Peer

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)
Signed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def certificate(
    name: str,
    issuer: Signed | None = None,
    *,
    authority: bool = False,
    names: tuple[str, ...] = ("localhost",),
    start: datetime.datetime = NOW - 2 * DAY,
    end: datetime.datetime = NOW + 30 * DAY,
) -> Signed:
    """A certificate signed by `issuer`, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        entries: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address(one)) if one[0].isdigit() else x509.DNSName(one)
            for one in names
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
    signer = issuer[1] if issuer else key
    return builder.sign(signer, hashes.SHA256()), key


ROOT = certificate("Good Root", authority=True)
MIDDLE = certificate("Good Intermediate", ROOT, authority=True)
OTHER = certificate("Other Root", authority=True)

# case → (leaf, what is sent beside it, host to connect to, verify code, diagnosis)
CASES: dict[str, tuple[Signed, list[Signed], str, int, str]] = {
    "expired": (
        certificate("localhost", MIDDLE, start=NOW - 40 * DAY, end=NOW - 3 * DAY),
        [MIDDLE],
        "localhost",
        10,
        "expired",
    ),
    "not yet valid": (
        certificate("localhost", MIDDLE, start=NOW + 2 * DAY),
        [MIDDLE],
        "localhost",
        9,
        "not_yet_valid",
    ),
    "wrong host": (
        certificate("shop.example", MIDDLE, names=("shop.example", "www.shop.example")),
        [MIDDLE],
        "localhost",
        62,
        "wrong_host",
    ),
    "by address": (
        certificate("localhost", MIDDLE),
        [MIDDLE],
        "127.0.0.1",
        64,
        "wrong_host",
    ),
    "self-signed": (certificate("localhost"), [], "localhost", 18, "self_signed"),
    "unknown root": (certificate("localhost", OTHER), [OTHER], "localhost", 19, "untrusted_root"),
    "missing intermediate": (
        certificate("localhost", MIDDLE),
        [],
        "localhost",
        20,
        "incomplete_chain",
    ),
}


def pem(*signed: Signed) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one, _ in signed)


def serving(leaf: Signed, sent: list[Signed], folder: Path) -> Callable[[socket.socket], None]:
    """A handler that shakes hands with this chain."""
    path = folder / "server.pem"
    key = leaf[1].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.write_bytes(key + pem(leaf, *sent))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)

    def handler(connection: socket.socket) -> None:
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            return

    return handler


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(ROOT).decode())
    return capturing_context(context)


def with_socket(host: str, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        trusting().wrap_socket(connection, server_hostname=host)


def with_httpx(host: str, port: int) -> None:
    with httpx.Client(verify=trusting(), trust_env=False, timeout=5) as client:
        client.get(f"https://{host}:{port}/")


def with_httpx_async(host: str, port: int) -> None:
    async def fetch() -> None:
        async with httpx.AsyncClient(verify=trusting(), trust_env=False, timeout=5) as client:
            await client.get(f"https://{host}:{port}/")

    asyncio.run(fetch())


CLIENTS = {"socket": with_socket, "httpx": with_httpx, "httpx_async": with_httpx_async}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", CASES)
def test_certificate_facts(
    case: str, client: str, peer: Callable[..., Peer], tmp_path: Path
) -> None:
    """Every fact of the certificate comes from the one connection that failed."""
    leaf, sent, host, code, diagnosis = CASES[case]
    server = peer(serving(leaf, sent, tmp_path))
    facts = facts_of(CLIENTS[client], host, server.port)
    assert server.connections == 1
    assert (facts["verify_code"], facts["diagnosis"]) == (code, diagnosis)
    assert facts["host"] == host
    assert facts["sni"] == (None if host == "127.0.0.1" else host)
    assert facts["address"] == f"127.0.0.1:{server.port}"
    assert facts["tcp"] is True
    assert facts["not_after"] == leaf[0].not_valid_after_utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert facts["expired_since"] == (facts["not_after"] if case == "expired" else None)
    assert facts["self_signed"] is (case == "self-signed")
    assert facts["issuer"] == leaf[0].issuer.rfc4514_string()
    assert [one["subject"] for one in facts["chain"]] == [
        one[0].subject.rfc4514_string() for one in (leaf, *sent)
    ]
    if case == "wrong host":
        assert facts["names"] == ["shop.example", "www.shop.example"]


def facts_of(client: Callable[[str, int], None], host: str, port: int) -> dict[str, Any]:
    try:
        client(host, port)
    except (ssl.SSLError, httpx.ConnectError) as error:
        evidence = from_exception(error, now=NOW.timestamp())
        assert evidence.phase == "tls"
        assert evidence.tls is not None
        return dict(evidence.tls)
    raise AssertionError("the handshake must fail")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
@pytest.mark.parametrize("case", ["expired", "wrong host", "missing intermediate"])
def test_equal_to_openssl(case: str, peer: Callable[..., Peer], tmp_path: Path) -> None:
    """The same dates, names and issuer that `openssl` prints of the same peer."""
    leaf, sent, host, _, _ = CASES[case]
    server = peer(serving(leaf, sent, tmp_path))
    facts = facts_of(with_socket, host, server.port)
    target = f"127.0.0.1:{server.port}"
    shown = _openssl("s_client", "-connect", target, "-servername", host, "-showcerts")
    printed = _openssl(
        "x509",
        "-noout",
        "-dates",
        "-issuer",
        "-ext",
        "subjectAltName",
        "-nameopt",
        "RFC2253",
        text=shown,
    )
    lines = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line[:12])
    for name, fact in (("notBefore", "not_before"), ("notAfter", "not_after")):
        moment = datetime.datetime.strptime(lines[name], "%b %d %H:%M:%S %Y GMT")
        assert moment.strftime("%Y-%m-%dT%H:%M:%SZ") == facts[fact]
    assert lines["issuer"].strip() == facts["issuer"]
    assert [
        part.split(":")[1].strip(" \n") for part in printed.splitlines()[-1].split(",")
    ] == facts["names"]
    assert shown.count("-----BEGIN CERTIFICATE-----") >= len(facts["chain"])


def _openssl(*arguments: str, text: str = "") -> str:
    with tempfile.TemporaryFile("w+") as given:
        given.write(text)
        given.seek(0)
        return subprocess.run(
            ["openssl", *arguments],
            stdin=given,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        ).stdout


def test_plain_exception_still_tells() -> None:
    """Without a capturing context the verify code and the named host remain."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = (
        62,
        "Hostname mismatch, certificate is not valid for 'a.example'.",
    )
    tls = from_exception(error).tls
    assert tls is not None
    assert (tls["host"], tls["diagnosis"]) == ("a.example", "wrong_host")
