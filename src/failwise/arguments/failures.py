"""The failures of this room: the model's call itself is wrong, and nothing was sent."""

from collections.abc import Mapping, Sequence
from typing import Any

from failwise.arguments.decode import Malformed
from failwise.arguments.phrases import phrase, phrases
from failwise.arguments.readings import fold
from failwise.arguments.violations import Redact, as_it_is, violations
from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Category, Effect, FixBy, Layer
from failwise.vocabulary.result import Repair

_SHOWN = 5
_AROUND = 200
_REDACTED = 4000
"""Of this many characters the first 500 are kept: a secret that is cut here is not among them."""


def failure(
    code: str,
    text: Mapping[str, str],
    details: dict[str, Any],
    *,
    meaning: Mapping[str, str] | None = None,
    snippet: str | None = None,
    length: int | None = None,
) -> Failure:
    """A failure of category ``model_output``; `text` is its sentence for each language.

    `meaning` is given where it says more than the registry does and `details` do not say it.
    """
    return Failure(
        Category.MODEL_OUTPUT,
        f"model_output.{code}",
        text["en"],
        effect=Effect.NOT_SENT,
        transient=False,
        fix_by=FixBy.MODEL,
        layer=Layer.MODEL_OUTPUT,
        meaning=meaning,
        details={"text": dict(text), **details},
        confidence=1.0,
        rule=f"arguments.{code}",
        evidence=Excerpt(snippet=snippet[:500], length=length) if snippet else None,
    )


def malformed(error: Malformed, raw: str, redact: Redact = as_it_is) -> Failure:
    """The text is no JSON object. `details`: ``reason``, ``position`` (characters), ``line``, and
    what stands ``near`` it, unless something there has to be hidden.
    """
    position = error.position
    found = repr(error.found[0]) if error.found else phrases()["word"]["end"]
    text = phrase("malformed", error.reason, position=position, found=found)
    details: dict[str, Any] = {"reason": error.reason}
    if position is not None:
        details["position"] = position
        details["line"] = raw.count("\n", 0, position) + 1
        around = raw[max(0, position - _AROUND) : position + _AROUND]
        if redact("", around) == around:
            details["near"] = raw[max(0, position - 20) : position + 20]
    code = "truncated" if error.reason == "truncated" else "invalid_json"
    return failure(
        code, text, details, meaning=text, snippet=_shown(raw, redact), length=_size(raw)
    )


def violated(
    errors: Sequence[Any],
    refused: Sequence[Repair] = (),
    raw: str | None = None,
    redact: Redact = as_it_is,
) -> Failure:
    """The arguments do not fit the schema. `details`: ``violations``, ``repairs_refused``."""
    found = violations(errors, redact)
    separator = {"en": "; ", "zh": "；"}
    whole = phrases()["word"]["arguments"]
    text = {
        language: separator[language].join(
            f"{entry['parameter'] or whole[language]} {entry['text'][language]}"
            for entry in found[:_SHOWN]
        )
        for language in separator
    }
    if len(found) > _SHOWN:
        more = phrase("word", "more", count=len(found) - _SHOWN)
        text = {
            language: text[language] + separator[language] + more[language] for language in more
        }
    details: dict[str, Any] = {"violations": found}
    if refused:
        details["repairs_refused"] = [redacted(repair, redact).to_dict() for repair in refused]
    return failure(
        "schema_violation", text, details, snippet=_shown(raw, redact), length=_size(raw)
    )


def redacted(repair: Repair, redact: Redact) -> Repair:
    """A repair without the secrets in what it changed."""
    tokens = (token for token in reversed(repair.path.split("/")) if not token.isdecimal())
    named = next(tokens, "")
    before, after = redact(named, repair.before), redact(named, repair.after)
    return Repair(repair.kind, repair.path, before, after, repair.grade)


def _size(raw: str | None) -> int | None:
    """Its length in bytes."""
    return None if raw is None else len(raw.encode("utf-8", "surrogatepass"))


def _shown(raw: str | None, redact: Redact) -> str | None:
    """The start of what was sent: redacted first, cut afterwards."""
    return None if raw is None else str(redact("", raw[:_REDACTED]))


def unknown_tool(
    name: str,
    tools: Mapping[str, Mapping[str, Any] | None] | Sequence[str],
    arguments: Mapping[str, Any] | None = None,
) -> Failure:
    """The model called a tool that does not exist. Nothing is redirected.

    `tools` are the tools there are, with their schemas where known: one that takes just these
    `arguments` is near, whatever it is called.

    `details`: ``name``, ``nearest`` (at most 5, best first), ``tools`` (all up to 20, nearest
    first, else the nearest alone) and ``count``.
    """
    from difflib import SequenceMatcher

    folded = _letters(name)[:200]
    scores = {
        tool: SequenceMatcher(None, folded, _letters(tool)[:200], autojunk=False).ratio()
        for tool in dict.fromkeys(tools)
    }
    schemas = tools if isinstance(tools, Mapping) else {}
    fits = {tool: _fit(schemas.get(tool), arguments) for tool in scores}
    ranked = sorted(scores, key=lambda tool: -(scores[tool] + fits[tool]))
    nearest = [tool for tool in ranked if scores[tool] >= 0.5 or fits[tool] == 1][:5]
    shown = ranked if len(ranked) <= 20 else ranked[:5]
    rows = phrases()["unknown_tool"]
    text = {
        language: rows[language].format(name=name[:100])
        + (
            rows["tools" if len(ranked) <= 20 else "nearest"][language].format(
                tools=", ".join(shown)
            )
            if shown
            else ""
        )
        for language in ("en", "zh")
    }
    return failure(
        "unknown_tool",
        text,
        {"name": name[:200], "nearest": nearest, "tools": shown, "count": len(ranked)},
        meaning={language: rows[language].format(name=name[:100]) for language in ("en", "zh")},
    )


def _fit(schema: Mapping[str, Any] | None, arguments: Mapping[str, Any] | None) -> float:
    """How well the keys of arguments fit a schema: 1 where all are known and none is missing."""
    properties = (schema or {}).get("properties")
    if not arguments or not isinstance(properties, Mapping):
        return 0.0
    sent = {fold(key) for key in list(arguments)[:100]}
    known = {fold(key) for key in properties}
    required = {fold(key) for key in (schema or {}).get("required") or ()}
    return len(sent & known) / len(sent | required)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
