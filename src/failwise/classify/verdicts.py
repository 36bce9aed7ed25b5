"""Verdicts that rest on the form of an answer alone: pages, unusable bodies, shapes nobody knows."""

import re
from typing import Any, Final

from failwise.classify.finding import Finding, strongest
from failwise.classify.markup import is_html
from failwise.classify.selection import refuse
from failwise.classify.shape import Shape
from failwise.classify.text import match
from failwise.evidence.facts import Evidence
from failwise.evidence.pages import asks_to_sign_in, is_login, is_login_address
from failwise.vocabulary.kinds import Effect, FixBy
from failwise.vocabulary.records import MAPPING

PAGE_TEXT: Final = 2_000
"""Characters of a page that are looked at for words."""
_CLEAR: Final = 80
_PLAIN: Final = 70
_BARE: Final = re.compile(
    r"(?:(?:error|http)?[ :-]{0,3}[45]\d\d[ :|–—-]{0,3})?(?:error[ :-]{0,3})?"
    r"(?:access denied|forbidden|unauthorized|bad gateway|service (?:temporarily )?unavailable|gateway time-?out|(?:page |file )?not found"
    r"|internal server error|too many requests|页面(?:不存在|未找到|无法访问|找不到)|访问(?:被)?拒绝|拒绝访问|禁止访问|系统维护中?|服务(?:暂时)?不可用|没有权限|服务器(?:内部)?错误)"
    r"[.!。！]?(?:[ :|–—-]{1,3}(?:error )?[45]\d\d)?",
    re.IGNORECASE,
)
"""Titles that pages of servers have in place of what was asked for, under a 200 too; nothing else stands in them."""
_ERROR_TITLE: Final = re.compile(r"(?:an )?errors?(?: page)?|出错了|错误", re.IGNORECASE)
_LOGIN: Final = re.compile(
    r"(?<![a-z])(?:log-?in|sign-?in|sso|oauth2?|saml|cas)(?![a-z])", re.IGNORECASE
)
_TAG: Final = re.compile(r"<[^<>]{0,500}>")
_PROBLEMS: Final = {
    "html": "parsing.html_instead_of_json",
    "truncated": "parsing.truncated",
    "encoding": "parsing.encoding",
    "empty": "parsing.empty",
    "invalid_json": "parsing.invalid_json",
    "not_json": "parsing.invalid_json",
    "too_large": "parsing.too_large",
}
_ONLY_WHERE_JSON_WAS_DUE: Final = frozenset({"html", "empty", "not_json"})


def stated(evidence: Evidence) -> Finding:
    """What a tool said itself; nothing is guessed."""
    error = evidence.tool_error
    assert error is not None
    return Finding(
        "stated",
        error.code,
        error.effect,
        100,
        "stated",
        error.transient,
        message=error.message or None,
        provider_code=error.provider_code,
    )


def page_findings(evidence: Evidence) -> list[Finding]:
    """What a page under a 2xx says: a challenge, a maintenance notice. It never reached the service,
    or nobody can tell: the effect is unknown."""
    if not is_html(evidence):
        return []
    text = evidence.text or ""
    words = f"{evidence.title or ''}\n{bare(text) if len(text) < PAGE_TEXT else ''}"
    found = [
        finding
        for finding in match(words)
        if finding.code in ("auth.human_check", "server.maintenance") and finding.strength >= _CLEAR
    ]
    if not found and evidence.title and _BARE.fullmatch(evidence.title.strip()):
        best = strongest(match(evidence.title))
        found = [best] if best is not None and best.strength >= _PLAIN else []
    if (
        not found
        and _ERROR_TITLE.fullmatch((evidence.title or "").strip())
        and len(text) < PAGE_TEXT
    ):
        best = strongest(match(bare(text)))
        found = [best] if best is not None and best.strength >= _CLEAR else []
    if not found and evidence.source == "response":
        found = _unasked(evidence)
    for finding in found:
        finding.effect = Effect.UNKNOWN
    return found


