"""Where the questions go: whatever answers SQL in the journal's own dialect."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from failwise.effects.claims import StoredClaim


class Source(Protocol):
    """Whatever answers SQL in the journal's own dialect: ``?`` for values, rows that can be read by
    column name. A `Journal` is one, and what `failwise.journal.read.opened` gives."""

    @property
    def place(self) -> str:
        """Where the journal is, without secrets."""
        ...

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]: ...

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Run statements as one transaction."""
        ...

    def resolve(self, key: str, state: Literal["done", "not_done"]) -> "StoredClaim": ...
