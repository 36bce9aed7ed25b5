"""A failure as rows for a person."""

from collections.abc import Iterator, Mapping

from failwise.cli.terminal import named, say
from failwise.vocabulary import words
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.result import Language
from failwise.vocabulary.violation import violation_text

_PARTS = ("context", "wrapper", "message", "remnant")


def rows(failure: Failure, lang: Language) -> Iterator[tuple[str, object]]:
    """What was found, name and value: kind, effect, what to do, the parts of the text, the rule."""
    from failwise.classify.contract import curer, retry_verdict
    from failwise.classify.tables import likely_causes

    yield say(lang, "category"), failure.category.value
    yield say(lang, "code"), failure.code
    yield say(lang, "meaning"), words.meaning(failure, lang)
    provider = [failure.provider, failure.provider_code]
    yield say(lang, "provider"), " · ".join(filter(None, provider))
    yield say(lang, "status"), failure.http_status
    yield say(lang, "effect"), named(lang, "effect", failure.effect.value)
    yield say(lang, "retry"), named(lang, "retry", retry_verdict(failure))
    if failure.retry_after is not None:
        yield say(lang, "told_wait"), f"{failure.retry_after:g} s"
    yield say(lang, "fix_by"), named(lang, "fix_by", curer(failure).value)
    yield say(lang, "remedy"), words.remedy(failure, lang)
    causes = failure.likely_causes if lang == "en" else likely_causes(failure.code, lang)
    yield say(lang, "causes"), ("; " if lang == "en" else "；").join(causes)
    parts = failure.detail("parts")
    parts = parts if isinstance(parts, Mapping) else {"message": failure.message}
    for part in _PARTS:
        yield say(lang, part), parts.get(part)
    if failure.evidence is not None:
        yield say(lang, "page"), failure.evidence.title
    yield say(lang, "request_id"), failure.request_id
    yield from _violations(failure, lang)
    yield say(lang, "rule"), _rule(failure, lang)


def _violations(failure: Failure, lang: Language) -> Iterator[tuple[str, object]]:
    violations = failure.detail("violations")
    for row in violations if isinstance(violations, list | tuple) else ():
        if isinstance(row, Mapping):
            said = violation_text(row, lang)
            yield say(lang, "wrong_at"), f"{row.get('parameter') or '/'}: {said}"


def _rule(failure: Failure, lang: Language) -> str:
    if not failure.samples:
        return failure.rule
    return f"{failure.rule} ({confidence(failure, lang)})"


def confidence(failure: Failure, lang: Language) -> str:
    """How sure the verdict is, and on how many cases that rests."""
    if failure.category is Category.UNKNOWN:
        return say(lang, "nothing_claimed")
    if not failure.samples:
        return say(lang, "unmeasured")
    share = f"{failure.confidence * 100:.0f}"
    return say(lang, "confidence_value", share=share, samples=failure.samples)
