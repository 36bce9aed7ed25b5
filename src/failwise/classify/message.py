"""Texts for people and models: no tags, no stack, no class-name noise, redacted, then cut."""

import re
from typing import Final

from failwise.classify.case import Judgement
from failwise.classify.once import Border
from failwise.evidence.facts import Evidence
from failwise.vocabulary.failure import Excerpt
from failwise.vocabulary.records import Unset

MESSAGE_LIMIT: Final = 300
SNIPPET_LIMIT: Final = 500
_READ: Final = 4_096

_TAG: Final = re.compile(
    r"<(?:!(?:--|doctype)[^<>]{0,1000}|/?[A-Za-z][A-Za-z0-9:-]{0,30}(?:\s[^<>]{0,1000}=[^<>]{0,1000})?\s{0,8}/?)>",
    re.IGNORECASE,
)
_LOST_PAGE: Final = re.compile(
    r"[<\s]{0,8}!?\s?doctype\s{0,8}html.*|<\s?html.*", re.IGNORECASE | re.DOTALL
)
_FRAME: Final = re.compile(
    r"^\s{1,40}(?:at |File \"|\^|~|\.\.\. ).*$|^Traceback \(most recent call last\):.*$",
    re.MULTILINE,
)
_FRAME_CODE: Final = re.compile(r"^\s{4,40}\S.*$", re.MULTILINE)
_PREFIX: Final = re.compile(
    r"^\s{0,8}(?:(?:(?:[A-Za-z_][\w$]{0,60}(?:\.|::)){0,8}[A-Za-z_]\w{0,80}(?:Error|Exception|Timeout|Warning)|error|exception|err|fatal|traceback|"
    r"uncaught|错误|异常)\s{0,2}[:：]\s{0,4}){1,4}",
    re.IGNORECASE,
)
_SPACE: Final = re.compile(r"\s{1,4096}")


def clean_message(evidence: Evidence, judgement: Judgement, redactor: Border) -> str:
    """One line for a model: what the upstream said, at most 300 characters."""
    text = _source_text(evidence, judgement)
    return shorten(redactor.text(tidy(text)), MESSAGE_LIMIT)


def tidy(text: str) -> str:
    """Tags, pages, stacks and class names off; white space to one blank."""
    text = text[:_READ]
    text = (
        _FRAME_CODE.sub("", _FRAME.sub("", text))
        if "\n" in text and ("Traceback" in text or "\n    at " in text)
        else text
    )
    text = _LOST_PAGE.sub("", text)
    text = _TAG.sub(" ", text).replace("<", "‹").replace(">", "›") if "<" in text else text
    text = _SPACE.sub(" ", text).strip(" :-,;|")
    stripped = _PREFIX.sub("", text)
    return stripped or text


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, never half of one, marked where cut."""
    if len(text) <= limit:
        return text
    return text[: limit - 1].rstrip() + "…"


def _source_text(evidence: Evidence, judgement: Judgement) -> str:
    finding, shape = judgement.finding, judgement.shape
    if finding is not None and finding.family == "stated":
        return finding.message or finding.code
    if (
        evidence.problem in ("truncated", "encoding", "invalid_json", "empty", "too_large")
        and finding is not None
        and finding.category == "parsing"
    ):
        return _problem_text(evidence)
    if shape is not None and shape.message:
        return shape.message
    if finding is not None and finding.message:
        return finding.message
    if evidence.title:
        if finding is not None and finding.code == "parsing.html_instead_of_json":
            return f"expected JSON, got {_type(evidence)} (“{evidence.title}”)"
        return evidence.title
    if (
        finding is not None
        and finding.code == "parsing.html_instead_of_json"
        and evidence.source != "text"
        and not evidence.exceptions
    ):
        return f"expected JSON, got {_type(evidence)}"
    said = evidence.parts.get("message")
    if said and evidence.source != "response":
        return said
    if evidence.exceptions and evidence.source == "exception":
        texts = [fact.text for fact in evidence.exceptions if fact.text]
        return texts[0] if texts else evidence.exceptions[0].name.rpartition(".")[2]
    if isinstance(evidence.body, str):
        return evidence.body
    if evidence.text and not (
        isinstance(evidence.body, dict | list) and evidence.source == "response"
    ):
        return evidence.text
    if evidence.reason:
        return evidence.reason
    if evidence.source == "expired" and evidence.limit is not None:
        return f"no end within {evidence.limit:g} s"
    return f"HTTP {evidence.status}" if evidence.status else ""


def _type(evidence: Evidence) -> str:
    return (evidence.content_type or "text/html").partition(";")[0].strip()


def _problem_text(evidence: Evidence) -> str:
    got, told = evidence.length_got, evidence.length_told
    match evidence.problem:
        case "truncated" if told is not None and got is not None and got < told:
            return f"the answer ends after {got} of {told} bytes"
        case "truncated":
            return (
                f"the JSON ends in the middle, after {got} bytes"
                if got is not None
                else "the JSON ends in the middle"
            )
        case "empty":
            return "expected JSON, got an empty body"
        case "encoding":
            return f"the bytes are not in the character set told ({evidence.content_type or 'none told'})"
        case "too_large":
            return f"the answer passes the size limit ({told or got} bytes)"
        case _:
            place = f" at character {evidence.position}" if evidence.position is not None else ""
            return f"expected JSON, got text that is not JSON{place}"


def excerpt(evidence: Evidence, redactor: Border) -> Excerpt:
    """What the upstream really said, for a person: redacted first, then cut."""
    original = evidence.parts.get("message") or evidence.text or ""
    if evidence.exceptions and evidence.source == "exception":
        original = f"{evidence.exceptions[0].name}: {evidence.exceptions[0].text}"
    elif evidence.title:
        original = evidence.title
    snippet = _snippet(evidence, redactor)
    title = redactor.text(evidence.title)[:MESSAGE_LIMIT] if evidence.title else None
    message = redactor.text(_SPACE.sub(" ", original[:_READ]).strip())
    return Excerpt(
        shorten(message, MESSAGE_LIMIT),
        evidence.content_type,
        evidence.length_got if evidence.length_got is not None else evidence.length_told,
        snippet,
        title,
    )


def _snippet(evidence: Evidence, redactor: Border) -> str | None:
    if (
        evidence.source == "exception"
        and evidence.status is None
        and isinstance(evidence.body, Unset)
    ):
        return None
    if evidence.text:
        return shorten(redactor.text(evidence.text[:_READ]), SNIPPET_LIMIT)
    if isinstance(evidence.body, Unset) or evidence.body is None:
        return None
    import json

    try:
        text = json.dumps(redactor.data(evidence.body), ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return None
    return shorten(text, SNIPPET_LIMIT)
