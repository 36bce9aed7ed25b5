"""What came back: HTTP answers, and what tools returned. A failure only where they say so."""

import re
from typing import Final

from failwise.classify import texts
from failwise.classify.batches import lines_shape
from failwise.classify.case import Case, Judgement
from failwise.classify.finding import PHRASE, TOKEN, Finding, strongest
from failwise.classify.jobs import reads_a_job
from failwise.classify.markup import is_html, stream_shape, xml_shape
from failwise.classify.opened import is_good_beside, opened_body, opened_text
from failwise.classify.outputs import begins_badly, fails, reports_tests
from failwise.classify.reports import reports_work
from failwise.classify.selection import refuse, split, status_finding, status_row
from failwise.classify.shape import Shape, message_of, parsed
from failwise.classify.shapes import recognise
from failwise.classify.text import stems
from failwise.classify.told import judge_text
from failwise.classify.verdicts import partial, problem_finding, redirect_finding, shape_finding
from failwise.evidence import from_text, from_value
from failwise.evidence.bounds import plain as uncoloured
from failwise.evidence.texts import status_in, unprefixed
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import Unset

_FAILED_ALONE: Final = 65
_LINES: Final = re.compile(
    r"(?:\s{0,8}\{[^\n]{0,20000}\}\r?\n){1,2000}(?:\s{0,8}\{[^\n]{0,20000})?\s{0,8}"
)
_OPENED_AT_MOST: Final = 5
"""Times that something is taken off an answer."""
_CLEARER: Final = 82
_ANSWERS: Final = frozenset({"auth", "rate_limit", "business", "invalid_request", "network"})
"""What a service may mean by a `500` that it wrote into the body of a 200."""
_NOT_A_BODY: Final = (Unset, str, int, float, type(None))


def judge_answer(case: Case) -> Judgement:
    """An HTTP answer."""
    status = case.evidence.status
    case.read_shape(status)
    if status is not None and status >= 400:
        return case.failed_answer(status, [])
    moved = redirect_finding(case.evidence)
    if moved is not None:
        return case.over(moved, "a redirect where an answer was due")
    return _good_status(case)


def judge_value(case: Case, depth: int = 0) -> Judgement:
    """What a tool returned: a failure only if it says so in a way that data does not."""
    evidence = case.evidence
    if evidence.is_error:
        return judge_text(case, certain=True)
    if depth < _OPENED_AT_MOST:
        within = _judge_within(case, depth + 1)
        if within is not None:
            return within
    if isinstance(evidence.body, _NOT_A_BODY):
        text = evidence.body if isinstance(evidence.body, str) else evidence.text
        if text and text.startswith("{") and ("}\n{" in text or "}\r\n{" in text):
            case.shape = lines_shape(text)
            if case.shape is not None:
                return _good_status(case)
            if "error" in text and _LINES.fullmatch(text):
                return case.success("lines of data, each an object")
        printed = parsed(text) if text else None
        if printed is not None:
            case.shape = recognise(printed, None)
            return _good_status(case)
        if text and not evidence.expects_json:
            return _returned_text(case, text)
        if text and not is_html(evidence) and texts.has_failed(text):
            return _returned_text(case, text)
    case.read_shape(None)
    return _good_status(case)


def _judge_within(case: Case, depth: int) -> Judgement | None:
    """The judgement of the answer that somebody has put something around; None where nobody has, or
    where all of it says more."""
    evidence = case.evidence
    text = evidence.body if isinstance(evidence.body, str) else evidence.text
    if isinstance(evidence.body, (dict, list)):
        held = opened_body(evidence.body)
    elif not text or is_html(evidence):
        return None
    else:
        held = opened_text(text)
        if held is None and text.lstrip()[:1] in ("{", "["):
            held = opened_body(parsed(text))
    if held is None:
        return None
    if held.strict and not texts.has_failed(str(held.value)):
        return None
    inner = Case(from_value(held.value, now=case.now), case.library, case.profile, case.now)
    judgement = judge_value(inner, depth)
    if held.error is None:
        return None if held.strict and judgement.finding is None else judgement
    if judgement.finding is not None and judgement.finding.code != "unknown.unclassified":
        return judgement
    if judgement.finding is None and is_good_beside(held.error, held.value):
        return judgement
    case.shape = Shape("S13", True, None, _told_beside(held.error, held.value))
    return _good_status(case)


def _told_beside(error: str, value: object) -> str:
    """The error and, where the answer is but a message, that message."""
    message = (
        value if isinstance(value, str) else message_of(value) if isinstance(value, dict) else None
    )
    return f"{error}\n{message[:2_000]}" if message else error


