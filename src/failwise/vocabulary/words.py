"""Words: a result, rendered for the model that called the tool and for the person it works for.

Pure rendering over data files: `codes.toml` for what a code means, `words.toml` for the sentences.
The same result gives the same text in any process.
"""

import datetime
import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from failwise.vocabulary.codes import category_of, lookup, registry
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy
from failwise.vocabulary.plain import as_json, as_text
from failwise.vocabulary.result import Language, Repair, ToolResult
from failwise.vocabulary.sentences import say as _say
from failwise.vocabulary.sentences import table as _table
from failwise.vocabulary.violation import violation_text

MESSAGE_LIMIT = 900
UPSTREAM_LIMIT = 300
VALUE_LIMIT = 4000

_VIOLATIONS_SHOWN = 5
_RETRIES = (Action.RETRY_BACKOFF, Action.RETRY_EXACT, Action.RETRY_LATER)
_TAG = re.compile(r"</?[A-Za-z!][^<>]{0,400}>")
_STACK = re.compile(
    r"Traceback \(most recent call last\)[\s\S]{0,4000}|^\s*(?:File \".{0,200}\", line \d+|at [\w.$<>]{1,200}\(.{0,120}\)).*$",
    re.MULTILINE,
)
_HEADER = re.compile(
    r"^\s*(?:HTTP/[\d.]+ \d{3}|(?:set-cookie|cookie|authorization|proxy-authorization|server|date|via|etag|vary|connection|"
    r"cache-control|content-(?:type|length|encoding)|transfer-encoding|strict-transport-security|www-authenticate|"
    r"x-[a-z0-9-]{1,60}|cf-[a-z-]{1,40})\s?:).*$",
    re.MULTILINE | re.IGNORECASE,
)
_PAGE = re.compile(r"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_OURS = ("runtime.step_skipped", "runtime.repeated_call")
"""Not sent, by what this side knew: no upstream said anything."""
_CERTIFICATE_DATES = ("not_before", "not_after")


def remedy(failure: Failure, lang: Language) -> str:
    """One sentence for whoever `failure.fix_by` names.

    The failure's own words first, then the registry's with the facts filled in where all are known,
    then without; a code nobody registered falls back to a general one of its category.
    """
    given = (failure.remedies or {}).get(lang)
    if given:
        return given
    code = lookup(failure.code)
    if code is not None and code.deprecated:
        code = lookup(code.deprecated) or code
    if code is None:
        general = _GENERAL.get(failure.category) or _GENERAL[category_of(failure.code)]
        code = registry()[general]
    template = code.remedy_with.get(lang)
    if template:
        facts = _facts(failure, lang)
        wanted = {name for _, name, _, _ in string.Formatter().parse(template) if name}
        if wanted <= facts.keys():
            return template.format(**facts)
    return code.remedy[lang]


_GENERAL: Mapping[Category, str] = {
    Category.MODEL_OUTPUT: "model_output.schema_violation",
    Category.NETWORK: "network.error",
    Category.SECURITY: "security.certificate_unverified",
    Category.AUTH: "auth.forbidden",
    Category.RATE_LIMIT: "rate_limit.requests",
    Category.INVALID_REQUEST: "invalid_request.parameter",
    Category.PARSING: "parsing.schema_mismatch",
    Category.SERVER: "server.internal",
    Category.BUSINESS: "business.refused",
    Category.TOOL: "tool.exception",
    Category.RUNTIME: "runtime.circuit_open",
    Category.UNKNOWN: "unknown.unclassified",
}


def _facts(failure: Failure, lang: Language) -> dict[str, str]:
    """The details a remedy can name, the certificate's among them, as short texts."""
    certificate = failure.detail("certificate")
    rows = {**(failure.details or {}), **(certificate if isinstance(certificate, Mapping) else {})}
    facts: dict[str, str] = {}
    for name, value in rows.items():
        if isinstance(value, bool) or value is None or value in ("", [], ()):
            continue
        if isinstance(value, list | tuple):
            facts[name] = _clean(_table(lang)["separator"].join(map(str, value[:5])), 120)
        elif isinstance(value, float | int):
            facts[name] = f"{value:g}"
        elif isinstance(value, str | datetime.datetime):
            text = str(value)
            facts[name] = text[:10] if name in _CERTIFICATE_DATES else _clean(text, 120)
    return facts


def for_model(result: ToolResult[Any], lang: Language = "en") -> str:
    """What the model should read; of a failure at most 900 characters, 300 of them the upstream's.

    A failure says first that it failed, then kind, cause, whether it may have taken effect, what was
    tried, what is suggested, and the choices left, only the safe ones. A success is its value as
    text (JSON unless it is a text), cut at 4000 characters, after notes on repairs and fallbacks.
    """
    if result.failure is None:
        return _success(result, lang)
    failure = result.failure
    choices = _numbered(result, failure, lang)
    lines = list(_lines(result, failure, lang))
    room = MESSAGE_LIMIT - len(choices) - 1
    upstream = _upstream(failure, lang)
    spare = room - sum(len(line) + 1 for line in lines)
    frame = len(_say(lang, "said", text="")) + 1
    if upstream and spare - frame >= 20:
        text = _clean(upstream, min(UPSTREAM_LIMIT, spare - frame))
        lines.insert(2, _say(lang, "said", text=text))
    return _shorten("\n".join(lines), room) + "\n" + choices


def _lines(result: ToolResult[Any], failure: Failure, lang: Language) -> Iterator[str]:
    name = failure.code.partition(".")[2] or failure.code
    status = f" · HTTP {failure.http_status}" if failure.http_status else ""
    yield _say(
        lang,
        "failed",
        tool=_clean(result.tool_name, 64),
        category=failure.category.value,
        code=_clean(name, 64),
        status=status,
    )
    yield _say(lang, "cause", text=meaning(failure, lang).rstrip(".。"))
    yield from _particulars(failure, lang)
    effect = result.effect or failure.effect
    if failure.detail("read_only") is not True:
        yield _say(lang, f"effect_{effect.value}")
    tried = _tried(result, failure, lang)
    if tried:
        yield tried
    if result.suggested_action is not None:
        action = result.suggested_action
        if action in _RETRIES and not _repeatable(result, failure):
            action = Action.VERIFY_EFFECT
        text = _say(lang, f"action_{action.value}", when=_when(result, failure, lang))
        yield _say(lang, "suggested", text=text)
    sentence = _advice(failure, lang)
    if sentence:
        yield sentence


def meaning(failure: Failure, lang: Language) -> str:
    """One line on what the failure means: the provider's words, else the registry's."""
    given = (failure.meaning or {}).get(lang)
    if given:
        return _clean(given, 200)
    code = lookup(failure.code)
    if code is None:
        code = registry()[_GENERAL.get(failure.category, "unknown.unclassified")]
    return code.meaning[lang]


def _particulars(failure: Failure, lang: Language) -> Iterator[str]:
    """Violations with their paths, the tools there are, what to check in a stopped run."""
    violations = failure.detail("violations")
    if isinstance(violations, list | tuple):
        known = [row for row in violations if isinstance(row, Mapping)]
        for row in known[:_VIOLATIONS_SHOWN]:
            yield _say(lang, "violation", **_violation(row, lang))
        if len(known) > _VIOLATIONS_SHOWN:
            yield _say(lang, "more", count=len(known) - _VIOLATIONS_SHOWN)
    tools = _names(failure.detail("tools"), lang, 200)
    if failure.code == "model_output.unknown_tool" and tools:
        yield _say(lang, "tools", names=tools)
    cause = failure.detail("cause")
    if failure.code in ("runtime.chain_aborted", *_OURS) and cause:
        if isinstance(cause, Mapping):
            cause = " ".join(str(cause[key]) for key in ("tool", "code") if cause.get(key))
        yield _say(lang, "check", text=_clean(str(cause), 120))


def _violation(row: Mapping[str, Any], lang: Language) -> dict[str, str]:
    path = str(row.get("parameter") or row.get("path") or "/")
    return {"path": _clean(path, 60), "text": _clean(violation_text(row, lang), 110)}


def _tried(result: ToolResult[Any], failure: Failure, lang: Language) -> str:
    """How many requests were sent, and each kind of failure they met, in order."""
    met = [attempt.failure.code for attempt in result.attempts if attempt.failure]
    distinct = list(dict.fromkeys(code.partition(".")[2] or code for code in met))
    names = _names(distinct, lang, 160) if len(distinct) > 1 else ""
    codes = _say(lang, "codes", names=names) if names else ""
    if result.sent > 1:
        line = _say(lang, "tried", count=result.sent, codes=codes)
    elif result.sent == 1:
        line = _say(lang, "tried_once", codes=codes)
    elif failure.effect is Effect.NOT_SENT:
        line = _say(lang, "tried_none")
    else:
        line = ""
    if result.degraded_to:
        fallback = _say(lang, "degraded", name=_clean(result.degraded_to, 64))
        line = line + _table(lang)["space"] + fallback if line else fallback
    return line


def _when(result: ToolResult[Any], failure: Failure, lang: Language) -> str:
    """When a repetition makes sense: the wait that was told, or the moment."""
    if result.retry_at is not None:
        moment = _moment(result.retry_at)
        if moment:
            return _say(lang, "not_before", time=moment)
    if failure.retry_after is not None and failure.retry_after >= 0:
        return _say(lang, "after", seconds=f"{failure.retry_after:g}")
    return ""


def _moment(epoch: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime(
            "%Y-%m-%d %H:%M:%S UTC"
        )
    except (ValueError, OverflowError, OSError):
        return ""


def _advice(failure: Failure, lang: Language) -> str:
    """The remedy, addressed to whoever can use it; none where it would only say "wait"."""
    if failure.fix_by not in (FixBy.MODEL, FixBy.USER, FixBy.OPERATOR):
        return ""
    return _say(lang, f"advice_{failure.fix_by.value}", text=_clean(remedy(failure, lang), 200))


def _upstream(failure: Failure, lang: Language) -> str:
    """What the upstream itself said, where it says more than the meaning does."""
    if failure.category is Category.MODEL_OUTPUT or failure.detail("violations"):
        return ""
    if failure.code in _OURS:
        return ""
    text = failure.message
    page = _PAGE.search(text[:2000])
    if page:
        title = _TITLE.search(text[:4000])
        text = title[1] if title else ""
    if failure.evidence and not text:
        text = failure.evidence.title or ("" if page else failure.evidence.message)
    raised = failure.evidence.message.partition(":")[0] if failure.evidence else ""
    if text and text == raised.rpartition(".")[2]:
        return ""  # the bare name of an exception: nobody said that
    cleaned = _clean(text, UPSTREAM_LIMIT)
    return "" if cleaned.rstrip(".。") == meaning(failure, lang).rstrip(".。") else text


def _numbered(result: ToolResult[Any], failure: Failure, lang: Language) -> str:
    choices = _choices(result, failure, lang)
    numbered = (f"{number}) {text}" for number, text in enumerate(choices, 1))
    return " ".join((_table(lang)["choices"], *numbered))


def _choices(result: ToolResult[Any], failure: Failure, lang: Language) -> Iterator[str]:
    """The choices left, in a fixed order; whatever could do something twice is not among them."""
    safe = _repeatable(result, failure)
    if safe and result.suggested_action in _RETRIES and failure.transient is not False:
        yield _say(lang, "repeat", when=_when(result, failure, lang))
    others = failure.detail("fallbacks_left") or failure.detail("alternatives")
    names = _names(others, lang, 120)
    if not names and failure.code == "model_output.unknown_tool":
        names = _names(failure.detail("nearest"), lang, 120)
    stopped = bool(result.interrupts) or failure.code == "runtime.chain_aborted"
    if names and safe and not stopped:
        yield _say(lang, "switch", names=names)
    if result.repairable and safe and not stopped:
        yield _say(lang, "correct")
    if not stopped:
        yield _say(lang, "skip")
    yield _say(lang, "stop")


def _repeatable(result: ToolResult[Any], failure: Failure) -> bool:
    """Sending it again cannot do it twice."""
    effect = result.effect or failure.effect
    harmless = any(failure.detail(name) is True for name in ("read_only", "idempotent", "keyed"))
    return effect.safe or harmless


def for_user(result: ToolResult[Any], lang: Language = "en") -> str:
    """What the person should read: what it means, whether it may have happened, who does what."""
    tool = _clean(result.tool_name, 64)
    failure = result.failure
    if failure is None:
        if result.degraded_to:
            name = _clean(result.degraded_to, 64)
            return _say(lang, "user_degraded", tool=tool, name=name, age=_age(result, lang))
        return _say(lang, "user_done", tool=tool)
    parts = [_say(lang, "user_failed", tool=tool, meaning=meaning(failure, lang).rstrip(".。"))]
    effect = result.effect or failure.effect
    if failure.detail("read_only") is not True and not effect.safe:
        parts.append(_say(lang, f"user_{effect.value}"))
    waits = result.suggested_action in _RETRIES and effect.safe and failure.transient is not False
    if failure.fix_by in (FixBy.USER, FixBy.OPERATOR):
        parts.append(_clean(remedy(failure, lang), 240))
    if waits and result.retry_at is not None:
        action = _say(lang, "action_retry_later", when=_when(result, failure, lang))
        parts.append(_say(lang, "suggested", text=action))
    return _table(lang)["space"].join(parts)


def _success(result: ToolResult[Any], lang: Language) -> str:
    lines = [_note(repair, lang) for repair in result.repairs[:5]]
    if result.degraded_to:
        name = _clean(result.degraded_to, 64)
        lines.append(_say(lang, "note_degraded", name=name, age=_age(result, lang)))
    if result.verified:
        lines.append(_say(lang, "note_verified"))
    value = result.value
    text = as_text(value)
    text = _whole_characters(text)
    if value is None:
        lines.append(_say(lang, "nothing"))
    elif len(text) > VALUE_LIMIT:
        lines.append(_say(lang, "cut", limit=VALUE_LIMIT, size=len(text)))
        lines.append(_shorten(text, VALUE_LIMIT))
    else:
        lines.append(text)
    return "\n".join(lines)


def _note(repair: Repair, lang: Language) -> str:
    where = _clean(repair.path or "/", 60)
    before = _clean(as_json(repair.before), 60)
    after = _clean(as_json(repair.after), 60)
    return _say(lang, "note_repairs", text=f"{where} {before} → {after}")


def _age(result: ToolResult[Any], lang: Language) -> str:
    seconds = result.extra.get("age_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return ""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if size <= seconds < float("inf"):
            return _say(lang, "note_age", age=_say(lang, unit, count=int(seconds // size)))
    if seconds == float("inf"):
        return ""
    return _say(lang, "note_age", age=_say(lang, "seconds", count=int(seconds)))


def _names(value: Any, lang: Language, limit: int) -> str:
    """Names joined, as many as fit, never half a name."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return ""
    separator = _table(lang)["separator"]
    text = ""
    for item in value[:50]:
        name = _clean(str(item), 64)
        longer = text + separator + name if text else name
        if len(longer) > limit:
            return text + "…"
        text = longer
    return text


def _clean(text: str, limit: int) -> str:
    """One line: no tag, stack, header or control character; white space in one piece; bounded."""
    text = text[: 4 * limit + 4000]
    text = _TAG.sub(" ", _HEADER.sub(" ", _STACK.sub(" ", text)))
    text = text.replace("<", "‹").replace(">", "›")
    return _shorten(" ".join(_whole_characters(text, " ").split()), limit)


def _whole_characters(text: str, control: str = "") -> str:
    """The text without halves of characters; control and direction marks become `control`, if given."""
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not control:
        return text
    unseen = ("Cc", "Cf", "Co", "Cn", "Zl", "Zp")
    return "".join(
        character
        if unicodedata.category(character) not in unseen or character == "\u200d"
        else control
        for character in text
    )


def _shorten(text: str, limit: int) -> str:
    """At most `limit` characters, an ellipsis where it was cut, no mark torn from its character."""
    if len(text) <= limit:
        return text
    end = max(0, limit - 1)
    while end and (
        unicodedata.combining(text[end])
        or "\u200d" in text[end - 1 : end + 1]
        or text[end] == "\ufe0f"
    ):
        end -= 1
    return text[:end].rstrip() + "…"
