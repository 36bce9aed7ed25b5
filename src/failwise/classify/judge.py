"""`Judge`: evidence → the finding that wins, or none (it was a success).

The order of evidence lives in `told` (exceptions, texts) and `answers` (what came back).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from failwise.classify.answers import judge_answer, judge_value
from failwise.classify.case import Case, Judgement
from failwise.classify.finding import Finding
from failwise.classify.told import judge_exception, judge_text
from failwise.classify.verdicts import stated
from failwise.evidence.facts import Evidence
from failwise.vocabulary.kinds import Effect

if TYPE_CHECKING:
    from failwise.classify.own import OwnRules
    from failwise.profiles.library import Profiles

_BY_SOURCE: Final[Mapping[str, Callable[[Case], Judgement]]] = {
    "exception": judge_exception,
    "response": judge_answer,
    "value": judge_value,
    "text": judge_text,
}


class Judge:
    """Judges one piece of evidence after another against one library of profiles, and rules of the
    user's own."""

    def __init__(self, library: "Profiles | None", own: "OwnRules | None" = None) -> None:
        self._library = library
        self._own = own

    @property
    def edition(self) -> int:
        """Another number as soon as the library has further profiles."""
        return 0 if self._library is None else self._library.edition

    def judge(self, evidence: Evidence, *, profile: str | None, now: float) -> Judgement:
        """The judgement of this evidence; its `finding` is None for a success."""
        if evidence.tool_error is not None:
            return Judgement(stated(evidence), "the tool spoke for itself")
        if evidence.source == "expired":
            found = Finding("expired", "network.timeout", Effect.UNKNOWN, 100, "structure")
            return Judgement(found, "the time limit passed")
        case = Case(evidence, self._library, profile, now)
        judgement = _BY_SOURCE[evidence.source](case)
        return judgement if self._own is None else overruled(case, judgement, self._own)


def overruled(case: Case, judgement: Judgement, own: "OwnRules") -> Judgement:
    """The judgement after the user's own rules: where one speaks, it wins. What a service or a
    tool answered becomes no failure by its words alone; a pasted text may."""
    source = case.evidence.source
    if judgement.finding is None and source != "text":
        return judgement
    words = case.answer_words()
    if source != "response":
        words = f"{case.words()}\n{words}"
    best = own.verdict(words, judgement.finding)
    if best is None:
        return judgement
    heard = [*judgement.heard, best]
    return replace(judgement, finding=best, why="a rule of your own", heard=heard)
