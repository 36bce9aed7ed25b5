"""The contract of ``failwise redact --jsonl``: one object in, one out."""

from collections.abc import Mapping
from typing import Any

from failwise.redaction.redactor import Redactor

_REDACTOR: list[Redactor] = []


def answer(request: Mapping[str, Any]) -> dict[str, str]:
    """``{"id", "text"}`` → ``{"text"}`` without secrets; the environment is not looked at."""
    if not _REDACTOR:
        _REDACTOR.append(Redactor())
    return {"text": _REDACTOR[0].text(str(request["text"]))}
