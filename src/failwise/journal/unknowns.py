"""What a journal holds of failures that no rule knew, by fingerprint, with what an advisor said."""

import json
from typing import TYPE_CHECKING, Any, Final

from failwise.classify.suggestions import Cluster
from failwise.journal.advice import AdviceBook

if TYPE_CHECKING:
    from failwise.journal.advice import Advice
    from failwise.journal.reader import Source

_ROWS: Final = 5_000
"""Newest failures that are looked at for examples."""
_EXAMPLES: Final = 10
"""Messages kept for each fingerprint."""
_OTHERS: Final = 500
_COUNTS: Final = (
    "SELECT fingerprint, count(*) AS times, max(started) AS last FROM calls"
    " WHERE success=0 AND fingerprint<>'' AND (category='unknown' OR rule='advisor')"
    " GROUP BY fingerprint ORDER BY times DESC LIMIT ?",
    "SELECT fingerprint, count(*) AS times, max(at) AS last FROM attempts"
    " WHERE fingerprint<>'' AND (category='unknown' OR failure_rule='advisor')"
    " GROUP BY fingerprint ORDER BY times DESC LIMIT ?",
)
_FAILED: Final = (
    "SELECT fingerprint, message, tool, provider, failure FROM calls"
    " WHERE success=0 AND (category='unknown' OR rule='advisor') ORDER BY started DESC LIMIT ?"
)
_TRIED: Final = (
    "SELECT attempts.fingerprint AS fingerprint, attempts.message AS message, calls.tool AS tool,"
    " attempts.provider AS provider, NULL AS failure"
    " FROM attempts JOIN calls ON calls.id = attempts.call"
    " WHERE attempts.category='unknown' OR attempts.failure_rule='advisor'"
    " ORDER BY attempts.at DESC LIMIT ?"
)
_KNOWN: Final = (
    "SELECT message, max(started) AS last FROM calls WHERE success=0 AND category<>'unknown'"
    " AND rule<>'advisor' AND message<>'' GROUP BY message ORDER BY last DESC LIMIT ?"
)


def unknown_clusters(source: "Source", *, limit: int = 200) -> list[Cluster]:
    """The commonest unknown failures, and every answer of an advisor that no person has judged."""
    advice = {one.fingerprint: one for one in AdviceBook(source).listed()}
    counts: dict[str, tuple[int, float]] = {}
    for sql in _COUNTS:
        for row in source.rows(sql, (limit,)):
            times, last = counts.get(row["fingerprint"], (0, 0.0))
            counts[row["fingerprint"]] = max(times, row["times"]), max(last, row["last"])
    examples = _examples(source)
    wanted = dict.fromkeys([*counts, *(name for name, one in advice.items() if one.code)])
    return [
        _cluster(name, counts.get(name), examples.get(name), advice.get(name))
        for name in wanted
        if name not in advice or advice[name].accepted is None
    ]


def known_messages(source: "Source") -> list[str]:
    """Messages of failures that rules know: among them counter-examples are looked for."""
    return [row["message"] for row in source.rows(_KNOWN, (_OTHERS,))]


class _Examples:
    """What was seen of one fingerprint."""

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}
        self.originals: dict[str, None] = {}
        self.tools: dict[str, None] = {}
        self.provider: str | None = None

    def add(self, row: Any) -> None:
        if row["message"] and len(self.messages) < _EXAMPLES:
            self.messages[row["message"]] = None
        if row["tool"] and len(self.tools) < _EXAMPLES:
            self.tools[row["tool"]] = None
        self.provider = self.provider or row["provider"]
        original = _original(row["failure"])
        if original and len(self.originals) < _EXAMPLES:
            self.originals[original] = None


def _examples(source: "Source") -> dict[str, _Examples]:
    found: dict[str, _Examples] = {}
    for sql in (_FAILED, _TRIED):
        for row in source.rows(sql, (_ROWS,)):
            if row["fingerprint"]:
                found.setdefault(row["fingerprint"], _Examples()).add(row)
    return found


def _original(failure: str | None) -> str | None:
    """What the upstream really said, as it was kept."""
    try:
        data = json.loads(failure) if failure else {}
    except ValueError:
        return None
    evidence = data.get("evidence") if isinstance(data, dict) else None
    message = evidence.get("message") if isinstance(evidence, dict) else None
    return message if isinstance(message, str) else None


def _cluster(
    name: str,
    count: tuple[int, float] | None,
    examples: _Examples | None,
    advice: "Advice | None",
) -> Cluster:
    seen = examples or _Examples()
    messages = tuple(seen.messages) or ((advice.message,) if advice else ())
    tools = tuple(seen.tools) or ((advice.tool,) if advice and advice.tool else ())
    return Cluster(
        name,
        messages,
        tuple(seen.originals),
        tools,
        seen.provider or (advice.provider if advice else None),
        count[0] if count else 1,
        count[1] if count else (advice.at if advice else None),
        advice.code if advice else None,
        advice.advisor if advice and advice.code else None,
    )
