"""The ledger of claims: batches of claims and settlements, decided by the rules of `effects`, over
whatever table an engine keeps them in."""

from collections.abc import Sequence
from typing import Any, Protocol

from failwise.effects.claims import Settled, StoredClaim, decide_claim, decide_settlement
from failwise.journal import rows
from failwise.journal.requests import Claiming, Settling
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.steps import Claimed

CLAIM_COLUMNS = (
    "key", "run_id", "fingerprint", "tool", "call_id", "state", "owner", "claimed_at",
    "lease_until", "generation", "settled_at", "result",
)  # fmt: skip
"""The columns of a claim in the order of `StoredClaim`."""

TOLD_A_FAILURE = '%"success":false%'
"""What the kept result of a claim is like (SQL), where its call ended in a failure; others may be too."""
_HELD = 100_000


@record
class Grant:
    """A claim to be written: its key is from now on being sent by `owner`."""

    key: str
    run_id: str
    fingerprint: str
    tool: str
    call_id: str
    owner: str
    claimed_at: float
    lease_until: float
    generation: int
    arguments: str | None


class Table(Protocol):
    """The claims inside one transaction. What was changed is found by whoever asks after."""

    def find(self, key: str) -> StoredClaim | None: ...

    def find_open(
        self, run_id: str, fingerprint: str, key: str, now: float, owner: str
    ) -> StoredClaim | None:
        """The oldest claim of the run with this fingerprint and another key that stands against a send
        by `owner` (`StoredClaim.stands_against`)."""
        ...

    def grant(self, grant: Grant) -> None: ...

    def settle(self, key: str, state: Settled, now: float, result: str | None) -> None: ...

    def prevent(self, now: float, ids: Sequence[str], state: str) -> None:
        """Note a send that did not happen: `ids` are key, run, tool, call."""
        ...


class Ledger:
    """One store's claims. It remembers which generation of a key this process holds."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def forget(self) -> None:
        """After a fork: what the parent holds is not the child's."""
        self._held.clear()

    def prepare(
        self, batch: Sequence[Claiming | Settling], redactor: rows.Redactor
    ) -> list[str | Exception | None]:
        """The JSON that each item brings, made before the transaction begins."""
        return [_prepared(item, redactor) for item in batch]

    def apply(
        self,
        batch: Sequence[Claiming | Settling],
        prepared: Sequence[str | Exception | None],
        table: Table,
        now: float,
    ) -> tuple[list[Claimed | Exception | None], list[tuple[str, int]]]:
        """Claims and settlements in order. Gives the answers, and what was granted: to be told to
        `hold` once it is committed."""
        granted: list[tuple[str, int]] = []
        answers: list[Claimed | Exception | None] = []
        for item, text in zip(batch, prepared, strict=True):
            if isinstance(text, Exception):
                answers.append(text)
            elif isinstance(item, Settling):
                self._settle(table, item, text, now)
                answers.append(None)
            else:
                answers.append(_claim(table, item, text, now, granted))
        return answers, granted

    def hold(self, granted: Sequence[tuple[str, int]]) -> None:
        """These generations are this process's own."""
        for key, generation in granted:
            self._held.pop(key, None)
            self._held[key] = generation
        while len(self._held) > _HELD:
            del self._held[next(iter(self._held))]

    def _settle(self, table: Table, item: Settling, result: str | None, now: float) -> None:
        existing = table.find(storable(item.key))
        if existing is None:
            return
        holder = self._held.get(item.key)
        if decide_settlement(existing, item.state, now, holder=holder):
            table.settle(existing.key, item.state, now, result)

    @staticmethod
    def resolve(table: Table, key: str, state: Settled, now: float) -> StoredClaim:
        """Settle an open effect by a person's word; gives back the claim as it was.

        Raises `UsageError` where there is no such claim, it is done, or it is being sent now.
        """
        existing = table.find(key)
        if existing is None:
            raise UsageError(f"no effect has the key {key}")
        if state != existing.state and not decide_settlement(existing, state, now):
            found = "is done" if existing.state == "done" else "is being sent just now"
            raise UsageError(f"effect {key} of {existing.tool} {found}: it cannot be {state}")
        table.settle(key, state, now, None)
        return existing


def _prepared(item: Claiming | Settling, redactor: rows.Redactor) -> str | Exception | None:
    try:
        if isinstance(item, Claiming):
            return rows.arguments_json(item.step.arguments, redactor)
        return rows.result_json(item.result, redactor) if item.result else None
    except Exception as error:
        # A settlement counts without its result; a claim nobody could settle later does not.
        return error if isinstance(item, Claiming) else None


def _claim(
    table: Table, item: Claiming, arguments: str | None, now: float, granted: list[tuple[str, int]]
) -> Claimed:
    step = item.step
    key, run_id, fingerprint, tool, call_id = map(
        storable, (step.key, step.run_id, step.fingerprint, step.tool, step.call_id)
    )
    existing = table.find(key)
    # Calls outside of any run have nothing in common.
    open_effect = table.find_open(run_id, fingerprint, key, now, item.owner) if run_id else None
    answer = decide_claim(existing, open_effect, step, now)
    if answer.state == "granted":
        generation = existing.generation + 1 if existing else 1
        until = now + item.lease
        table.grant(
            Grant(
                key,
                run_id,
                fingerprint,
                tool,
                call_id,
                item.owner,
                now,
                until,
                generation,
                arguments,
            )
        )
        granted.append((step.key, generation))
    elif answer.state != "in_flight":
        if open_effect is not None and open_effect.owed and answer.key == open_effect.key:
            table.settle(open_effect.key, "done", now, rows.known_done(open_effect.tool))
        table.prevent(now, (key, run_id, tool, call_id), answer.state)
    return answer


def stored_claim(row: Sequence[Any] | None) -> StoredClaim | None:
    """A row of `CLAIM_COLUMNS` as the rules read it."""
    if row is None:
        return None
    return StoredClaim(*[*row[:-1], rows.result_from_json(row[-1], row[3])])


def storable(value: Any) -> Any:
    """A value that every engine can keep: a lone surrogate is no UTF-8, NUL no text of
    PostgreSQL's, an integer beyond 64 bits no number of theirs."""
    if isinstance(value, str):
        if not value.isprintable():
            value = value.encode("utf-8", "backslashreplace").decode("utf-8")
            return value.replace("\0", "\\x00")
        return value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value
