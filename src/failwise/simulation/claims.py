"""The claims of a simulation: the journal's rules, in memory and on the virtual clock."""

from collections.abc import Iterator

from failwise.effects.claims import StoredClaim, decide_claim, decide_settlement
from failwise.vocabulary.steps import Claim, Claimed, Settle


class SimulatedClaims:
    """Claims by key, and the open ones of a run by fingerprint. `lease` in seconds."""

    def __init__(self, lease: float) -> None:
        self.lease = lease
        self.by_key: dict[str, StoredClaim] = {}
        self._alike: dict[tuple[str, str], list[StoredClaim]] = {}

    def claim(self, step: Claim, now: float) -> Claimed:
        """May this effect be sent? Where it may, that is noted."""
        existing = self.by_key.get(step.key)
        answer = decide_claim(existing, next(self._open(step, now), None), step, now)
        if answer.state == "granted":
            stored = StoredClaim(
                step.key,
                step.run_id,
                step.fingerprint,
                step.tool,
                step.call_id,
                "claimed",
                "simulation",
                now,
                now + self.lease,
                existing.generation + 1 if existing else 1,
            )
            alike = self._alike.setdefault((step.run_id, step.fingerprint), [])
            if existing in alike:
                alike.remove(existing)
            alike.append(stored)
            self.by_key[step.key] = stored
        return answer

    def settle(self, step: Settle, now: float) -> None:
        """Note what became of an effect, where the rules let that news count."""
        stored = self.by_key.get(step.key)
        if stored is not None and decide_settlement(
            stored, step.state, now, holder=stored.generation
        ):
            stored.state = step.state  # type: ignore[misc]
            stored.result = step.result  # type: ignore[misc]

    def _open(self, step: Claim, now: float) -> Iterator[StoredClaim]:
        """Other claims of this run with the same arguments, of which nobody knows the outcome."""
        for claim in self._alike.get((step.run_id, step.fingerprint), ()):
            if claim.key != step.key and claim.open_at(now):
                yield claim
