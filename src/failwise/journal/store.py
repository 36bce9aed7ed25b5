"""`Store`: what an engine does for the journal, and which engine a place needs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal.requests import Claiming, Settling
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claimed

if TYPE_CHECKING:
    from failwise.journal.place import Target
    from failwise.journal.rollups import Rollup
    from failwise.journal.rows import Built, Plain, Redactor


@record
class Keeping:
    """How long what is kept, and what a store needs of its surroundings.

    `calls_days` and `calls_rows` bound the calls, `figures_days` the rollups, `raw_days` the raw
    answers. `raw`: keep raw answers, ``"redacted"`` or ``"as is"``, of at most `raw_bytes` each.
    `lock_timeout`: seconds to wait for somebody else's lock. `clock`: None for the engine's own.
    """

    calls_days: float = 30.0
    calls_rows: int = 1_000_000
    figures_days: float = 400.0
    raw: str = ""
    raw_days: float = 7.0
    raw_bytes: int = 64_000
    lock_timeout: float = 5.0
    clock: Clock | None = None
    redactor: "Redactor | None" = None


class Store(Protocol):
    """One open journal. Synchronous; one user at a time. Every method is a transaction of its own
    and raises what its engine raises where it cannot be; the next one opens the engine afresh."""

    @property
    def in_memory(self) -> bool:
        """It would be gone once it is closed."""
        ...

    def effects(self, batch: Sequence[Claiming | Settling]) -> list[Claimed | Exception | None]:
        """Claims and settlements in order, in one transaction; claims are durable on return."""
        ...

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        """Settle an open effect by a person's word; gives back the claim as it was. Raises
        `UsageError` where there is no such claim, it is done, or it is being sent now."""
        ...

    def records(
        self, batch: "Sequence[ToolResult[Any] | Plain]", pause: Callable[[], bool] | None = None
    ) -> tuple[int, int]:
        """Write finished calls and what the rollups count of them; gives back how many were dealt
        with and how many of those were impossible to store. Called again with the same batch after
        an error, it writes nothing twice. `pause()` is asked now and then: True ends it early."""
        ...

    def load(self, made: "Built") -> int:
        """Write calls that were recorded elsewhere, in rows numbered from 1, and count them. Gives
        how many could not be stored."""
        ...

    def add_counts(self, rollup: "Rollup", counts: Sequence[Sequence[Any]]) -> None:
        """Add rows of counts, in the order of the rollup's `columns`, of calls that are gone."""
        ...

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Read, with ``?`` for values. Rows can be read by position and by column name."""
        ...

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Run statements as one durable transaction."""
        ...

    def prune(self, *, at_once: bool = False) -> bool:
        """Remove what is too old or too much, a bounded piece of it, every few minutes or `at_once`;
        True when there is more. Open claims are kept for ever: a person has to settle them."""
        ...

    def sum_up(self, *, at_once: bool = False) -> bool:
        """Sum up one day or week that is over (`failwise.journal.spans`), in a short transaction,
        every few minutes or `at_once`; True when there is more. An engine that sums quickly has
        nothing to do."""
        ...

    def check(self) -> None:
        """Open it now, without making a journal of what is none. Raises `ConfigurationError`."""
        ...

    def close(self) -> None:
        """Close the connection; what was in memory is gone."""
        ...

    def abandon(self) -> object:
        """Give up the connection untouched, and give it back: after a fork it is the parent's."""
        ...


_OTHERS: dict[str, "Callable[[Target, Keeping], Store]"] = {}


def register(scheme: str, make: "Callable[[Target, Keeping], Store]") -> None:
    """Let ``scheme://...`` be a place to keep a journal; `make` gives the store of such a place.
    `failwise.testing.JournalConformance` has the tests that it must pass."""
    from failwise.journal.place import add_engine

    add_engine(scheme)
    _OTHERS[scheme] = make


def open_store(target: "Target", keeping: Keeping) -> Store:
    """The store for a place; nothing is opened before its first use."""
    if target.engine in _OTHERS:
        return _OTHERS[target.engine](target, keeping)
    if target.engine == "postgresql":
        from failwise.journal.postgres import PostgresStore

        return PostgresStore(target, keeping)
    if target.engine in ("clickhouse", "chdb"):
        from failwise.journal.clickhouse import ClickHouseStore

        return ClickHouseStore(target, keeping)
    from failwise.journal.sqlite import SqliteStore

    return SqliteStore(target.address, keeping)


def open_existing(target: "Target", keeping: Keeping | None = None) -> Store:
    """The store of a journal that is there, brought to the present schema where that may be done;
    one that may only be read is read as it is. Raises `ConfigurationError` where there is none."""
    store = open_store(target, keeping or Keeping())
    store.check()
    return store
