"""Certificate facts of a failed TLS handshake, from the one connection that failed.

Python's `SSLCertVerificationError` says which check failed, but keeps nothing of the certificate.
`capturing_context()` makes a context whose connections leave the chain the peer sent on the
exception, so that nobody has to connect a second time to look. `facts_of_exception` reads it.
"""

import datetime
import functools
import ipaddress
import os
import re
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from types import FrameType
from typing import Any, Final

from failwise.evidence.bounds import bounded, clean_url
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

FILE: Final = "tls.toml"
ATTRIBUTE: Final = "failwise_tls"
"""The attribute of an exception under which the captured handshake is kept."""

_CHAIN_LIMIT: Final = 10
_NAMES_LIMIT: Final = 100
_DER: Final = 2  # _ssl.ENCODING_DER
_HOST_IN_TEXT = re.compile(r"certificate is not valid for '([^']{1,253})'")


@record
class Handshake:
    """What was captured of a failed handshake.

    `chain` holds the certificates as sent (DER, leaf first), `host` the name that was to be
    verified, `address` the peer's (``192.0.2.1:443``), `next_bytes` what the peer sent on.
    """

    chain: tuple[bytes, ...]
    host: str | None
    address: str | None
    protocol: str | None
    next_bytes: bytes = b""


def capturing_context(context: ssl.SSLContext | None = None) -> ssl.SSLContext:
    """A client context whose failed handshakes leave the peer's chain on the exception.

    Works for blocking sockets (`ssl.SSLSocket`) and for event loops (`ssl.SSLObject`). Verification
    is unchanged. Without `context`, `ssl.create_default_context()` is used; a given one is changed
    and handed back.
    """
    context = context if context is not None else ssl.create_default_context()
    context.sslsocket_class = _CapturingSocket
    context.sslobject_class = _CapturingObject
    return context


class _CapturingSocket(ssl.SSLSocket):
    """A TLS socket that keeps what it saw of a failed handshake."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            setattr(error, ATTRIBUTE, _captured(self, _address_of(self), _peeked(self)))
            raise


class _CapturingObject(ssl.SSLObject):
    """The same for event loops, which move the bytes themselves."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            address = _address_of_caller(sys._getframe(1))
            setattr(error, ATTRIBUTE, _captured(self, address, b""))
            raise


def _captured(
    connection: ssl.SSLSocket | ssl.SSLObject, address: str | None, next_bytes: bytes
) -> Handshake:
    host = connection.server_hostname
    return Handshake(_chain(connection), host or None, address, _protocol(connection), next_bytes)


def _chain(connection: ssl.SSLSocket | ssl.SSLObject) -> tuple[bytes, ...]:
    """The chain as sent. Public since Python 3.13; before, only on the inner object."""
    inner = getattr(connection, "_sslobj", None)
    for holder in (connection, inner):
        method = getattr(holder, "get_unverified_chain", None)
        if method is None:
            continue
        try:
            certificates = method() or ()
            return tuple(
                one if isinstance(one, bytes) else one.public_bytes(_DER)
                for one in certificates[:_CHAIN_LIMIT]
            )
        except (ssl.SSLError, ValueError, TypeError, AttributeError):
            continue
    return ()


def _protocol(connection: ssl.SSLSocket | ssl.SSLObject) -> str | None:
    try:
        version = connection.version()
        if version is None:  # an unfinished handshake: the cipher agreed on tells it
            cipher = connection.cipher()
            version = cipher[1] if cipher else None
    except (ValueError, ssl.SSLError):
        return None
    return version


def _address_of(connection: socket.socket) -> str | None:
    try:
        return _address(connection.getpeername())
    except OSError:
        return None


def _address(peer: Any) -> str | None:
    if isinstance(peer, (tuple, list)) and len(peer) >= 2:
        host = f"[{peer[0]}]" if ":" in str(peer[0]) else str(peer[0])
        return f"{host}:{peer[1]}"
    return None


def _peeked(connection: ssl.SSLSocket) -> bytes:
    """What follows on the wire, where the peer does not speak TLS at all."""
    try:
        connection.setblocking(False)
        return socket.socket.recv(connection, 16, socket.MSG_PEEK)
    except (OSError, ValueError):
        return b""