def _unasked(evidence: Evidence) -> list[Finding]:
    """A login, or any page, where something else was asked for. One that was due as JSON is left to
    `problem_finding`; one that may have been wanted is content."""
    if evidence.asked == "page" or evidence.expects_json:
        return []
    text = evidence.text or ""
    if evidence.asked is not None:
        sign_in = asks_to_sign_in(evidence.title, text)
    else:  # perhaps pages are what is fetched: then it must be a login, and not the one asked for
        sign_in = (
            evidence.problem is None
            and is_login(evidence.title, text)
            and not is_login_address(evidence.url)
        )
    if sign_in or evidence.sent_to_login:
        return [Finding("page.login", "auth.invalid_credential", Effect.UNKNOWN, 84, "structure")]
    if evidence.asked == "data" and 200 <= (evidence.status or 0) < 300:
        code = "parsing.html_instead_of_json"
        return [Finding("page.instead", code, Effect.UNKNOWN, 82, "structure")]
    return []


def redirect_finding(evidence: Evidence) -> Finding | None:
    """A redirect that nobody followed: to a login it is a credential that does not hold; anywhere
    else it is a wrong address, but only where the tool promised an answer."""
    status = evidence.status or 0
    if not 300 <= status < 400 or status == 304:
        return None
    if _LOGIN.search(evidence.headers.get("location", "")[:2_000]):
        code = "auth.invalid_credential"
    elif evidence.expects_json:
        code = "invalid_request.endpoint_not_found"
    else:
        return None
    return Finding(f"status.{status}", code, Effect.REJECTED, 80, "status")


def problem_finding(evidence: Evidence) -> Finding | None:
    """A 2xx whose body cannot be used: it was done, only the answer is lost."""
    problem = evidence.problem
    if problem is None:
        return None
    due = evidence.expects_json or "json" in (evidence.content_type or "").lower()
    if problem in _ONLY_WHERE_JSON_WAS_DUE and not due:
        return None
    return Finding(f"body.{problem}", _PROBLEMS[problem], Effect.APPLIED, 88, "structure")


def shape_finding(shape: Shape) -> Finding:
    """A body that failed in a shape of ours, with a code that no table and no rule knows."""
    if shape.name == "S12" or (shape.parameter and shape.name in ("S9", "S10", "S11")):
        return Finding(
            f"shape.{shape.name}", "invalid_request.parameter", Effect.REJECTED, 55, "shape"
        )
    if shape.code is not None and shape.code.startswith("exit "):
        return Finding("shape.exit", "tool.process_failed", Effect.UNKNOWN, 55, "shape")
    return refuse(f"shape.{shape.name}", shape.code)


def unclassified() -> Finding:
    """It failed, and no rule knows how: said, not guessed."""
    return Finding("none", "unknown.unclassified", Effect.UNKNOWN, 1, "none", fix_by=FixBy.MODEL)


def partial(shape: Shape) -> Finding:
    """Some parts of a batch failed, the others are done: never repeat the whole."""
    return Finding(
        f"shape.{shape.name}.partial",
        "business.partial",
        Effect.APPLIED,
        90,
        "shape",
        transient=False,
        provider_code=shape.code,
    )


def bare(text: str | None) -> str:
    """The words of a page, without its tags."""
    return _TAG.sub(" ", (text or "")[:PAGE_TEXT])


def leaves(body: Any, depth: int = 0) -> str:
    """The texts of a small body, for an error whose shape nobody knows."""
    if isinstance(body, str):
        return body[:500]
    if depth >= 3:
        return ""
    if isinstance(body, MAPPING):
        return "\n".join(
            filter(None, (leaves(value, depth + 1) for value in list(body.values())[:20]))
        )
    if isinstance(body, list):
        return "\n".join(filter(None, (leaves(value, depth + 1) for value in body[:10])))
    return ""
