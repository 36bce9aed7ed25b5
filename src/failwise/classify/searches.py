"""Searches that did not see everything: shards that failed, time that ran out (Elasticsearch, OpenSearch)."""

from typing import Final

from failwise.classify.shape import Body, Shape, first_text
from failwise.vocabulary.records import MAPPING

_PARTS_KEPT: Final = 20
_UNAVAILABLE: Final = 503
"""With what status a search ends of which no shard may be missing."""


def incomplete_search(root: Body) -> Shape | None:
    """S21: a search with hits of some shards only, or of the time it had; where no shard answered,
    all of it failed.

    A write is none: it stands as soon as one copy took it, and the others follow.
    """
    shards = root.get("_shards")
    if not isinstance(shards, MAPPING):
        shards = {}
    if "result" in root and "_id" in root:
        return None
    failed = shards.get("failed")
    if isinstance(failed, int) and not isinstance(failed, bool) and failed > 0:
        listed = shards.get("failures")
        first = listed[0] if isinstance(listed, list) and listed else {}
        reason = first.get("reason") if isinstance(first, MAPPING) else None
        told: Body = reason if isinstance(reason, MAPPING) else {}
        message = f"{failed} of {shards.get('total', failed)} shards failed"
        cause = first_text(told, ("reason", "type"))
        parts = listed[:_PARTS_KEPT] if isinstance(listed, list) and listed else [failed]
        none = shards.get("successful") == 0
        return Shape(
            "S21",
            True,
            first_text(told, ("type",)),
            f"{message}: {cause}" if cause else message,
            parts=[] if none else list(parts),
            status=_UNAVAILABLE if none else None,
        )
    if root.get("timed_out") is True and (shards or "took" in root):
        message = "timed_out: the search ended before it had seen everything"
        return Shape("S21", True, "timed_out", message, parts=["timed_out"])
    return None
