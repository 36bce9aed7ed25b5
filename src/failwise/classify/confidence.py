"""How sure a rule is: its measured precision with the size of its sample, never typed in.

The figures are made by ``scripts/measure_confidence.py`` from labelled cases; `docs/classification.md`
tells how. Lookup goes from the rule to its family: a rule without cases of its own is worth what its
family was worth on failures that nobody had seen.
"""

import functools
from collections.abc import Mapping
from typing import Any, Final, Literal

from failwise.classify.finding import Finding
from failwise.classify.tables import read_toml
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record

FILE: Final = "confidence.toml"
ENOUGH: Final = 5
"""Cases of its own from which on a figure is called the rule's, below it the family's."""
FAMILIES: Final = (
    "structure", "profile", "shape", "status", "text.token", "text.phrase", "text.loose",
)  # fmt: skip
"""The groups of rules that are measured together."""

_TOKEN: Final = 90
_PHRASE: Final = 70
_CEILINGS: Final = {"security.certificate_unverified": 0.6}
"""Codes that cover several faults: how sure their rules can be at most. Judged, not measured:
browsers say the same sentence for an expired, a foreign and a self-made certificate."""


@record
class Figure:
    """What was measured of a rule or a family: of `samples` labelled cases that it decided, `right`
    had a defensible category; `confidence` is what to expect of the next one (0 to 1)."""

    right: int
    samples: int
    confidence: float


@record
class Figures:
    """The data file: by rule id, by family, and the share of a profile row nobody could confirm."""

    rules: Mapping[str, Figure]
    families: Mapping[str, Figure]
    unconfirmed: float


@record
class Measure:
    """How sure a verdict is, and on what that rests: cases of its `rule`, or of its `family`."""

    confidence: float
    samples: int
    basis: Literal["rule", "family", "none"]


_UNMEASURED: Final = Measure(0.5, 0, "none")
_STATED: Final = Measure(1.0, 0, "none")
_NOTHING: Final = Measure(0.0, 0, "none")


@functools.cache
def measured() -> Figures:
    """The figures that were measured. Raises `ConfigurationError` for a broken data file."""
    _, data = read_toml(FILE)
    try:
        return Figures(
            {name: Figure(**row) for name, row in data["rule"].items()},
            {name: Figure(**row) for name, row in data["family"].items()},
            float(data["unconfirmed"]["confidence"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{error!r}", file=FILE) from error


def family(finding: Finding) -> str:
    """The group of rules that is measured together: family, and for texts the strength."""
    if finding.family != "text":
        return finding.family
    if finding.strength >= _TOKEN:
        return "text.token"
    return "text.phrase" if finding.strength >= _PHRASE else "text.loose"


def measure(finding: Finding) -> Measure:
    """What is known of the finding's rule: of itself where it has cases, else of its family.

    What a tool said itself is certain; "no rule knows it" claims nothing; a user's own rule is not
    measured.
    """
    if finding.family == "stated":
        return _STATED
    if finding.category == Category.UNKNOWN:
        return _NOTHING
    figures = measured()
    if finding.rule.startswith("own."):
        return _UNMEASURED
    own = figures.rules.get(finding.rule)
    group = figures.families.get(family(finding))
    known = own or group
    if known is None:
        return _UNMEASURED
    confidence = min(known.confidence, _CEILINGS.get(finding.code, 1.0))
    if not finding.confirmed:
        confidence = round(confidence * figures.unconfirmed, 3)
    if own is not None and (group is None or own.samples >= ENOUGH):
        return Measure(confidence, own.samples, "rule")
    return Measure(confidence, group.samples if group else 0, "family")


def described(finding: Finding) -> dict[str, Any]:
    """`measure` with what stands behind it, as plain data: the rule's own cases and its family's."""
    found = measure(finding)
    figures = measured()
    own, name = figures.rules.get(finding.rule), family(finding)
    group = figures.families.get(name)
    return {
        "confidence": found.confidence,
        "samples": found.samples,
        "basis": found.basis,
        "rule": {"right": own.right, "samples": own.samples} if own else None,
        "family": {"name": name, "right": group.right, "samples": group.samples} if group else None,
    }


def confidence(finding: Finding) -> tuple[float, int]:
    """`measure` as a failure keeps it: confidence and the size of the sample it rests on."""
    key = finding.rule, finding.code, finding.family, finding.strength, finding.confirmed
    known = _KNOWN.get(key)
    if known is None:
        found = measure(finding)
        if len(_KNOWN) >= _REMEMBERED:
            _KNOWN.clear()
        known = _KNOWN[key] = found.confidence, found.samples
    return known


_REMEMBERED: Final = 4_096
_KNOWN: Final[dict[tuple[object, ...], tuple[float, int]]] = {}
"""What was asked before, by all that `measure` looks at."""
