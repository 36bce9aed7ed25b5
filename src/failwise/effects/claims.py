"""The rules of a claim: who may send, who gets the stored answer, who must not touch it."""

from typing import Any, Literal, TypeAlias

from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim, Claimed

State: TypeAlias = Literal["claimed", "done", "not_done", "unknown"]
Settled: TypeAlias = Literal["done", "not_done", "unknown"]


@record
class StoredClaim:
    """A claim as it is kept.

    Times are wall-clock epoch seconds. `generation` counts how often the key was granted: a settlement that
    comes late from an earlier holder is known by it. `result` is there once the effect is done.
    """

    key: str
    run_id: str
    fingerprint: str
    tool: str
    call_id: str
    state: State
    owner: str
    claimed_at: float
    lease_until: float
    generation: int = 1
    settled_at: float | None = None
    result: ToolResult[Any] | None = None

    def state_at(self, now: float) -> State:
        """The state that holds at `now`: a lease that ran out is an unknown, no sweeper needed."""
        if self.state == "claimed" and self.lease_until <= now:
            return "unknown"
        return self.state

    def open_at(self, now: float) -> bool:
        """True where nobody is sending it and nobody knows whether it happened."""
        return self.state_at(now) == "unknown"

    @property
    def owed(self) -> bool:
        """It is done, and whoever asked was only told that nobody knew: that is owed to them."""
        return self.state == "done" and _left_open(self.result)

    def stands_against(self, owner: str, now: float) -> bool:
        """True where the same arguments under another key must not simply be sent by `owner`."""
        sending = self.state == "claimed" and self.owner != owner
        return self.open_at(now) or sending or self.owed


def decide_claim(
    existing: StoredClaim | None,
    open_effect: StoredClaim | None,
    request: Claim,
    now: float,
) -> Claimed:
    """May this effect be sent?

    `existing` is the claim stored under the same key; `open_effect` another claim of the same run
    with the same fingerprint that is open at `now` (see `StoredClaim.open_at`), or is being sent by
    another owner: who may be dead, so that it is waited for; or that is done, while its caller was
    told that nobody knows: the next one that asks is told (once). `now` in epoch seconds. ``granted`` means: store it as claimed, then send. Anything else means: do not send.
    ``done`` without a result means: it happened, and that is all that is known (a person or a late
    answer said so after the call itself could not).
    """
    if existing is not None:
        if existing.fingerprint != request.fingerprint:
            return Claimed("conflict", key=existing.key)
        state = existing.state_at(now)
        if state == "done":
            return Claimed("done", result=_answer(existing.result), key=existing.key)
        if state == "claimed":
            return Claimed("in_flight", wait=existing.lease_until - now, key=existing.key)
        if state == "unknown":
            return Claimed("unknown", result=existing.result, key=existing.key)
    if open_effect is not None:
        if open_effect.owed:
            return Claimed("done", key=open_effect.key)
        if not open_effect.open_at(now):
            return Claimed("in_flight", wait=open_effect.lease_until - now, key=open_effect.key)
        return Claimed("open", result=open_effect.result, key=open_effect.key)
    return Claimed("granted", key=request.key)


def _answer(result: ToolResult[Any] | None) -> ToolResult[Any] | None:
    """What the call had said, unless it had said that nobody knows: by now somebody knows."""
    return None if _left_open(result) else result


def _left_open(result: ToolResult[Any] | None) -> bool:
    return result is not None and result.effect is Effect.UNKNOWN


def decide_settlement(
    existing: StoredClaim, state: Settled, now: float, *, holder: int | None = None
) -> bool:
    """May this claim be settled as `state`? False: leave it as it is.

    `holder` is the generation that was granted to whoever settles; None for someone who holds no
    grant: a person, or a verification after a restart. News that it happened always counts, and
    is final. That it did not, or that nobody knows, counts from the present holder, or from anyone
    while the claim is open: never over the head of somebody who is sending it now.
    """
    if existing.state == "done":
        return False
    if state == "done":
        return True
    if holder is not None and holder != existing.generation:
        return False
    if state == "unknown":
        return holder is not None and existing.state == "claimed"
    return existing.state == "not_done" or holder is not None or existing.open_at(now)
