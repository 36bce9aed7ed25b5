"""How sure a rule is: its measured precision with the size of its sample, never typed in."""

import functools
from collections.abc import Mapping
from typing import Final

from failwise.classify.finding import Finding
from failwise.classify.tables import read_toml
from failwise.vocabulary.errors import ConfigurationError

UNMEASURED: Final = (0.5, 0)
_UNCONFIRMED: Final = 0.8
_CEILINGS: Final = {"unknown.unclassified": 0.1, "security.certificate_unverified": 0.6}
"""Codes that cover several faults: how sure their rules can be at most. Browsers say the same
sentence for an expired, a foreign and a self-made certificate."""


@functools.cache
def measured() -> Mapping[str, tuple[float, int]]:
    """Precision and sample size of each band of rules, from confidence.toml."""
    _, data = read_toml("confidence.toml")
    try:
        return {
            name: (float(row["precision"]), int(row["samples"]))
            for name, row in data["band"].items()
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{error!r}", file="confidence.toml") from error


def band(finding: Finding) -> str:
    """The group of rules that is measured together: family, and for texts the strength."""
    if finding.family != "text":
        return finding.family
    if finding.strength >= 90:
        return "text.token"
    return "text.phrase" if finding.strength >= 70 else "text.loose"


def confidence(finding: Finding) -> tuple[float, int]:
    """Precision and sample size of the finding's rule; an unconfirmed profile row counts less."""
    if finding.family == "stated":
        return 1.0, 0
    precision, samples = measured().get(band(finding), UNMEASURED)
    precision = min(precision, _CEILINGS.get(finding.code, 1.0))
    return (precision if finding.confirmed else round(precision * _UNCONFIRMED, 3)), samples
