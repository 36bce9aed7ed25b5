"""What the shared state is called in the server, and what every question about it carries."""

import hashlib
import re
import struct
from typing import Final, TypeAlias

from failwise.guards.settings import GuardSettings
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

_LONGEST: Final = 200
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._:/-]")
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_KEY: Final = re.compile(rb"\{([^{}]{1,1000})\}:key:([0-9a-f-]{1,64})$")

Command: TypeAlias = tuple[str, int, bytes]
"""The name of a script; how many keys and arguments; these as the protocol writes them."""


@record
class Names:
    """One upstream with one credential: its four keys, in one slot of a cluster, and its figures.

    The upstream is the hash tag. Of the credential stands there a digest only.
    """

    upstream: str
    credential: str | None
    settings: GuardSettings
    queue: str
    key: str
    figures: bytes
    keys: bytes
    """The four keys as the protocol writes them."""

    def command(self, script: str, now: str, owner: str, *rest: "str | int") -> "Command":
        """A script's call: what every script takes, then its own arguments."""
        return script, 7 + len(rest), self.keys + bulk(now, owner, self.figures, *rest)


def checked_namespace(namespace: str) -> str:
    """A prefix for keys. Raises `UsageError`."""
    if not _NAMESPACE.fullmatch(namespace):
        raise UsageError(f"namespace={namespace!r}: letters, digits, '.', '_' and '-' only")
    return namespace


def names_of(
    namespace: str, upstream: str, credential: str | None, settings: GuardSettings
) -> Names:
    """The names for an upstream and credential; `settings` are the upstream's own."""
    stem = f"{namespace}:{{{tag(upstream)}}}"
    return named(upstream, credential, settings, stem, digest(credential))


def named(
    upstream: str, credential: str | None, settings: GuardSettings, stem: str, mark: str
) -> Names:
    """The names below a stem, for a credential with this digest."""
    load, owners, queue, key = (
        f"{stem}:{part}" for part in ("load", "owners", "queue", f"key:{mark}")
    )
    return Names(
        upstream,
        credential,
        settings,
        queue,
        key,
        _figures(settings),
        bulk(load, owners, queue, key),
    )


def bulk(*texts: "str | bytes | int") -> bytes:
    """Arguments as the protocol writes them (RESP: each with its length before it)."""
    parts: list[bytes] = []
    for one in texts:
        data = one if one.__class__ is bytes else str(one).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def pattern(namespace: str) -> str:
    """What all keys of upstreams with credentials look like."""
    return f"{namespace}:{{*}}:key:*"


def parsed(key: bytes) -> tuple[str, str] | None:
    """The upstream and the credential's digest in a key's name."""
    found = _KEY.search(key)
    if found is None:
        return None
    upstream = re.sub(rb"%([0-9A-F]{2})", lambda two: bytes([int(two[1], 16)]), found[1]).decode(
        "utf-8", "replace"
    )
    return upstream, found[2].decode("ascii")


def tag(upstream: str) -> str:
    """The upstream as a hash tag: no braces, bounded, readable for what is common."""
    plain = _PLAIN.sub(lambda one: "".join(f"%{byte:02X}" for byte in one[0].encode()), upstream)
    if len(plain) <= _LONGEST:
        return plain or "-"
    return f"{plain[:100]}~{hashlib.sha256(upstream.encode()).hexdigest()[:16]}"


def digest(credential: str | None) -> str:
    """A credential's part of the key."""
    if credential is None:
        return "-"
    return hashlib.sha256(credential.encode()).hexdigest()[:16]


def _figures(settings: GuardSettings) -> bytes:
    """In the order in which `scripts/common.lua` takes them apart."""
    retries, breaker, shared = settings.retries, settings.breaker, settings.shared
    figures = (
        retries.capacity,
        retries.success_gain,
        retries.floor,
        retries.first_share,
        retries.success_share,
        retries.window,
        retries.parallel_share,
        retries.parallel_floor,
        breaker.consecutive,
        breaker.chance,
        breaker.lone_attempts,
        breaker.ratio,
        breaker.sample,
        breaker.minimum,
        breaker.busy_sample,
        breaker.busy_seconds,
        breaker.open_seconds,
        breaker.open_limit,
        breaker.memory,
        settings.cool_down_limit,
        -1 if settings.concurrency is None else settings.concurrency,
        settings.waiting,
        shared.lease,
        shared.keep,
    )
    return struct.pack(f"<{len(figures)}d", *figures)
