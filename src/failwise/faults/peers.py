"""TLS peers with certificates made on the spot: one that is right, and the ways to be wrong."""

import contextlib
import datetime
import os
import ssl
import tempfile
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    import trustme

Peer: TypeAlias = Literal[
    "good",
    "expired",
    "not_yet_valid",
    "wrong_host",
    "by_address",
    "self_signed",
    "unknown_root",
    "missing_intermediate",
]

_HOSTS = ("localhost", "127.0.0.1")


class Certificates:
    """A root that clients can be told to trust (`root_file`), and one TLS context per peer.

    The files live in a temporary directory until `close`.
    """

    def __init__(self) -> None:
        import trustme

        self._directory = tempfile.TemporaryDirectory(prefix="failwise-")
        self._root = trustme.CA(organization_name="Failwise test root")
        self.root_file = os.path.join(self._directory.name, "root.pem")
        self._root.cert_pem.write_to_path(self.root_file)

    def close(self) -> None:
        """Remove the files."""
        self._directory.cleanup()

    def context(self, peer: str) -> ssl.SSLContext:
        """The server side of one peer. Raises `UsageError` for one that does not exist."""
        pem = self._pem(peer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        handle, path = tempfile.mkstemp(dir=self._directory.name, suffix=".pem")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(pem)
            context.load_cert_chain(path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return context

    def _pem(self, peer: str) -> bytes:
        """Private key and chain as sent."""
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        root = self._root
        match peer:
            case "good":
                return _chain(root.issue_cert(*_HOSTS))
            case "expired":
                return _chain(
                    root.issue_cert(*_HOSTS, not_before=now - 90 * day, not_after=now - 5 * day)
                )
            case "not_yet_valid":
                return _chain(
                    root.issue_cert(*_HOSTS, not_before=now + 5 * day, not_after=now + 90 * day)
                )
            case "wrong_host":
                return _chain(root.issue_cert("api.other.example", "www.other.example"))
            case "by_address":
                return _chain(root.issue_cert("localhost"))
            case "self_signed":
                return _self_signed(now - day, now + 90 * day)
            case "unknown_root":
                import trustme

                stranger = trustme.CA(organization_name="A root nobody installed")
                return _chain(stranger.issue_cert(*_HOSTS))
            case "missing_intermediate":
                leaf = root.create_child_ca().issue_cert(*_HOSTS)
                return leaf.private_key_pem.bytes() + leaf.cert_chain_pems[0].bytes()
            case _:
                raise UsageError(f"tls({peer!r}): say one of {', '.join(get_args(Peer))}")


def _chain(leaf: "trustme.LeafCert") -> bytes:
    return leaf.private_key_and_cert_chain_pem.bytes()


def _self_signed(begins: datetime.datetime, ends: datetime.datetime) -> bytes:
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)
