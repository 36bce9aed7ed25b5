"""What people are shown of the shared state: one row per upstream and credential."""

from collections.abc import Sequence
from typing import Any, Final

from failwise.guards.names import Names, digest, named, parsed, pattern
from failwise.guards.settings import GuardSettings
from failwise.guards.wire import Wire

_MOST: Final = 10_000
_AT_ONCE: Final = 100


def rows(
    wire: Wire,
    namespace: str,
    settings: GuardSettings,
    known: Sequence[Names],
    now: str,
) -> list[dict[str, Any]]:
    """Rows as of `MemoryGuards.statistics`, those in trouble first; opens and closes `wire`.

    `known` names what may have no key of its own yet, and credentials by more than their digest.
    Raises `Gone` where the server does not answer.
    """
    seen = {names.key: names for names in known}
    try:
        wire.open()
        for key in wire.keys(pattern(namespace), _MOST):
            found = parsed(key)
            if found is not None and key.decode() not in seen:
                upstream, mark = found
                credential = None if mark == digest(None) else f"#{mark}"
                stem = key.decode().rpartition(":key:")[0]
                names = named(upstream, credential, settings.of(upstream), stem, mark)
                seen[names.key] = names
        looks = list(seen.values())
        replies: list[Any] = []
        for start in range(0, len(looks), _AT_ONCE):
            replies += wire.exchange(
                [names.command("look", now, "") for names in looks[start : start + _AT_ONCE]]
            )
    finally:
        wire.drop()
    each = [_row(names, reply) for names, reply in zip(looks, replies, strict=True)]
    each.sort(key=lambda row: (not _troubled(row), row["upstream"], row["credential"] or ""))
    return each


def _row(names: Names, reply: Sequence[bytes]) -> dict[str, Any]:
    text = [part.decode("ascii") for part in reply]
    now, quota, held, opens, probe, probe_began, run, weight, ill = text[:9]
    settings = names.settings
    circuit, wait = "closed", 0.0
    if opens:
        circuit = "half_open" if probe else "open"
        until = float(probe_began) + settings.breaker.open_seconds if probe else float(opens)
        wait = max(0.0, until - float(now))
    return {
        "upstream": names.upstream,
        "credential": names.credential,
        "circuit": circuit,
        "opens_in": wait,
        "failures_in_row": int(run or 0),
        "failure_share": float(ill) / float(weight) if float(weight or 0) else 0.0,
        "quota": int(quota) if quota else settings.retries.capacity,
        "quota_capacity": settings.retries.capacity,
        "cool_down": max(0.0, float(held) - float(now)) if held else 0.0,
        "in_flight": int(text[9]),
        "limit": settings.concurrency,
        "waiting": int(text[11]),
        "retrying": int(text[10]),
    }


def _troubled(row: dict[str, Any]) -> bool:
    return bool(row["circuit"] != "closed" or row["cool_down"] > 0)
