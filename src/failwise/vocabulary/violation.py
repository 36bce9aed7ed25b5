"""What is wrong with one parameter, in words: from the structure, whoever found it."""

from collections.abc import Mapping, Sequence
from typing import Any

from failwise.vocabulary.sentences import say, table

_SHOWN = 10
_BOUNDS = (
    ("minimum", "maximum", "between"),
    ("minimum", None, "minimum"),
    ("maximum", None, "maximum"),
    ("above", None, "above"),
    ("below", None, "below"),
)


def violation_text(row: Mapping[str, Any], lang: str) -> str:
    """What to say after the parameter's name: its own text, the upstream's message, or its facts."""
    texts = row.get("text")
    own = texts.get(lang) if isinstance(texts, Mapping) else None
    if own or row.get("message"):
        return str(own or row["message"])
    told = _due(row, lang)
    got = row.get("got")
    if got is None or got == "":
        return told
    return told + say(lang, "must_got", got=got)


def _due(row: Mapping[str, Any], lang: str) -> str:
    """What was due, by the rule and its facts."""
    rule = str(row.get("rule") or "invalid")
    allowed = row.get("allowed")
    if isinstance(allowed, Sequence) and not isinstance(allowed, str) and allowed:
        shown = [str(option) for option in allowed[:_SHOWN]]
        more = ["…"] if len(allowed) > _SHOWN else []
        return say(lang, "must_enum", allowed=table(lang)["separator"].join(shown + more))
    for name in ("type", "format", "pattern"):
        if row.get(name):
            return say(lang, f"must_{name}", **{name: row[name]})
    unit = "_length" if rule in ("length", "digits") else ""
    if row.get("length") is not None:
        return say(lang, "must_digits" if rule == "digits" else "must_length", length=row["length"])
    for one, other, name in _BOUNDS:
        bounds = {key: row[key] for key in (one, other) if key and row.get(key) is not None}
        if len(bounds) == (2 if other else 1):
            return say(lang, f"must_{name}{unit}", **bounds)
    sentence = f"must_{rule}"
    if sentence in ("must_required", "must_unknown", "must_invalid"):
        return say(lang, sentence)
    return str(row.get("expected") or say(lang, "must_invalid"))
