"""What is told in words: exceptions, and pasted errors or log lines."""

from typing import Final

from failwise.classify import texts
from failwise.classify.calm import is_calm, is_mended, is_step, without_denials
from failwise.classify.case import Case, Judgement
from failwise.classify.finding import PHRASE, Finding, Said, strongest
from failwise.classify.outputs import refusal
from failwise.classify.reports import reports_work
from failwise.classify.selection import refined, split
from failwise.classify.structure import exception_findings
from failwise.classify.text import finer, stems
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
    candidates: list[Finding | Said] = [*structure, *case.said(case.words()), *case.rows()]
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
    found = finer(case.words(), best.category, best.strength)
    same = [finding for finding in found if finding.code != best.code]
    case.spoke += same
    winner = strongest(same)
    if winner is None:
        return best
    winner.family = "structure"
    if best.effect is Effect.NOT_SENT:
        winner.effect = Effect.NOT_SENT
    return winner


def judge_text(case: Case, *, certain: bool = False) -> Judgement:
    """A pasted error or log line; `certain`: it was flagged as an error."""
    evidence = case.evidence
    text = evidence.text or ""
    if not certain and (
        texts.is_listing(text)
        or (texts.ends_well(text) and not texts.announces_failure(text))
        or reports_work(text)
        or is_step(text)
    ):
        return case.success("a listing, a report of work done, or it ended well")
    case.read_shape(evidence.status if evidence.status and evidence.status >= 400 else None)
    structure = exception_findings(evidence)
    words = case.words() if certain else without_denials(case.words())
    findings: list[Finding | Said] = [*structure, *case.said(words), *case.rows()]
    case.spoke += findings
    best = strongest(findings)
    if best is not None and best.effect is Effect.REJECTED and evidence.phase == "config":
        best.effect = Effect.NOT_SENT  # nobody was asked: the client itself refused
    shape = case.shape
    said = shape is not None and (shape.failed or evidence.exceptions)
    status = evidence.status or (shape.status if shape is not None and said else None)
    if status is not None and status >= 400:
        if (
            best is not None
            and best.strength >= 94
            and best.family != "shape"
            and best.effect is Effect.NOT_SENT
        ):
            return case.over(best, "the cause stands in the text")
        winner, why = split(evidence, status, findings, detailed=case.detailed())
        finer = refined(status, why, lambda: stems(words))
        if finer is not None:
            return case.over(finer, "what the text of a refusal is about")
        return case.over(winner, why)
    failed = case.shape is not None and bool(case.shape.failed)
    sure = certain or failed or bool(structure)
    if best is not None and best.code != "unknown.unclassified":
        if not sure and best.family == "text" and is_calm(text) and is_mended(text):
            return case.success("a line of a log that tells what was done about it")
        return case.over(best, "the strongest rule")
    if not sure and is_calm(text):
        return case.success("a line of a log that reports no failure")
    refused = refusal(text) if certain else None
    if refused is not None and refused.code is not None:
        about = Finding(f"form.{refused.id}", refused.code, refused.effect, PHRASE, "text")
        return case.over(about, "what sentences of this form are about")
    rough = strongest(stems(words)) if certain or failed or texts.announces_failure(text) else None
    if rough is not None:
        case.spoke.append(rough)
        return case.over(rough, "what a text that failed is roughly about")
    if case.shape is not None and case.shape.failed:
        return case.over(shape_finding(case.shape), "the shape of the body")
    if (
        certain
        or (best is not None and not text.isascii())
        or texts.speaks_of_trouble(without_denials(text))
        or texts.announces_failure(words)
        or structure
        or evidence.exceptions
    ):
        return case.over(unclassified(), "it failed, and no rule knows how")
    return case.success("nothing in it speaks of a failure")
