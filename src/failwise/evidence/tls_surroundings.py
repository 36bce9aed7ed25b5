"""What stands around a TLS connection here: root certificates, the clock, a proxy."""

import datetime
import ipaddress
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from failwise.evidence.bounds import clean_url
from failwise.evidence.tls_labels import labels

CLOCK_TOLERANCE: Final = 300.0
"""Seconds by which two clocks may differ without being called wrong (as Kerberos has it)."""

_OF_THE_ISSUER: Final = frozenset({"untrusted_root", "incomplete_chain", "unverified"})
_OF_THE_TIME: Final = frozenset({"expired", "not_yet_valid"})


def root_store(context: ssl.SSLContext) -> dict[str, Any]:
    """Which root certificates a context has to check with, as plain JSON data.

    ``count`` of those loaded, ``looked_for`` (where OpenSSL takes them from), ``missing``: there are
    none at all, neither loaded nor in a folder from which OpenSSL would take them.
    """
    paths = ssl.get_default_verify_paths()
    file = os.environ.get(paths.openssl_cafile_env) or paths.openssl_cafile
    folder = os.environ.get(paths.openssl_capath_env) or paths.openssl_capath
    count = context.cert_store_stats()["x509_ca"]
    return {
        "count": count,
        "looked_for": [place for place in (file, folder) if place],
        "missing": count == 0 and not _has_entries(folder),
    }


def _has_entries(folder: str | None) -> bool:
    try:
        return folder is not None and next(Path(folder).iterdir(), None) is not None
    except OSError:
        return False


def clock_facts(now: float, peer_time: float | None = None) -> dict[str, Any]:
    """What is known of this machine's clock, as plain JSON data; times in epoch seconds.

    ``now`` (RFC 3339), ``peer_time`` (what the peer's ``Date`` said, else None), ``off_by``: seconds
    by which this clock is ahead of the peer's (negative: behind; None: not known), ``wrong``: it
    differs from the peer's, or it stands before the day on which this package was made.
    """
    off = None if peer_time is None else round(now - peer_time, 1)
    return {
        "now": instant(datetime.datetime.fromtimestamp(now, datetime.UTC)),
        "peer_time": None
        if peer_time is None
        else instant(datetime.datetime.fromtimestamp(peer_time, datetime.UTC)),
        "off_by": off,
        "wrong": now < labels().clock_floor or (off is not None and abs(off) > CLOCK_TOLERANCE),
    }


def with_surroundings(
    facts: dict[str, Any],
    now: float,
    roots: Mapping[str, Any] | None = None,
    peer_time: float | None = None,
) -> dict[str, Any]:
    """The facts of a handshake, and its diagnosis where the surroundings explain it.

    Adds ``roots`` where an issuer was not found, ``clock`` where a date was not right.
    """
    diagnosis = facts["diagnosis"]
    if diagnosis in _OF_THE_ISSUER:
        if roots is not None:
            facts["roots"] = dict(roots)
        if roots is not None and roots["missing"]:
            facts["diagnosis"] = "no_root_store"
        elif facts.get("interceptor"):
            facts["diagnosis"] = "intercepted"
    elif diagnosis in _OF_THE_TIME:
        clock = facts["clock"] = clock_facts(now, peer_time)
        if clock["wrong"] and _in_date(facts, now if peer_time is None else peer_time):
            facts["diagnosis"] = "clock_off"
    return facts


def _in_date(facts: Mapping[str, Any], moment: float) -> bool:
    """Is every certificate of the chain in date at that moment? A clock before the floor can make
    certificates look too young, never too old."""
    if facts["clock"]["peer_time"] is None:
        return bool(facts["diagnosis"] == "not_yet_valid")
    then = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    dates = [(one["not_before"], one["not_after"]) for one in facts.get("chain") or ()]
    return bool(dates) and all(
        datetime.datetime.fromisoformat(begin) <= then <= datetime.datetime.fromisoformat(end)
        for begin, end in dates
    )


def instant(moment: datetime.datetime) -> str:
    """RFC 3339 in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_address(host: str) -> bool:
    """An IP address rather than a name?"""
    try:
        ipaddress.ip_address(host.strip("[]").partition("%")[0])
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


def s_client_line(host: str, port: int) -> str:
    """The command with which a person sees the same peer: SNI is sent for names, never for addresses."""
    import shlex

    bare = host.strip("[]")
    place = f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"
    name = "-noservername" if is_address(bare) else f"-servername {shlex.quote(bare)}"
    return f"openssl s_client -connect {shlex.quote(place) if '[' not in place else repr(place)} {name}"
