"""The contract of ``failwise arguments --jsonl``: a case in, its arguments out, or null."""

from collections.abc import Mapping
from typing import Any

from failwise.arguments.reader import ArgumentReader


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """``{"id", "tool", "schema", "raw"}`` → ``{"arguments": object or null}``.

    Raises `UsageError` when the case's schema is wrong.
    """
    reading = ArgumentReader(case.get("schema"), case.get("tool") or "").read(case.get("raw"))
    return {"arguments": reading.arguments}
