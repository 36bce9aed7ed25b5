"""Judging a recorded end of a call, for regression tests of failures that were seen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.vocabulary.failure import Failure


def judged(recorded: Mapping[str, Any], *, tool: str = "") -> "Failure | None":
    """Today's verdict on a recorded end of a call; None: it was a success.

    `recorded` is ``{"kind", "input"}`` as `failwise classify --jsonl` reads it: kind ``http`` with
    ``status``, ``headers``, ``body`` and ``url``, kind ``text`` with ``text``, kind ``tool_result``
    with ``json`` or ``text``; and ``profile`` where a provider's profile is to be used. `failwise
    export CALL_ID --as pytest` writes tests of this form. Raises `UsageError` for another kind.
    """
    from failwise.classify.classifier import Classifier
    from failwise.classify.contract import evidence_of

    evidence = evidence_of(recorded["kind"], recorded["input"])
    return Classifier().classify(evidence, tool=tool, profile=recorded.get("profile"))
