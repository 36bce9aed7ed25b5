"""What was judged before and comes again, word for word: in an outage one failure comes thousands of times.

Kept is what a failure shows anyway, redacted; never a body, an address or an exception.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import unfinished

Key: TypeAlias = tuple[object, ...]

NAMED: Final = ("meaning", "likely_causes", "provider_code", "request_id")
TOLD: Final = ("message", "details", "remedies", "spoke", "fingerprint", "evidence")
"""Fields of a failure that are looked up, or put in words, when one of them is first read."""
_DECIDED: Final = (
    "category", "code", "effect", "transient", "fix_by", "layer", "advice", "http_status", "retry_after", "provider", "rule", "why",
    "confidence", "samples",
)  # fmt: skip
Decided: TypeAlias = tuple[Any, ...]
"""The values of what decides, in the order of `_DECIDED`."""
Work: TypeAlias = Callable[[], Mapping[str, Any]]
_LIMIT: Final = 512
"""Verdicts that are remembered; then it begins anew."""


class Verdict:
    """One verdict: what was decided, and as soon as somebody has read it, what is looked up and told."""

    __slots__ = ("decided", "named", "told")

    def __init__(self) -> None:
        self.decided: Decided = ()
        self.named: Mapping[str, Any] | None = None
        self.told: Mapping[str, Any] | None = None

    def failure(
        self,
        anew: Callable[[], Failure],
        request_id: Callable[[str | None], str | None],
        exception: BaseException | None,
    ) -> Failure:
        """The failure once more. `request_id` gives that of this answer from the one in its body;
        `anew` judges it again, which is asked for only where nobody has read the first one."""

        def named() -> dict[str, Any]:
            found = self.named or _read(anew(), NAMED)
            return {**found, "request_id": request_id(found["request_id"])}

        def told() -> dict[str, Any]:
            found = self.told or _read(anew(), TOLD)
            details = found["details"]
            return {**found, "details": None if details is None else {**details}}

        return made(self.decided, named, told, exception)


def made(decided: Decided, named: Work, told: Work, exception: BaseException | None) -> Failure:
    """A failure of which `NAMED` and `TOLD` wait for their first reader."""
    failure: Failure = unfinished(Failure, (NAMED, named), (TOLD, told))
    for name, value in zip(_DECIDED, decided, strict=True):
        setattr(failure, name, value)
    failure.exception, failure.raw = exception, None  # type: ignore[misc]
    return failure


class Recall:
    """Verdicts by all that they rest on. Safe to share between threads."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Key, Verdict] = {}

    def get(self, key: Key) -> Verdict | None:
        """The verdict of this key, if it is remembered."""
        return self._known.get(key)

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Remember a verdict that is decided."""
        if len(self._known) >= _LIMIT:
            self._known.clear()
        self._known[key] = verdict


def _read(failure: Failure, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in names}
