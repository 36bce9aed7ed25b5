"""What a TLS failure is called, and what is said of it: the data of `tls.toml`."""

import datetime
import functools
import string
from collections.abc import Mapping
from typing import Any, Final

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

FILE: Final = "tls.toml"
_LANGUAGES: Final = ("en", "zh")
_NAMES_SAID: Final = 5
_FACT_LENGTH: Final = 200
_NOBODY: Final = {"en": "the server", "zh": "服务器"}


@record
class Words:
    """What is said of one diagnosis, per language; `remedy` is empty where the code's own fits.

    `code` is the code of a failure with it (None: what else is known decides), `retry` whether the
    same connection, unchanged, may succeed soon.
    """

    meaning: Mapping[str, str]
    remedy: Mapping[str, str]
    code: str | None
    retry: bool


@record
class Labels:
    """The data of `tls.toml`. `clock_floor` in epoch seconds."""

    codes: Mapping[int, str]
    reasons: tuple[tuple[tuple[str, ...], str], ...]
    intermediate_words: tuple[str, ...]
    intermediate_names: frozenset[str]
    interceptors: tuple[str, ...]
    clock_floor: float
    words: Mapping[str, Words]


@functools.cache
def labels() -> Labels:
    """The labels, read once. Raises `ConfigurationError` naming what is wrong."""
    _, data = documents.read("failwise.evidence", FILE)
    try:
        floor = datetime.datetime.fromisoformat(f"{data['clock']['floor']}T00:00:00Z")
        read = Labels(
            {int(code): name for code, name in data["codes"].items()},
            tuple((tuple(row["within"]), row["diagnosis"]) for row in data["reasons"]),
            tuple(data["intermediates"]["words"]),
            frozenset(data["intermediates"]["names"]),
            tuple(data["interceptors"]["words"]),
            floor.timestamp(),
            {name: _words(row) for name, row in data["diagnoses"].items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{error}", file=FILE) from error
    for name in (*read.codes.values(), *(name for _, name in read.reasons)):
        if name not in read.words:
            raise ConfigurationError(f"no [diagnoses.{name}]", file=FILE)
    return read


def _words(row: Mapping[str, Any]) -> Words:
    remedy = row.get("remedy", {})
    return Words(
        {lang: row[lang] for lang in _LANGUAGES},
        {lang: remedy[lang] for lang in _LANGUAGES} if remedy else {},
        row.get("code"),
        row.get("retry", False),
    )


def diagnosis_of(code: int | None, reason: str, next_bytes: bytes) -> str:
    """The label for OpenSSL's verify code, else for the handshake's reason."""
    if code:
        return labels().codes.get(code, "unverified")
    for within, diagnosis in labels().reasons:
        if any(word in reason for word in within):
            # OpenSSL has taken five bytes, "HTTP/"; the version follows.
            return (
                "plain_http"
                if diagnosis == "not_tls" and next_bytes[:2] in (b"1.", b"0.")
                else diagnosis
            )
    return "handshake"


def words_of(facts: Mapping[str, Any]) -> Words:
    """The words for the facts of a handshake (see `certificate_facts`)."""
    known, name = labels().words, str(facts.get("diagnosis"))
    if name == "wrong_host" and facts.get("by_address"):
        name = "by_address"
    return known.get(name) or known["handshake"]


def remedies(facts: Mapping[str, Any]) -> dict[str, str] | None:
    """The remedy per language with the facts filled in; None where the code's own says it better,
    or a fact that it names is not known."""
    templates = words_of(facts).remedy
    if not templates:
        return None
    said = {}
    for lang, template in templates.items():
        known = _sayable(facts, lang)
        wanted = {name for _, name, _, _ in string.Formatter().parse(template) if name}
        if not wanted <= known.keys():
            return None
        said[lang] = template.format(**known)
    return said


def _sayable(facts: Mapping[str, Any], lang: str) -> dict[str, str]:
    roots, clock = facts.get("roots") or {}, facts.get("clock") or {}
    separator = "、" if lang == "zh" else ", "
    values: dict[str, Any] = {
        "host": facts.get("host") or _NOBODY[lang],
        "issuer": facts.get("interceptor") or facts.get("issuer"),
        "names": separator.join((facts.get("names") or ())[:_NAMES_SAID]),
        "roots": separator.join(roots.get("looked_for") or ()),
        "now": clock.get("now"),
    }
    return {name: str(value)[:_FACT_LENGTH] for name, value in values.items() if value}
