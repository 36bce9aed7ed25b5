"""``failwise tls``: one connection to a TLS peer, and what is wrong with it."""

import argparse
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from failwise.cli.terminal import (
    add_common,
    clean,
    console,
    facts,
    language,
    named,
    print_json,
    say,
)
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

_LABELS: Final[Mapping[str, str]] = {
    "hostname_mismatch": "wrong_host",
    "unknown_issuer": "untrusted_root",
    "client_certificate": "client_cert_required",
}
"""What evidence calls otherwise than this command does."""
_AGAIN: Final = frozenset({"closed", "reset", "timeout", "refused", "unreachable"})
"""Diagnoses after which the same connection may succeed soon."""
_LISTEN: Final = (0.3, 1.5)
"""Seconds, least and most, in which a peer that finished the handshake may still refuse us."""
_PEER: Final = re.compile(
    r"(?:https?://)?(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:/\[\]]+))(?::(\d{1,5}))?(?:/.*)?"
)

_EPILOG: Final = """\
examples:
  failwise tls api.example.com
  failwise tls localhost:8443 --json

One connection is made, by the roots this machine trusts (SSL_CERT_FILE is honoured); nothing is sent
after the handshake. With --json: {"diagnosis": label, "retry": true|false, ...}; labels are ok, expired,
not_yet_valid, wrong_host, self_signed, untrusted_root, incomplete_chain, weak_signature, weak_key,
wrong_purpose, invalid_ca, revoked, unverified, protocol_version, no_common_cipher,
client_cert_required, unrecognized_name, plain_http, not_tls, closed, reset, timeout, refused,
unreachable, dns, handshake. The exit code is 1 for all but ok."""


@record
class Diagnosis:
    """What one connection showed. `facts` as in `failwise.evidence.tls.certificate_facts`."""

    host: str
    port: int
    label: str
    facts: Mapping[str, Any]
    cipher: str | None = None
    failure: Failure | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("peer", metavar="HOST[:PORT]", help="whom to connect to (port 443)")
    parser.add_argument(
        "--timeout", type=float, default=3.0, metavar="SECONDS", help="for each step (default: 3)"
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Connect once and say what was seen; 1 unless all is well."""
    if not 0 < arguments.timeout <= 60:
        raise UsageError(f"--timeout {arguments.timeout:g}: say seconds, above 0 and up to 60")
    host, port = _parsed(arguments.peer)
    found = diagnose(host, port, timeout=arguments.timeout)
    if arguments.json:
        print_json(_data(found))
    else:
        _show(found, language(arguments.lang))
    return 0 if found.label == "ok" else 1


def diagnose(host: str, port: int, *, timeout: float) -> Diagnosis:
    """Connect to a peer once. `timeout` (seconds) holds for connecting and for the handshake."""
    from failwise.evidence.tls import capturing_context, certificate_facts

    try:
        began = time.monotonic()
        with socket.create_connection((host, port), timeout=timeout) as connection:
            trip = time.monotonic() - began
            with capturing_context().wrap_socket(connection, server_hostname=host) as secured:
                _listen(secured, trip)
                certificate = secured.getpeercert(binary_form=True)
                cipher = secured.cipher()
                chain = (certificate,) if certificate else ()
                facts = certificate_facts(chain, host=host, protocol=secured.version())
        return Diagnosis(host, port, "ok", facts, cipher[0] if cipher else None)
    except (OSError, UnicodeError) as error:
        return _failed(host, port, error)


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


def _failed(host: str, port: int, error: Exception) -> Diagnosis:
    from failwise.classify import classify_exception
    from failwise.evidence.tls import facts_of_exception

    facts = facts_of_exception(error, host=host) if isinstance(error, ssl.SSLError) else {}
    return Diagnosis(
        host, port, _label(error, facts), facts, failure=classify_exception(error, tool="tls")
    )


def _label(error: Exception, facts: Mapping[str, Any]) -> str:
    match error:
        case ssl.SSLError():
            diagnosis = str(facts.get("diagnosis", "handshake"))
            return _LABELS.get(diagnosis, diagnosis)
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


def _parsed(peer: str) -> tuple[str, int]:
    found = _PEER.fullmatch(peer)
    port = int(found[3] or 443) if found else 0
    if found is None or not 0 < port < 65536:
        raise UsageError(f"{peer!r}: write HOST, HOST:PORT or [ADDRESS]:PORT")
    return found[1] or found[2], port


def _data(found: Diagnosis) -> dict[str, Any]:
    failure = found.failure
    return {
        "host": found.host,
        "port": found.port,
        "diagnosis": found.label,
        "retry": found.label in _AGAIN,
        "code": failure.code if failure else None,
        "effect": failure.effect.value if failure else None,
        "remedy": failure.remedy if failure else None,
        "cipher": found.cipher,
        "facts": {
            name: value for name, value in found.facts.items() if name not in ("diagnosis", "host")
        },
    }


def _show(found: Diagnosis, lang: Language) -> None:
    out = console()
    peer = f"{found.host}:{found.port}"
    if found.label == "ok":
        out.print(clean(say(lang, "tls_ok", peer=peer)), style="bold green")
    else:
        meaning = named(lang, "diagnosis", found.label)
        out.print(clean(say(lang, "tls_bad", peer=peer, meaning=meaning)), style="bold red")
    out.print(facts(_rows(found, lang)))


def _rows(found: Diagnosis, lang: Language) -> Iterator[tuple[str, object]]:
    from failwise.vocabulary import words

    seen = found.facts
    if found.failure is not None:
        yield say(lang, "code"), found.failure.code
        yield say(lang, "remedy"), words.remedy(found.failure, lang)
        again = "retry_yes" if found.label in _AGAIN else "retry_no"
        yield say(lang, "retry"), say(lang, again)
    yield say(lang, "certificate"), seen.get("subject")
    yield say(lang, "issuer"), seen.get("issuer")
    yield say(lang, "names"), ", ".join(seen.get("names") or ())
    if seen.get("not_after"):
        yield say(lang, "valid"), _valid(seen, lang)
    sent = seen.get("chain") or ()
    if len(sent) > 1:
        yield say(lang, "chain"), " ← ".join(one["subject"] for one in sent)
    yield say(lang, "interceptor"), seen.get("interceptor")
    yield say(lang, "protocol"), seen.get("protocol")
    yield say(lang, "cipher"), found.cipher
    yield say(lang, "proxy_note"), seen.get("proxy")
    if seen.get("verify_text"):
        yield "OpenSSL", f"{seen['verify_text']} ({seen.get('verify_code')})"


def _valid(seen: Mapping[str, Any], lang: Language) -> str:
    import datetime

    start, end = str(seen["not_before"]), str(seen["not_after"])
    left = datetime.datetime.fromisoformat(end) - datetime.datetime.now(datetime.UTC)
    if left.total_seconds() > 0:
        return say(lang, "expires_in", start=start[:10], end=end[:10], days=left.days)
    return say(lang, "valid_value", start=start, end=end)
