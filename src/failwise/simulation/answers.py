"""How a simulated upstream can answer, and what the real classifier makes of each answer.

An answer is classified once and remembered: a simulation makes millions of them, of nine kinds.
"""

from dataclasses import replace
from typing import Any, Literal

from failwise.classify import Classifier
from failwise.evidence import from_exception, from_response
from failwise.evidence.facts import Evidence
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.steps import Answer

Ill = Literal["refused", "error", "unavailable", "throttled", "no", "silent"]
"""``refused``: no connection. ``error``: a 500. ``unavailable``: a 503. ``throttled``: a 429. ``no``:
a 404, which is an answer. ``silent``: the caller's time limit passed."""

_NO = '{"error": {"code": "not_found", "message": "there is no such item"}}'
_STATUS = {"error": 500, "unavailable": 503, "throttled": 429, "no": 404}


class Trouble:
    """The value of an answer that is none: its kind, and the wait it told in seconds."""

    __slots__ = ("kind", "wait")

    def __init__(self, kind: Ill, wait: float | None = None) -> None:
        self.kind = kind
        self.wait = wait


GOOD = Answer(value=True)
"""The one good answer: never written to."""


class _Response:
    """A response as clients have it."""

    def __init__(self, status: int) -> None:
        self.status_code = status
        self.headers = {"content-type": "application/json"}
        self.text = _NO if status == 404 else "{}"
        self.content = self.text.encode()


class Judge:
    """Failures of simulated answers, by the real classifier."""

    def __init__(self) -> None:
        self._classifier = Classifier()
        self._known: dict[tuple[Ill, bool], Failure] = {}

    def failure(self, answer: Answer, read_only: bool) -> Failure | None:
        """What went wrong, or None."""
        if answer.expired:
            return self._failure("silent", read_only)
        if not isinstance(answer.value, Trouble):
            return None
        failure = self._failure(answer.value.kind, read_only)
        wait = answer.value.wait
        return failure if wait is None else replace(failure, retry_after=wait)

    def _failure(self, kind: Ill, read_only: bool) -> Failure:
        known = self._known.get((kind, read_only))
        if known is None:
            evidence: Any
            if kind == "silent":
                evidence = Evidence("expired", phase="any", text="no answer in time")
            elif kind == "refused":
                evidence = from_exception(ConnectionRefusedError(111, "Connection refused"))
            else:
                evidence = from_response(_Response(_STATUS[kind]))
            found = self._classifier.classify(evidence, tool="simulated", read_only=read_only)
            assert found is not None
            known = self._known[kind, read_only] = found
        return known