def _address_of_caller(frame: FrameType | None) -> str | None:
    """The peer's address, from the transport of whoever performs the handshake (asyncio, anyio)."""
    for _ in range(6):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        transport = getattr(owner, "_transport", None)
        if transport is not None and hasattr(transport, "get_extra_info"):
            return _address(transport.get_extra_info("peername"))
        stream = getattr(owner, "transport_stream", None)
        for _ in range(4):
            inner = getattr(stream, "_transport", None) or getattr(stream, "_raw_socket", None)
            if inner is not None and hasattr(inner, "get_extra_info"):
                return _address(inner.get_extra_info("peername"))
            stream = getattr(stream, "transport_stream", None)
        frame = frame.f_back
    return None


@record
class Labels:
    """The data of `tls.toml`."""

    codes: Mapping[int, str]
    reasons: tuple[tuple[tuple[str, ...], str], ...]
    intermediate_words: tuple[str, ...]
    intermediate_names: frozenset[str]
    interceptors: tuple[str, ...]


@functools.cache
def labels() -> Labels:
    """The labels, read once. Raises `ConfigurationError` naming what is wrong."""
    import tomllib

    data = tomllib.loads(resources.files("failwise.evidence").joinpath(FILE).read_text("utf-8"))
    try:
        return Labels(
            {int(code): name for code, name in data["codes"].items()},
            tuple((tuple(row["within"]), row["diagnosis"]) for row in data["reasons"]),
            tuple(data["intermediates"]["words"]),
            frozenset(data["intermediates"]["names"]),
            tuple(data["interceptors"]["words"]),
        )
    except (KeyError, ValueError) as error:
        raise ConfigurationError(f"{error}", file=FILE) from error


def facts_of_exception(
    error: BaseException, *, host: str | None = None, now: float | None = None
) -> dict[str, Any]:
    """The facts of a failed handshake, as plain JSON data.

    From a connection of `capturing_context()` everything `certificate_facts` lists; else what the
    exception itself says: ``verify_code``, ``verify_text``, ``host``, ``diagnosis``.
    """
    captured = getattr(error, ATTRIBUTE, None)
    code = getattr(error, "verify_code", None)
    text = getattr(error, "verify_message", None)
    reason = f"{getattr(error, 'reason', '') or ''} {error}"
    handshake = captured if isinstance(captured, Handshake) else Handshake((), None, None, None)
    if host is None and handshake.host is None:
        named = _HOST_IN_TEXT.search(str(text or error))
        host = named.group(1) if named else None
    return certificate_facts(
        handshake.chain,
        host=handshake.host or host,
        address=handshake.address,
        protocol=handshake.protocol,
        verify_code=code if isinstance(code, int) else None,
        verify_text=text if isinstance(text, str) else None,
        reason=reason,
        next_bytes=handshake.next_bytes,
        now=now,
    )


