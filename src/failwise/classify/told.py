"""What is told in words: exceptions, and pasted errors or log lines."""

from typing import Final

from failwise.classify import texts
from failwise.classify.case import Case, Judgement
from failwise.classify.finding import PHRASE, Finding, strongest
from failwise.classify.reports import reports_work
from failwise.classify.selection import split
from failwise.classify.structure import exception_findings
from failwise.classify.text import stems
from failwise.classify.verdicts import shape_finding, unclassified
from failwise.vocabulary.kinds import Effect

_CLEAR: Final = 80
"""From here on the structure of an exception is the verdict, and texts only make it more precise."""


def judge_exception(case: Case) -> Judgement:
    """A raised exception: always a failure."""
    evidence = case.evidence
    structure = exception_findings(evidence)
    case.spoke += structure
    best = strongest(structure)
    if best is not None and best.strength >= _CLEAR:
        return case.over(_precise(case, best), "the exception's own kind")
    if evidence.status is not None and evidence.status >= 400:
        return case.failed_answer(evidence.status, structure)
    case.read_shape(evidence.status)
    candidates = [*structure, *case.text_findings(case.words()), *case.rows()]
    case.spoke += candidates[len(structure) :]
    winner = strongest(candidates)
    if best is not None and winner is not None and winner.code == best.code:
        winner = best
    if winner is None or winner.strength < PHRASE // 4:
        return case.over(unclassified(), "no rule knows it")
    return case.over(winner, "the strongest rule")


def _precise(case: Case, best: Finding) -> Finding:
    """Texts may make a verdict of the structure more precise, within its category."""
    if best.strength >= 92:
        return best
    same = [
        finding
        for finding in case.text_findings(case.words())
        if finding.category == best.category
        and finding.code != best.code
        and finding.strength > best.strength
    ]
    case.spoke += same
    finer = strongest(same)
    if finer is None:
        return best
    finer.family = "structure"
    if best.effect is Effect.NOT_SENT:
        finer.effect = Effect.NOT_SENT
    return finer


def judge_text(case: Case, *, certain: bool = False) -> Judgement:
    """A pasted error or log line; `certain`: it was flagged as an error."""
    evidence = case.evidence
    text = evidence.text or ""
    if not certain and (
        texts.is_listing(text)
        or (texts.ends_well(text) and not texts.announces_failure(text))
        or reports_work(text)
    ):
        return case.success("a listing, a report of work done, or it ended well")
    case.read_shape(evidence.status if evidence.status and evidence.status >= 400 else None)
    structure = exception_findings(evidence)
    words = case.words() if certain else texts.without_denials(case.words())
    findings = [*structure, *case.text_findings(words), *case.rows()]
    case.spoke += findings
    best = strongest(findings)
    if best is not None and best.effect is Effect.REJECTED and evidence.phase == "config":
        best.effect = Effect.NOT_SENT  # nobody was asked: the client itself refused
    status = evidence.status or (case.shape.status if case.shape and case.shape.failed else None)
    if status is not None and status >= 400:
        if (
            best is not None
            and best.strength >= 94
            and best.family != "shape"
            and best.effect is Effect.NOT_SENT
        ):
            return case.over(best, "the cause stands in the text")
        winner, why = split(evidence, status, findings, detailed=case.detailed())
        return case.over(winner, why)
    if best is not None and best.code != "unknown.unclassified":
        return case.over(best, "the strongest rule")
    failed = case.shape is not None and bool(case.shape.failed)
    if not (certain or failed or structure) and texts.is_calm(text):
        return case.success("a line of a log that reports no failure")
    rough = strongest(stems(words)) if certain or failed or texts.announces_failure(text) else None
    if rough is not None:
        case.spoke.append(rough)
        return case.over(rough, "what a text that failed is roughly about")
    if case.shape is not None and case.shape.failed:
        return case.over(shape_finding(case.shape), "the shape of the body")
    if (
        certain
        or (best is not None and not text.isascii())
        or texts.speaks_of_trouble(texts.without_denials(text))
        or structure
        or evidence.exceptions
    ):
        return case.over(unclassified(), "it failed, and no rule knows how")
    return case.success("nothing in it speaks of a failure")
