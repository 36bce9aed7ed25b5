"""The words of a simulation's table and chart, and its numbers as people read them."""

import functools
from collections.abc import Mapping

from failwise.simulation.tally import Outcome
from failwise.vocabulary import documents
from failwise.vocabulary.result import Language


@functools.cache
def words(lang: Language) -> Mapping[str, str]:
    """All phrases of one language."""
    found: Mapping[str, str] = documents.read("failwise.simulation", "words.toml")[1][lang]
    return found


def duration(seconds: float) -> str:
    """``0.12 s``, ``95 s``, ``13 min``, ``4.2 h``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def figures(outcome: Outcome, lang: Language) -> dict[str, str]:
    """The cells of one contender's row, by the names of their headings."""
    trouble = outcome.per_call_in_trouble
    recovery = duration(outcome.recovery) if outcome.recovery is not None else words(lang)["never"]
    return {
        "calls": f"{outcome.calls:,}",
        "requests": f"{outcome.requests:,}",
        "per_call": f"{outcome.per_call:.2f}",
        "in_trouble": "–" if trouble is None else f"{trouble:.2f}",
        "peak": f"{outcome.peak:.0f}",
        "success": f"{outcome.success_rate:.2%}",
        "goodput": f"{outcome.goodput:.1f}",
        "p50": duration(outcome.p50),
        "p99": duration(outcome.p99),
        "recovery": "–" if trouble is None else recovery,
        "not_sent": f"{outcome.declined:,}",
        "duplicates": f"{outcome.duplicates:,}",
        "unreported": f"{outcome.unreported:,}",
        "early": f"{outcome.early:,}",
        "waiting": duration(outcome.waiting),
        "money": f"{outcome.money:,.2f}",
    }


def columns(outcomes: "list[Outcome]") -> list[str]:
    """The headings that tell something here: what is nought for everybody is left out."""
    shown = [
        "calls", "requests", "per_call", "in_trouble", "peak", "success", "goodput", "p50", "p99",
        "recovery", "not_sent",
    ]  # fmt: skip
    if any(outcome.writes for outcome in outcomes):
        shown += ["duplicates", "unreported"]
    if any(outcome.early for outcome in outcomes):
        shown.append("early")
    shown.append("waiting")
    if any(outcome.money for outcome in outcomes):
        shown.append("money")
    return shown
