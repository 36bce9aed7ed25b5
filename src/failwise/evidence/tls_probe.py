"""One connection to a TLS peer, and what is wrong with it: as data, in a sentence, with a remedy."""

import datetime
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from failwise.evidence.tls import (
    ATTRIBUTE,
    Handshake,
    address_of,
    capturing_context,
    chain_of,
    facts_of_exception,
)
from failwise.evidence.tls_certificates import certificate_facts
from failwise.evidence.tls_labels import remedies, words_of
from failwise.evidence.tls_surroundings import proxy_for, s_client_line, with_surroundings
from failwise.vocabulary import words
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

_LISTEN: Final = (0.3, 1.5)
"""Seconds, least and most, in which a peer that finished the handshake may still refuse us."""
_DATED: Final = frozenset({"expired", "not_yet_valid", "clock_off"})
_HEAD_LIMIT: Final = 16_384
_DATE: Final = re.compile(rb"^date:[ \t]*([ -~]{1,64})\r?$", re.IGNORECASE | re.MULTILINE)


@record
class TlsDiagnosis:
    """What a connection to `host` and `port` showed.

    `facts` is plain JSON data: see `failwise.evidence.tls_certificates.certificate_facts`. ``tcp`` and
    ``tls`` in it are two facts: that the connection stood, and that the handshake held. `cipher` was
    agreed on, `connect_ms` is how long connecting took (None: it did not), `handshake` what the facts
    were read from, where there was one.
    """

    host: str
    port: int
    facts: Mapping[str, Any]
    cipher: str | None = None
    connect_ms: float | None = None
    handshake: Handshake | None = None

    @property
    def diagnosis(self) -> str:
        """The label: ``ok``, ``expired``, ``wrong_host``, ... (``failwise tls --help`` lists them)."""
        return str(self.facts["diagnosis"])

    @property
    def ok(self) -> bool:
        """The peer is who it says, by the roots this machine trusts."""
        return self.diagnosis == "ok"

    @property
    def retry(self) -> bool:
        """The same connection, unchanged, may succeed soon."""
        return words_of(self.facts).retry

    @property
    def code(self) -> str | None:
        """The code of a failure of this kind (``security.certificate_expired``); None where all is well."""
        if self.ok:
            return None
        if self.diagnosis == "clock_off":
            kind = "not_yet_valid" if self.facts.get("verify_code") in (9, 13) else "expired"
            return f"security.certificate_{kind}"
        return words_of(self.facts).code or "security.handshake"

    @property
    def command(self) -> str:
        """The ``openssl`` line with which a person sees the same."""
        return s_client_line(self.host, self.port)

    def meaning(self, lang: Language = "en") -> str:
        """What is wrong, in a sentence."""
        return words_of(self.facts).meaning[lang]

    def remedy(self, lang: Language = "en") -> str | None:
        """What to do, in a sentence; None where all is well."""
        code = self.code
        if code is None:
            return None
        failure = Failure(
            category_of(code),
            code,
            effect=Effect.NOT_SENT,
            details={"certificate": self.facts, "host": self.host},
            remedies=remedies(self.facts),
        )
        return words.remedy(failure, lang)

    def chain(self) -> Iterator[str]:
        """The chain as a person reads it, a certificate a line, the server's own first."""
        sent = self.facts.get("chain") or ()
        for number, one in enumerate(sent):
            dates = f"{one['not_before'][:10]} to {one['not_after'][:10]}"
            made = ", ".join(filter(None, (one["key"], one["signature"])))
            yield f"{number}  {one['subject']}  ({dates}; {made})"
        if sent and sent[-1]["subject"] != sent[-1]["issuer"]:
            yield f"↑  {sent[-1]['issuer']}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, with meaning and remedy in both languages."""
        return {
            "host": self.host,
            "port": self.port,
            "diagnosis": self.diagnosis,
            "retry": self.retry,
            "tcp": self.facts["tcp"],
            "tls": self.facts["tls"],
            "code": self.code,
            "effect": None if self.ok else Effect.NOT_SENT.value,
            "meaning": {lang: self.meaning(lang) for lang in ("en", "zh")},
            "remedy": self.remedy(),
            "remedies": None if self.ok else {"en": self.remedy("en"), "zh": self.remedy("zh")},
            "cipher": self.cipher,
            "connect_ms": self.connect_ms,
            "command": self.command,
            "facts": {
                name: value
                for name, value in self.facts.items()
                if name not in ("diagnosis", "host", "tcp", "tls")
            },
        }


