"""`Finding`: what one rule says of the evidence, before one of them becomes the verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from failwise.vocabulary.codes import lookup
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy

Family: TypeAlias = Literal["stated", "structure", "profile", "shape", "status", "text", "none"]
"""On what kind of evidence a rule rests, strongest first; `confidence` is measured per family."""

TOKEN: Final = 90
"""At this strength and above a rule rests on a machine's own token: it may overrule a status."""
PHRASE: Final = 50
"""Below this strength a phrase decides only when nothing else speaks."""


@dataclass(slots=True)
class Finding:
    """What one rule says.

    `strength` (1 to 100) decides between findings of one stage, `position` (where in the text, in
    characters) between equals: causes stand last. `message`, `provider_code` and `request_id` are
    what the rule read beside the code. `confirmed` is False for a profile row nobody could check.
    """

    rule: str
    code: str
    effect: Effect
    strength: int
    family: Family
    transient: bool | None = None
    fix_by: FixBy | None = None
    advice: Action | None = None
    meaning: Mapping[str, str] | None = None
    message: str | None = None
    provider: str | None = None
    provider_code: str | None = None
    request_id: str | None = None
    parameter: str | None = None
    confirmed: bool = True
    position: int = 0

    @property
    def category(self) -> str:
        """The category as text: the first part of the code."""
        return self.code.partition(".")[0]

    @property
    def order(self) -> tuple[int, int]:
        """Sorts findings: the greater one wins."""
        return self.strength, self.position

    def is_transient(self) -> bool | None:
        """What the rule says, else what the registry says of its code; None for unknown."""
        if self.transient is not None:
            return self.transient
        if self.category == Category.UNKNOWN:
            return None
        code = lookup(self.code)
        return code.transient if code else False

    def fixed_by(self) -> FixBy:
        """What the rule says, else what the registry says of its code."""
        if self.fix_by is not None:
            return self.fix_by
        code = lookup(self.code)
        if code is not None:
            return code.fix_by
        return FixBy.USER if self.category == Category.BUSINESS else FixBy.MODEL


class Said:
    """Findings that are made as far as they are asked for: the strongest decides, and the others are
    only told of."""

    __slots__ = ()

    def top(self, least: int, fits: "Fits | None" = None) -> list[Finding]:
        """The strongest of those that fit: all that share the greatest strength, which is `least` or
        more; none where there is no such one."""
        raise NotImplementedError

    def all(self) -> list[Finding]:
        """All of them."""
        raise NotImplementedError

    def holds(self, finding: Finding) -> bool:
        """Is it one of those that were made?"""
        raise NotImplementedError


Fits: TypeAlias = Callable[[Finding], bool]


def strongest(findings: "Sequence[Finding | Said]", fits: Fits | None = None) -> Finding | None:
    """The one that wins, of those that fit: the greatest strength, then the last place in the text."""
    best: Finding | None = None
    said = False
    for one in findings:
        if isinstance(one, Said):
            said = True
        elif (fits is None or fits(one)) and _wins(one, best):
            best = one
    if not said:
        return best
    least = 0 if best is None else best.strength
    best = None
    for one in findings:
        for finding in one.top(least, fits) if isinstance(one, Said) else (one,):
            if (fits is None or fits(finding)) and _wins(finding, best):
                best = finding
    return best


def spoken(findings: "Sequence[Finding | Said]") -> list[Finding]:
    """Each of them, in order."""
    return [
        finding for one in findings for finding in (one.all() if isinstance(one, Said) else (one,))
    ]


def _wins(finding: Finding, over: Finding | None) -> bool:
    return (
        over is None
        or finding.strength > over.strength
        or (finding.strength == over.strength and finding.position > over.position)
    )