def certificate_facts(
    chain: Sequence[bytes],
    *,
    host: str | None = None,
    address: str | None = None,
    protocol: str | None = None,
    verify_code: int | None = None,
    verify_text: str | None = None,
    reason: str = "",
    next_bytes: bytes = b"",
    proxy: str | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    """What a chain (DER, leaf first, as sent) and the failed check say, as plain JSON data.

    ``host``, ``sni`` (None for an address: none is sent), ``address``, ``tcp`` (the connection itself
    stood), ``verify_code`` and ``verify_text`` (OpenSSL's), ``protocol``, ``proxy`` (the one in use,
    else None), ``diagnosis`` (a label of `tls.toml`, or ``incomplete_chain``); with a chain also
    ``subject``, ``issuer`` (RFC 4514), ``names`` (subjectAltName), ``not_before``, ``not_after``,
    ``expired_since`` (RFC 3339, UTC; None: not expired), ``expired_subject``, ``self_signed``,
    ``chain`` (subject and issuer of each certificate sent), ``interceptor`` (a name known for breaking
    TLS open). `now` is epoch seconds, the clock when left out.
    """
    facts: dict[str, Any] = {
        "host": host,
        "sni": None if host is None or _is_address(host) else host,
        "address": address,
        "tcp": True,
        "verify_code": verify_code,
        "verify_text": verify_text,
        "protocol": protocol,
        "proxy": proxy or proxy_for(host),
        "diagnosis": _diagnosis(verify_code, reason, next_bytes),
    }
    if chain:
        if facts["diagnosis"] == "no_common_cipher":
            # The server sent its certificate, so a cipher was agreed on: it misses the client's.
            facts["diagnosis"] = "client_certificate"
        facts.update(_chain_facts(chain, verify_code, now))
    return facts


def _diagnosis(code: int | None, reason: str, next_bytes: bytes) -> str:
    if code:
        return labels().codes.get(code, "unverified")
    for within, diagnosis in labels().reasons:
        if any(word in reason for word in within):
            # OpenSSL has taken five bytes, "HTTP/"; the version follows.
            return (
                "plain_http"
                if diagnosis == "not_tls" and next_bytes[:2] in (b"1.", b"0.")
                else diagnosis
            )
    return "handshake"


def _chain_facts(chain: Sequence[bytes], code: int | None, now: float | None) -> dict[str, Any]:
    """What the certificates themselves say."""
    from cryptography import x509

    certificates: list[x509.Certificate] = []
    for encoded in chain[:_CHAIN_LIMIT]:
        try:
            certificates.append(x509.load_der_x509_certificate(encoded))
        except ValueError:
            break
    if not certificates:
        return {}
    leaf = certificates[0]
    moment = (
        datetime.datetime.fromtimestamp(now, datetime.UTC)
        if now is not None
        else datetime.datetime.now(datetime.UTC)
    )
    expired = next((one for one in certificates if one.not_valid_after_utc < moment), None)
    described = [
        {"subject": _name(one.subject), "issuer": _name(one.issuer)} for one in certificates
    ]
    facts: dict[str, Any] = {
        "subject": described[0]["subject"],
        "issuer": described[0]["issuer"],
        "names": _names(leaf),
        "not_before": _instant(leaf.not_valid_before_utc),
        "not_after": _instant(leaf.not_valid_after_utc),
        "expired_since": _instant(expired.not_valid_after_utc) if expired else None,
        "expired_subject": _name(expired.subject) if expired else None,
        "self_signed": leaf.subject == leaf.issuer,
        "chain": described,
        "interceptor": _interceptor(described),
    }
    if code in (2, 20, 21) and len(certificates) == 1 and _lacks_intermediate(leaf):
        facts["diagnosis"] = "incomplete_chain"
    return facts


def _name(name: Any) -> str:
    return bounded(name.rfc4514_string(), 300)


def _instant(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _names(certificate: Any) -> list[str]:
    """The subjectAltName: DNS names and addresses; without one, nothing (the CN no longer counts)."""
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return []
    names = [one for one in extension.value if isinstance(one, (x509.DNSName, x509.IPAddress))]
    return [str(one.value) for one in names[:_NAMES_LIMIT]]


def _lacks_intermediate(leaf: Any) -> bool:
    """Was the leaf signed by an intermediate (which was not sent), rather than by a root?"""
    from cryptography import x509
    from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

    if leaf.subject == leaf.issuer:
        return False
    try:
        access = leaf.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
        if any(one.access_method == AuthorityInformationAccessOID.CA_ISSUERS for one in access):
            return True
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        pass
    common = [str(one.value) for one in leaf.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)]
    lowered = _name(leaf.issuer).lower()
    known = labels()
    return any(name in known.intermediate_names for name in common) or any(
        word in lowered for word in known.intermediate_words
    )


def _interceptor(chain: Sequence[Mapping[str, str]]) -> str | None:
    for one in chain:
        lowered = one["issuer"].lower()
        if any(word in lowered for word in labels().interceptors):
            return one["issuer"]
    return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def proxy_for(host: str | None) -> str | None:
    """The proxy that the environment names for HTTPS to `host`, without its credentials, else None."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        value = os.environ.get(name)
        if value:
            break
    else:
        return None
    for entry in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(","):
        pattern = entry.strip().lstrip(".").lower()
        lowered = (host or "").lower()
        if pattern == "*" or (pattern and (lowered == pattern or lowered.endswith(f".{pattern}"))):
            return None
    return clean_url(value if "://" in value else f"http://{value}")
