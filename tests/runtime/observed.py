"""What tests look at in a runtime: slots held, states of claims."""

from failwise import Runtime


def in_flight(rt: Runtime) -> int:
    """Slots held, over all upstreams."""
    return sum(row["in_flight"] for row in rt._guards.statistics())  # type: ignore[attr-defined]


def states(rt: Runtime) -> list[str]:
    """The states of all claims."""
    return [row[0] for row in rt.journal.rows("SELECT state FROM claims ORDER BY claimed_at")]
