"""Certificate facts of a failed TLS handshake, from the one connection that failed.

Python's `SSLCertVerificationError` says which check failed, but keeps nothing of the certificate.
`capturing_context()` makes a context whose connections leave the chain the peer sent on the
exception, so that nobody has to connect a second time to look. `facts_of_exception` reads it.
"""

import re
import socket
import ssl
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final

from failwise.evidence.tls_certificates import CHAIN_LIMIT, certificate_facts
from failwise.evidence.tls_surroundings import root_store
from failwise.vocabulary.records import record

ATTRIBUTE: Final = "failwise_tls"
"""The attribute of an exception under which the captured handshake is kept."""

_DER: Final = 2  # _ssl.ENCODING_DER
_HOST_IN_TEXT = re.compile(r"certificate is not valid for '([^']{1,253})'")


@record
class Handshake:
    """What was captured of a failed handshake.

    `chain` holds the certificates as sent (DER, leaf first), `host` the name that was to be
    verified, `address` the peer's (``192.0.2.1:443``), `next_bytes` what the peer sent on, `roots`
    what there was to check with (see `root_store`). `probe`: it was seen over a connection made
    afterwards, to look, and this is what that one was called (``ok``: this machine's own roots trust
    the peer, the failed client uses others).
    """

    chain: tuple[bytes, ...]
    host: str | None
    address: str | None
    protocol: str | None
    next_bytes: bytes = b""
    roots: Mapping[str, Any] | None = None
    probe: str | None = None


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
            setattr(error, ATTRIBUTE, _captured(self, address_of(self), _peeked(self)))
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
    return Handshake(
        chain_of(connection),
        host or None,
        address,
        _protocol(connection),
        next_bytes,
        root_store(connection.context),
    )


def chain_of(connection: ssl.SSLSocket | ssl.SSLObject) -> tuple[bytes, ...]:
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
                for one in certificates[:CHAIN_LIMIT]
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


def address_of(connection: socket.socket) -> str | None:
    """The peer of a connected socket: ``192.0.2.1:443``, ``[2001:db8::1]:443``."""
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


def facts_of_exception(
    error: BaseException, *, host: str | None = None, now: float | None = None
) -> dict[str, Any]:
    """The facts of a failed handshake, as plain JSON data.

    From a connection of `capturing_context()` everything `certificate_facts` lists; else what the
    exception itself says: ``verify_code``, ``verify_text``, ``host``, ``diagnosis``. Facts that a probe
    (see `tls_probe`) left on the exception are given back as they are.
    """
    captured = getattr(error, ATTRIBUTE, None)
    if isinstance(captured, Mapping):
        return dict(captured)
    code = getattr(error, "verify_code", None)
    text = getattr(error, "verify_message", None)
    reason = f"{getattr(error, 'reason', '') or ''} {error}"
    handshake = captured if isinstance(captured, Handshake) else Handshake((), None, None, None)
    if host is None and handshake.host is None:
        named = _HOST_IN_TEXT.search(str(text or error))
        host = named.group(1) if named else None
    facts = certificate_facts(
        handshake.chain,
        host=handshake.host or host,
        address=handshake.address,
        protocol=handshake.protocol,
        verify_code=code if isinstance(code, int) else None,
        verify_text=text if isinstance(text, str) else None,
        reason=reason,
        next_bytes=handshake.next_bytes,
        roots=handshake.roots,
        now=now,
    )
    if handshake.probe is not None:
        facts["probe"] = handshake.probe
    return facts
