"""``failwise tls``: one connection to a TLS peer, and what is wrong with it."""

import argparse
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.terminal import (
    add_common,
    clean,
    console,
    facts,
    language,
    print_json,
    say,
)
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.evidence.tls_probe import TlsDiagnosis

_PEER: Final = re.compile(
    r"(?:https?://)?(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:/\[\]]+))(?::(\d{1,5}))?(?:/.*)?"
)

_EPILOG: Final = """\
examples:
  failwise tls api.example.com
  failwise tls localhost:8443 --json
  failwise tls api.example.com --clock        also compare this machine's clock with the peer's

One connection is made, by the roots this machine trusts (SSL_CERT_FILE and --ca-file are honoured);
nothing is sent after the handshake. With --json: {"diagnosis": label, "retry": true|false, "tcp": ...,
"tls": ..., ...}; labels are ok, expired, not_yet_valid, clock_off, wrong_host, self_signed,
untrusted_root, intercepted, no_root_store, incomplete_chain, weak_signature, weak_key, wrong_purpose,
invalid_ca, revoked, unverified, protocol_version, no_common_cipher, client_cert_required,
unrecognized_name, plain_http, not_tls, closed, reset, timeout, refused, unreachable, dns, handshake.
The exit code is 1 for all but ok."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("peer", metavar="HOST[:PORT]", help="whom to connect to (port 443)")
    parser.add_argument(
        "--timeout", type=float, default=3.0, metavar="SECONDS", help="for each step (default: 3)"
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", help="trust the roots in this PEM file, and no others"
    )
    parser.add_argument(
        "--clock",
        action="store_true",
        help="where a date is wrong, ask the peer for its time (a second connection)",
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Connect once and say what was seen; 1 unless all is well."""
    from failwise.evidence.tls_probe import diagnose_tls

    if not 0 < arguments.timeout <= 60:
        raise UsageError(f"--timeout {arguments.timeout:g}: say seconds, above 0 and up to 60")
    host, port = _parsed(arguments.peer)
    found = diagnose_tls(
        host, port, timeout=arguments.timeout, ca_file=arguments.ca_file, clock=arguments.clock
    )
    if arguments.json:
        print_json(found.to_dict())
    else:
        _show(found, language(arguments.lang))
    return 0 if found.ok else 1


def _parsed(peer: str) -> tuple[str, int]:
    found = _PEER.fullmatch(peer)
    port = int(found[3] or 443) if found else 0
    if found is None or not 0 < port < 65536:
        raise UsageError(f"{peer!r}: write HOST, HOST:PORT or [ADDRESS]:PORT")
    return found[1] or found[2], port


def _show(found: "TlsDiagnosis", lang: Language) -> None:
    out = console()
    peer = f"{found.host}:{found.port}"
    if found.ok:
        out.print(clean(say(lang, "tls_ok", peer=peer)), style="bold green")
    else:
        meaning = found.meaning(lang)
        out.print(clean(say(lang, "tls_bad", peer=peer, meaning=meaning)), style="bold red")
    out.print(facts(_rows(found, lang)))


def _rows(found: "TlsDiagnosis", lang: Language) -> Iterator[tuple[str, object]]:
    seen = found.facts
    yield "TCP", _tcp(found, lang)
    if seen["tcp"]:
        yield "TLS", say(lang, "tls_held" if seen["tls"] else "tls_not_held")
    if not found.ok:
        yield say(lang, "code"), found.code
        yield say(lang, "remedy"), found.remedy(lang)
        yield say(lang, "retry"), say(lang, "retry_yes" if found.retry else "retry_no")
    yield say(lang, "names"), ", ".join(seen.get("names") or ())
    if seen.get("not_after"):
        yield say(lang, "valid"), _valid(seen, lang)
    for number, line in enumerate(found.chain()):
        yield say(lang, "chain") if number == 0 else "", line
    yield say(lang, "interceptor"), seen.get("interceptor")
    yield from _surroundings(seen, lang)
    yield say(lang, "protocol"), seen.get("protocol")
    yield say(lang, "cipher"), found.cipher
    if seen.get("verify_text"):
        yield "OpenSSL", f"{seen['verify_text']} ({seen.get('verify_code')})"
    yield say(lang, "by_hand"), found.command


def _tcp(found: "TlsDiagnosis", lang: Language) -> str:
    if not found.facts["tcp"]:
        return say(lang, "tcp_not_held")
    address = found.facts.get("address") or f"{found.host}:{found.port}"
    return say(lang, "tcp_held", address=address, milliseconds=f"{found.connect_ms:g}")


def _surroundings(seen: Mapping[str, Any], lang: Language) -> Iterator[tuple[str, object]]:
    """This machine's part: its clock, its roots, the proxy that it names."""
    clock = seen.get("clock")
    if clock:
        off = clock["off_by"]
        yield (
            say(lang, "clock"),
            say(lang, "clock_here", now=clock["now"])
            if off is None
            else say(lang, "clock_both", now=clock["now"], peer=clock["peer_time"], off=f"{off:g}"),
        )
    roots = seen.get("roots")
    if roots:
        yield (
            say(lang, "roots"),
            say(lang, "roots_value", count=roots["count"], places=", ".join(roots["looked_for"])),
        )
    yield say(lang, "proxy_note"), seen.get("proxy")


def _valid(seen: Mapping[str, Any], lang: Language) -> str:
    import datetime

    start, end = str(seen["not_before"]), str(seen["not_after"])
    left = datetime.datetime.fromisoformat(end) - datetime.datetime.now(datetime.UTC)
    if left.total_seconds() > 0:
        return say(lang, "expires_in", start=start[:10], end=end[:10], days=left.days)
    return say(lang, "valid_value", start=start, end=end)