def diagnose_tls(
    host: str,
    port: int = 443,
    *,
    timeout: float = 3.0,
    ca_file: str | None = None,
    clock: bool = False,
) -> TlsDiagnosis:
    """Connect to a TLS peer once, say what is wrong with it, and send nothing.

    The peer is checked by the roots in `ca_file`, else those this machine trusts (``SSL_CERT_FILE`` is
    honoured). `timeout` in seconds holds for connecting and for the handshake each. `clock`: where
    a date is what is wrong, ask the peer for its time over a second, unverified connection (an
    HTTP ``HEAD``, of which only the ``Date`` is read), to tell a wrong clock from a wrong certificate.
    A proxy named by the environment is reported, not used. Never raises for what the peer does;
    raises `UsageError` for a port, a time or a file that cannot be.
    """
    host = host.strip().strip("[]")
    if not host or not 0 < port < 65_536:
        raise UsageError(f"diagnose_tls({host!r}, {port}): give a host and a port from 1 to 65535")
    if not timeout > 0:
        raise UsageError(f"diagnose_tls(timeout={timeout!r}): give seconds above 0")
    found = _connected(host, port, timeout, _trusting(ca_file))
    if clock and found.diagnosis in _DATED:
        peer_time = _peer_time(host, port, timeout)
        if peer_time is not None:
            label = "not_yet_valid" if found.facts.get("verify_code") in (9, 13) else "expired"
            facts = {**found.facts, "diagnosis": label}
            return TlsDiagnosis(
                host,
                port,
                with_surroundings(facts, time.time(), peer_time=peer_time),
                found.cipher,
                found.connect_ms,
                found.handshake,
            )
    return found


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    try:
        return capturing_context(ssl.create_default_context(cafile=ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"ca_file={ca_file!r} cannot be read: {error}") from error


def _connected(host: str, port: int, timeout: float, context: ssl.SSLContext) -> TlsDiagnosis:
    began = time.monotonic()
    connect_ms: float | None = None
    seen: Handshake | None = None
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            trip = time.monotonic() - began
            connect_ms = round(trip * 1000, 1)
            address = address_of(connection)  # a peer that refuses us may be gone soon
            with context.wrap_socket(connection, server_hostname=host) as secured:
                seen = Handshake(chain_of(secured), host, address, secured.version())
                _listen(secured, trip)
                cipher = secured.cipher()
        facts = certificate_facts(
            seen.chain, host=host, address=seen.address, protocol=seen.protocol, held=True
        )
        return TlsDiagnosis(host, port, facts, cipher[0] if cipher else None, connect_ms, seen)
    except (OSError, UnicodeError) as error:
        captured = getattr(error, ATTRIBUTE, seen)
        if captured is not None:
            setattr(error, ATTRIBUTE, captured)
        facts = _failed(host, error, connect_ms)
        return TlsDiagnosis(host, port, facts, None, connect_ms, captured)


def _listen(secured: ssl.SSLSocket, trip: float) -> None:
    """Hear the refusal that TLS 1.3 lets a server send after our side of the handshake is done.

    `trip` is a round trip in seconds; that a peer says nothing, or closes, is well.
    """
    least, most = _LISTEN
    secured.settimeout(min(most, max(least, 4 * trip)))
    try:
        secured.recv(1)
    except (TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError):
        return


def _failed(host: str, error: Exception, connect_ms: float | None) -> dict[str, Any]:
    if isinstance(error, ssl.SSLError):
        return facts_of_exception(error, host=host)
    return {
        "host": host,
        "tcp": connect_ms is not None,
        "tls": False,
        "proxy": proxy_for(host),
        "diagnosis": _label(error),
        "error": str(error)[:300],
    }


def _label(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case ConnectionRefusedError():
            return "refused"
        case ConnectionError():
            return "reset"
        case socket.gaierror() | UnicodeError():
            return "dns"
        case _:
            return "unreachable"


def _peer_time(host: str, port: int, timeout: float) -> float | None:
    """The peer's ``Date`` in epoch seconds, from an HTTP answer of which nothing else is believed."""
    from email.utils import parsedate_to_datetime

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # a date is asked for, and nothing else is sent or believed
    request = f"HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode(
        "ascii", "ignore"
    )
    until = time.monotonic() + timeout
    try:
        with (
            socket.create_connection((host, port), timeout=timeout) as connection,
            context.wrap_socket(connection, server_hostname=host) as secured,
        ):
            secured.sendall(request)
            head = b""
            while len(head) < _HEAD_LIMIT and b"\r\n\r\n" not in head and time.monotonic() < until:
                piece = secured.recv(4_096)
                if not piece:
                    break
                head += piece
    except (OSError, UnicodeError):
        return None
    found = _DATE.search(head)
    if found is None:
        return None
    try:
        moment = parsedate_to_datetime(found[1].decode("ascii"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()