def _good_status(case: Case) -> Judgement:
    """A 2xx, or a value: a success, unless shape, profile or form of the body say otherwise."""
    shape = case.shape
    told = case.providers().success() if case.library is not None else None
    if shape is not None and shape.parts:
        return case.over(partial(shape), "some parts of a batch failed")
    if told is True and not (shape is not None and shape.failed and shape.name in ("S21", "S23")):
        return case.success("the provider's success test")
    page = case.page()
    if page is not None:
        return page
    if told is False or (shape is not None and shape.failed):
        if reads_a_job(case.evidence.body, case.evidence.method):
            return case.success("a job that was read, and that had failed")
        return _failed_body(case, shape, told)
    if shape is not None and shape.message is not None and fails(shape.message):
        return _failed_body(case, shape, None)
    if shape is not None and shape.message is not None:
        findings = [row for row in case.answer_texts() if row.strength >= _FAILED_ALONE]
        best = strongest(findings)
        if best is not None and _says_so(shape, best):
            case.spoke += findings
            return case.over(best, "a body that is nothing but a message, and says so")
    problem = problem_finding(case.evidence)
    if problem is not None:
        return case.over(problem, "the body could not be used")
    return case.success("nothing marks it as a failure")


def _failed_body(case: Case, shape: Shape | None, told: bool | None) -> Judgement:
    rows = case.rows()
    findings = case.answer_texts()
    case.spoke += [*rows, *findings]
    best = strongest(findings)
    row = strongest(rows)
    if (
        row is not None
        and (row.code == "business.refused" or row.rule.endswith("*"))
        and best is not None
        and best.strength >= _CLEARER
        and best.code != row.code
    ):
        row = None  # a row for "anything else" knows less than the words beside it
    if row is not None and (
        told is False
        or best is None
        or row.strength >= best.strength
        or row.category == best.category
    ):
        return case.over(row, "the provider's table")
    generic = shape is not None and shape.status == 500 and shape.name != "S14"
    if generic and best is not None and best.strength >= PHRASE and best.category in _ANSWERS:
        if best.category == "network":
            best.effect = Effect.UNKNOWN  # of a hop behind the one that answered
        return case.over(best, "the text of a body whose 500 stands for any failure")
    if shape is not None and shape.status is not None and 400 <= shape.status <= 599:
        if _outspoken(shape, best):
            return case.over(best, "words that are clearer than a number of the service's own")
        winner, why = split(case.evidence, shape.status, findings, detailed=True)
        return case.over(winner, f"{why}, told in the body")
    if best is not None and best.strength >= PHRASE:
        return case.over(best, "the text of a body that failed")
    told_status = status_in(shape.message) if shape is not None and shape.message else None
    if told_status is not None and told_status >= 400:
        found = status_finding(case.evidence, told_status, detailed=True)
        case.spoke.append(found)
        return case.over(found, "a status told in the message")
    rough = strongest(stems(case.answer_words()))
    if rough is not None and (best is None or best.category != "server"):
        case.spoke.append(rough)
        return case.over(rough, "what a body that failed is roughly about")
    if shape is not None:
        refusal = shape_finding(shape)
        if best is not None and best.category == "server" and best.strength > refusal.strength:
            return case.over(best, "a body that failed, and whose text says that the upstream did")
        return case.over(refusal, "the shape of the body")
    return case.over(refuse("profile.not_success", None), "the provider's success test")


def _returned_text(case: Case, text: str) -> Judgement:
    """Plain text from a tool: anchored, short and failing in form, or it is content."""
    text = unprefixed(uncoloured(text) if "\x1b" in text else text)
    title = case.page()
    if title is not None:
        return title
    stream = stream_shape(text)
    if stream is not None:
        case.shape = stream
        return _failed_body(case, stream, None)
    document = xml_shape(text) if text.lstrip()[:1] == "<" else None
    if document is not None and document.failed:
        case.shape = document
        return _failed_body(case, document, None)
    anchored = texts.has_failed(text)
    if not begins_badly(text):
        if reports_tests(text) or reports_work(text) or texts.ends_well(text):
            return case.success("a report, of tests or of work done, or it ended well")
        if texts.is_listing(text) and not anchored:
            return case.success("a listing")
    if not anchored and not texts.has_failing_form(text):
        return case.success("text without the form of a failure")
    inner = Case(from_text(text, now=case.now), case.library, case.profile, case.now)
    judgement = judge_text(inner, certain=anchored)
    if (
        judgement.finding is not None
        and not anchored
        and judgement.finding.strength < _FAILED_ALONE
    ):
        return case.success("a phrase that content may hold as well")
    return judgement


def _outspoken(shape: Shape, best: Finding | None) -> bool:
    """A number in the body of a 2xx that looks like a status, and a token of another kind beside it."""
    assert shape.status is not None
    return (
        best is not None
        and shape.name != "S14"
        and best.family == "text"
        and best.strength >= TOKEN
        and best.category in _ANSWERS
        and not status_row(shape.status).may_be(best.code)
    )


def _says_so(shape: Shape, finding: Finding) -> bool:
    """The sentence is the failure: a rule of full strength, or one that speaks at its beginning."""
    return shape.failed is not False and (finding.strength >= 85 or finding.position < 40)
