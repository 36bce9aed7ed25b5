"""The JSON lines contract of classification: one case in, one verdict out."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from failwise.classify.classifier import REFRESHED, Classifier
from failwise.classify.gate import plainly_fine
from failwise.classify.passing import without_passing
from failwise.evidence import Evidence, from_response, from_text, from_value
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, FixBy

if TYPE_CHECKING:
    from failwise.classify.own import OwnRules

_FIXED_BY_ARGUMENTS: Final = frozenset(
    {
        "invalid_request.parameter",
        "invalid_request.missing_parameter",
        "invalid_request.malformed",
        "invalid_request.too_large",
        "business.conflict",
    }
)


@dataclass(slots=True)
class RecordedAnswer:
    """An HTTP answer from a record, in the form that clients' responses have."""

    status_code: int
    headers: Mapping[str, str]
    content: str | bytes
    method: str | None = None
    url: str | None = None
    expects_json: bool = False
    extensions: dict[str, Any] = field(default_factory=dict)


class Contract:
    """Answers case after case; `rules` are the user's own."""

    def __init__(self, rules: "OwnRules | None" = None) -> None:
        self.classifier = Classifier(rules=rules)
        self._rules = rules
        self._known: dict[str, dict[str, Any]] = {}
        self._alike: dict[str, dict[str, Any]] = {}

    def answer(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on one case: ``{"id", "kind", "input"}`` with kind ``text``, ``http`` or
        ``tool_result``.

        Gives id, category (``success`` included), retry (`retry_verdict`), effect (null for a success),
        retry_after_s, fix_by, code, rule, confidence. Raises `UsageError` for another kind.
        """
        return {"id": case.get("id"), **self.verdict(case["kind"], case["input"])}

    def verdict(self, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same without the id; of every success it is `SUCCESS` itself."""
        if kind == "text":
            return self._of_text(given["text"])
        return _verdict(self.classifier.classify(evidence_of(kind, given)))

    def failure(self, text: str) -> Failure | None:
        """The failure that a log line tells of. Most are fine, which a glance shows."""
        return None if self._is_fine(text) else self.classifier.classify(from_text(text))

    def _is_fine(self, text: str) -> bool:
        own = self._rules
        return plainly_fine(text) and (own is None or own.verdict(text, None) is None)

    def _of_text(self, text: str) -> dict[str, Any]:
        """The verdict on a log line; some come again and again, and others at another time, of another
        request."""
        verdict = self._known.get(text)
        if verdict is None:
            if self._is_fine(text):
                return SUCCESS
            if len(text) > _KNOWN_LENGTH:
                return _verdict(self.classifier.classify(from_text(text)))
            # Rules of one's own may read what the package's never do.
            alike = without_passing(text) if self._rules is None else text
            verdict = self._alike.get(alike)
            if verdict is None:
                verdict = _verdict(self.classifier.classify(from_text(text)))
                _remember(self._alike, alike, verdict)
            _remember(self._known, text, verdict)
        return verdict


def _remember(known: dict[str, dict[str, Any]], line: str, verdict: dict[str, Any]) -> None:
    if verdict["retry_after_s"] is not None:
        return  # it may be counted from now
    if len(known) >= _KNOWN_LIMIT:
        known.clear()
    known[line] = verdict


@functools.cache
def _shared() -> Contract:
    return Contract()


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """`Contract.answer`, with the package's rules alone."""
    return _shared().answer(case)


_KNOWN_LIMIT: Final = 1_024
_KNOWN_LENGTH: Final = 512
"""Texts of which the verdict is remembered, of at most so many characters."""
SUCCESS: Final[dict[str, Any]] = {
    "category": "success",
    "retry": "no",
    "effect": None,
    "retry_after_s": None,
    "fix_by": FixBy.NOBODY.value,
    "code": None,
    "rule": None,
    "confidence": None,
}


def _verdict(failure: Failure | None) -> dict[str, Any]:
    if failure is None:
        return SUCCESS
    return {
        "category": failure.category.value,
        "retry": retry_verdict(failure),
        "effect": failure.effect.value,
        "retry_after_s": failure.retry_after,
        "fix_by": curer(failure).value,
        "code": failure.code,
        "rule": failure.rule,
        "confidence": failure.confidence,
    }


def evidence_of(kind: str, given: Mapping[str, Any]) -> Evidence:
    """The evidence of one recorded end of a call."""
    match kind:
        case "text":
            return from_text(given["text"])
        case "http":
            recorded = RecordedAnswer(
                given["status"],
                given.get("headers") or {},
                given.get("body") or "",
                given.get("method"),
                given.get("url"),
            )
            return from_response(recorded)
        case "tool_result":
            return from_value(given["json"] if "json" in given else given["text"])
    raise UsageError(f"kind={kind!r}: write text, http or tool_result")


def curer(failure: Failure) -> FixBy:
    """Who can cure it, where ``nobody`` means that time alone does: the runtime only waits."""
    return FixBy.NOBODY if failure.transient else failure.fix_by


def retry_verdict(failure: Failure) -> str:
    """Would the same request, sent later, plausibly succeed?

    ``yes`` after a short back-off, ``after_wait`` where a window must pass or a wait is told,
    ``after_fix`` where runtime or model can repair arguments or credential first, else ``no``.
    """
    if failure.category is Category.RATE_LIMIT:
        return "after_wait"
    if failure.transient:
        return "after_wait" if failure.retry_after else "yes"
    if failure.category is Category.MODEL_OUTPUT or failure.code in _FIXED_BY_ARGUMENTS:
        return "after_fix" if failure.fix_by in (FixBy.MODEL, FixBy.RUNTIME) else "no"
    refresh = failure.advice is Action.REFRESH_CREDENTIAL and failure.code in REFRESHED
    if failure.code == "auth.credential_expired" or refresh:
        return "after_fix" if failure.fix_by is FixBy.RUNTIME else "no"
    return "no"
