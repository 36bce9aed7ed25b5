"""TLS peers with certificates made on the spot: one that is right, and the ways to be wrong."""

import contextlib
import datetime
import os
import ssl
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

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
    "intercepted",
    "wrong_purpose",
    "weak_key",
    "client_certificate",
    "old_protocol",
]

_HOSTS = ("localhost", "127.0.0.1")
_WEAK = ("weak_key", "old_protocol")
"""Peers that OpenSSL serves only when it is told to be lax."""


class Certificates:
    """A root that clients can be told to trust (`root_file`), and one TLS context per peer.

    The files live in a temporary directory until `close`.
    """

    def __init__(self) -> None:
        import trustme

        self._directory = tempfile.TemporaryDirectory(prefix="failwise-")
        self._root = trustme.CA(organization_name="Failwise test root")
        self._interceptor = trustme.CA(organization_name="mitmproxy", organization_unit_name="test")
        self.root_file = os.path.join(self._directory.name, "root.pem")
        self._root.cert_pem.write_to_path(self.root_file)

    def close(self) -> None:
        """Remove the files."""
        self._directory.cleanup()

    def context(self, peer: str) -> ssl.SSLContext:
        """The server side of one peer. Raises `UsageError` for one that does not exist."""
        context = self._loaded(self._pem(peer), weak=peer in _WEAK)
        if peer == "client_certificate":
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.root_file)
        elif peer == "old_protocol":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        return context

    def intercepting(self, host: str) -> ssl.SSLContext:
        """The side that a client of an intercepting proxy sees: a certificate for `host` made on the
        spot, by an authority that only those trust who were told to."""
        return self._loaded(_chain(self._interceptor.issue_cert(host)))

    def _loaded(self, pem: bytes, *, weak: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if weak:
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
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
            case "good" | "client_certificate" | "old_protocol":
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
                return _without_intermediate(root)
            case "intercepted":
                return _chain(self._interceptor.issue_cert(*_HOSTS))
            case "wrong_purpose" | "weak_key":
                return _odd(root, peer)
            case _:
                raise UsageError(f"tls({peer!r}): say one of {', '.join(get_args(Peer))}")


def _chain(leaf: "trustme.LeafCert") -> bytes:
    return leaf.private_key_and_cert_chain_pem.bytes()


def _self_signed(begins: datetime.datetime, ends: datetime.datetime) -> bytes:
    key = _key()
    return _pem(key) + _certificate("localhost", key, "localhost", key, begins, ends)


def _odd(root: "trustme.CA", peer: str) -> bytes:
    """A leaf of the trusted root that is for clients only, or has a key too short."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID

    subject, signer = _signer(root)
    now = datetime.datetime.now(datetime.UTC)
    begins, ends = now - datetime.timedelta(days=1), now + datetime.timedelta(days=90)
    weak = peer == "weak_key"
    key = rsa.generate_private_key(65_537, 1_024) if weak else _key()  # noqa: S505 - on purpose
    purpose = None if weak else ExtendedKeyUsageOID.CLIENT_AUTH
    made = _certificate("localhost", key, subject, signer, begins, ends, purpose=purpose)
    return _pem(key) + made


def _signer(root: "trustme.CA") -> tuple[Any, Any]:
    """Name and key of the root."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    above = x509.load_pem_x509_certificate(root.cert_pem.bytes())
    return above.subject, load_pem_private_key(root.private_key_pem.bytes(), None)


def _without_intermediate(root: "trustme.CA") -> bytes:
    """A leaf alone, as a server sends it whose operator forgot the bundle.

    Like those of public authorities it says where its issuer can be fetched (RFC 5280 §4.2.2.1).
    """
    subject, signer = _signer(root)
    now = datetime.datetime.now(datetime.UTC)
    begins, ends = now - datetime.timedelta(days=1), now + datetime.timedelta(days=90)
    name, between, key = "Failwise test intermediate CA", _key(), _key()
    # The intermediate itself exists, but nobody sends it.
    _certificate(name, between, subject, signer, begins, ends, authority=True)
    fetch = "http://ca.failwise.example/intermediate.cer"
    return _pem(key) + _certificate("localhost", key, name, between, begins, ends, fetch=fetch)


def _key() -> Any:
    """A fresh key."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization

    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem


def _certificate(
    subject: str,
    key: Any,
    issuer: Any,
    signer: Any,
    begins: datetime.datetime,
    ends: datetime.datetime,
    *,
    authority: bool = False,
    fetch: str | None = None,
    purpose: Any = None,
) -> bytes:
    """One certificate as PEM; `issuer` is a common name or a whole name."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import AuthorityInformationAccessOID

    def name(common: Any) -> x509.Name:
        if isinstance(common, x509.Name):
            return common
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])

    made = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if purpose is not None:
        made = made.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if fetch is not None:
        where = x509.AccessDescription(
            AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(fetch)
        )
        made = made.add_extension(x509.AuthorityInformationAccess([where]), critical=False)
    signed = made.sign(signer, hashes.SHA256())
    pem: bytes = signed.public_bytes(serialization.Encoding.PEM)
    return pem
