"""What a call's record must not repeat: the secrets that stood in its arguments."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair

_LEAVES = 200
"""Values of the arguments that are looked at."""
_SHORTEST, _LONGEST = 4, 4096
_EXCERPT = 60
_TORN = re.compile(r"\A[!-~]{1,200}|[!-~]{1,200}\Z")


def discreet(name: str, value: Any) -> Any:
    """A value of what a model sent, under its name, as it may be shown."""
    from failwise.redaction import default

    return default().named(name, value)


def discreet_repairs(repairs: tuple[Repair, ...]) -> tuple[Repair, ...]:
    """Repairs as they may be shown. The excerpts of syntax repairs may begin or end amid a secret."""
    from failwise.arguments.failures import redacted

    shown = repairs if _innocent(repairs) else [redacted(repair, discreet) for repair in repairs]
    return tuple(
        replace(repair, before=_whole(repair.before), after=_whole(repair.after))
        if repair.grade is Grade.LOSSLESS
        else repair
        for repair in shown
    )


def _innocent(repairs: tuple[Repair, ...]) -> bool:
    """Nothing to hide in any of them: seen at one look, as most are."""
    from failwise.redaction import default
    from failwise.redaction.names import NameClass, classify_name

    values = [value for repair in repairs for value in (repair.before, repair.after)]
    if not all(value is None or isinstance(value, str | bool | int) for value in values):
        return False
    names = {name for repair in repairs for name in repair.path.split("/")}
    if any(classify_name(name) is not NameClass.NONE for name in names):
        return False
    text = "\n".join(str(value) for value in values)
    return "{" not in text and "[" not in text and default().text(text) == text


def _whole(excerpt: Any) -> Any:
    """An excerpt without the words that were cut at its ends."""
    if not isinstance(excerpt, str) or len(excerpt) < _EXCERPT:
        return excerpt
    return _TORN.sub("…", excerpt)


def without_echoes(failure: Failure, arguments: Mapping[str, Any]) -> Failure:
    """A failure whose texts do not repeat the secrets that were sent, as upstreams like to do."""
    secrets = dict(_secrets(arguments, [_LEAVES]))
    if not secrets:
        return failure
    evidence = failure.evidence
    if evidence is not None:
        evidence = replace(
            evidence,
            message=_silent(evidence.message, secrets),
            snippet=_silent(evidence.snippet, secrets),
            title=_silent(evidence.title, secrets),
        )
    return replace(
        failure,
        message=_silent(failure.message, secrets),
        details=_silent(failure.details, secrets),
        evidence=evidence,
    )


def _secrets(value: Any, left: list[int], name: str = "") -> Iterator[tuple[str, str]]:
    """Each text that its name marks as a secret, and what to show in its place."""
    left[0] -= 1
    if left[0] < 0:
        return
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _secrets(member, left, key)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, left, name)
    elif isinstance(value, str) and _SHORTEST <= len(value) <= _LONGEST:
        shown = discreet(name, value)
        if shown != value and shown.startswith("[") and shown.endswith("]"):
            yield value, shown


def _silent(value: Any, secrets: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for secret, shown in secrets.items():
            value = value.replace(secret, shown)
            for length in range(min(len(secret), len(value)) - 1, _SHORTEST - 1, -1):
                if value.endswith((secret[:length], f"{secret[:length]}…")):
                    value = value[: value.rindex(secret[:length])] + "…"
                    break
        return value
    if isinstance(value, Mapping):
        return {key: _silent(member, secrets) for key, member in value.items()}
    if isinstance(value, list):
        return [_silent(item, secrets) for item in value]
    return value
