"""Claims in PostgreSQL: held by locks on their keys, decided by the ledger, stored in one go."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal import rows
from failwise.journal.ledger import (
    CLAIM_COLUMNS,
    TOLD_A_FAILURE,
    Grant,
    storable,
    stored_claim,
)
from failwise.journal.requests import Claiming
from failwise.vocabulary.ports import Clock

if TYPE_CHECKING:
    from psycopg import Connection

_COLUMNS = ", ".join(CLAIM_COLUMNS)
_TOLD_A_FAILURE = TOLD_A_FAILURE.replace("%", "%%")
_LOCK_KEYS = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS keys(key)"
_FOUND = (
    f"SELECT extract(epoch FROM clock_timestamp())::float8, {_COLUMNS}"  # noqa: S608 (constants)
    " FROM (SELECT 1) AS one LEFT JOIN claims ON key = ANY (%s::text[])"
)
_OPEN = (
    f"SELECT {_COLUMNS} FROM claims WHERE (state IN ('claimed', 'unknown')"  # noqa: S608
    f" OR (state = 'done' AND result LIKE '{_TOLD_A_FAILURE}')) AND (run_id, fingerprint) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
)
_NEW = f"""
WITH held AS MATERIALIZED (
  SELECT pg_advisory_xact_lock(%s),
    coalesce(%s::float8, extract(epoch FROM clock_timestamp())::float8) AS now
)
INSERT INTO claims (key, run_id, fingerprint, tool, call_id, state, owner, claimed_at, lease_until,
  generation, arguments)
SELECT %s::text, %s::text, %s::text, %s, %s, 'claimed', %s, now, now + %s::float8, 1, %s FROM held
WHERE NOT EXISTS (
  SELECT 1 FROM claims WHERE run_id = %s AND run_id <> '' AND fingerprint = %s AND key <> %s
    AND (state = 'unknown' OR (state = 'claimed' AND (lease_until <= now OR owner <> %s))
      OR (state = 'done' AND result LIKE '{_TOLD_A_FAILURE}')))
ON CONFLICT (key) DO NOTHING
"""  # noqa: S608 (constants)
"""A key that nobody claimed before, in a run that holds no open effect like it: the common case, in
one statement. It holds the key's lock, as every change of a claim does."""
_GRANT = (
    "INSERT INTO claims (key, run_id, fingerprint, tool, call_id, state, owner, claimed_at,"
    " lease_until, generation, arguments) VALUES (%s,%s,%s,%s,%s,'claimed',%s,%s,%s,%s,%s)"
    " ON CONFLICT (key) DO UPDATE SET state='claimed', owner=excluded.owner,"
    " claimed_at=excluded.claimed_at, lease_until=excluded.lease_until,"
    " generation=excluded.generation, arguments=excluded.arguments, settled_at=NULL, result=NULL"
)
_SETTLE = "UPDATE claims SET state=%s, settled_at=%s, result=coalesce(%s, result) WHERE key=%s"
_PREVENTED = (
    "INSERT INTO prevented (at, key, run_id, tool, call_id, state) VALUES (%s,%s,%s,%s,%s,%s)"
)


def grant_new(
    connection: "Connection[Any]", item: Claiming, arguments: str | None, clock: Clock | None
) -> bool:
    """Grant a claim that nothing stands against, as `decide_claim` would; False for any other."""
    step = item.step
    key, run_id, fingerprint, tool, call_id, owner, kept = map(
        storable,
        (step.key, step.run_id, step.fingerprint, step.tool, step.call_id, item.owner, arguments),
    )
    now = clock.time() if clock is not None else None
    claim = (key, run_id, fingerprint, tool, call_id, owner, item.lease, kept)
    found = connection.execute(
        _NEW, (_lock_number(key), now, *claim, run_id, fingerprint, key, owner)
    )
    return found.rowcount == 1


def load(
    connection: "Connection[Any]",
    keys: set[str],
    runs: set[tuple[str, str]],
    clock: Clock | None,
) -> "tuple[Claims, float]":
    """Begin a transaction that holds these keys, and load their claims and those of these (run,
    fingerprint): one round trip. Gives them, and the time: the server's, unless a clock is given.

    The locks are a statement of their own, so that the next one sees what was committed meanwhile.
    """
    ordered = sorted(keys)
    some_runs = [run for run, _ in runs], [fingerprint for _, fingerprint in runs]
    with connection.pipeline():
        connection.execute("BEGIN")
        connection.execute(_LOCK_KEYS, (sorted(map(_lock_number, ordered)),))
        found = connection.execute(_FOUND, (ordered,))
        opened = connection.execute(_OPEN, some_runs) if runs else None
    found_rows = found.fetchall()
    table = Claims(
        [row[1:] for row in found_rows if row[1] is not None],
        opened.fetchall() if opened is not None else [],
    )
    return table, clock.time() if clock is not None else found_rows[0][0]


class Claims:
    """The claims that a batch is about, loaded; changes are kept in order and stored at the end."""

    def __init__(self, found: Sequence[Sequence[Any]], opened: Sequence[Sequence[Any]]) -> None:
        self._by_key: dict[str, StoredClaim] = {}
        for row in (*opened, *found):
            claim = stored_claim(row)
            if claim is not None:
                self._by_key[claim.key] = claim
        self._changes: list[tuple[str, tuple[Any, ...]]] = []

    def find(self, key: str) -> StoredClaim | None:
        return self._by_key.get(key)

    def find_open(
        self, run_id: str, fingerprint: str, key: str, now: float, owner: str
    ) -> StoredClaim | None:
        fitting = [
            claim
            for claim in self._by_key.values()
            if claim.run_id == run_id
            and claim.fingerprint == fingerprint
            and claim.key != key
            and claim.stands_against(owner, now)
        ]
        return min(fitting, key=lambda claim: claim.claimed_at, default=None)

    def grant(self, grant: Grant) -> None:
        values = tuple(getattr(grant, name) for name in Grant.__slots__)  # type: ignore[attr-defined]
        self._changes.append((_GRANT, values))
        self._by_key[grant.key] = StoredClaim(
            grant.key,
            grant.run_id,
            grant.fingerprint,
            grant.tool,
            grant.call_id,
            "claimed",
            grant.owner,
            grant.claimed_at,
            grant.lease_until,
            grant.generation,
        )

    def settle(self, key: str, state: Settled, now: float, result: str | None) -> None:
        from dataclasses import replace

        before = self._by_key[key]
        kept = rows.result_from_json(result, before.tool) or before.result
        self._by_key[key] = replace(before, state=state, settled_at=now, result=kept)
        self._changes.append((_SETTLE, (state, now, result, key)))

    def prevent(self, now: float, ids: Sequence[str], state: str) -> None:
        self._changes.append((_PREVENTED, (now, *ids, state)))

    def store(self, connection: "Connection[Any]") -> None:
        """Write the changes and commit: one round trip."""
        with connection.pipeline():
            for sql, values in self._changes:
                connection.execute(sql, [storable(value) for value in values])
            connection.execute("COMMIT")


def _lock_number(key: str) -> int:
    from hashlib import blake2b

    return int.from_bytes(
        blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), signed=True
    )
