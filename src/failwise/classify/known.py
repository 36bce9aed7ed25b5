"""What the provider profiles say of an answer: whether it succeeded, and the row of their table."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from failwise.classify.finding import Finding
from failwise.evidence.facts import Evidence
from failwise.profiles.document import Document
from failwise.vocabulary.kinds import Category

if TYPE_CHECKING:
    from failwise.profiles.library import Hit, Profiles
    from failwise.profiles.profile import Reading

_STRENGTH: Final = {"name": 96, "host": 95, "header": 86, "body": 84, "exception": 84, "text": 82}
_HINTED_NUMBER: Final = 66
_DRIVER: Final = 95
_OWN_DRIVERS: Final = frozenset({"database", "protocol"})
"""Kinds of profiles whose exceptions come from a driver that speaks to nobody else."""
_UNCONFIRMED_PENALTY: Final = 10
_STRANGE_STATUS_PENALTY: Final = 20
"""Another service may use the same word, and the status that stands in no row says it does."""
_NUMBER: Final = re.compile(r"-?\d{1,6}")
_AS: Final = {"security.blocked": "auth.human_check"}
"""`security` is about TLS here: a block by a firewall or a bot check is about who calls."""
_WEAK_SIGNS: Final = frozenset({"exception", "body", "text"})
"""Once a row is found, further profiles of the same look add nothing."""
SURE: Final = frozenset({"name", "host"})
"""Only these signs say who answered."""


class KnownProviders:
    """One answer, looked up in a library of profiles."""

    def __init__(self, library: "Profiles", evidence: Evidence, name: str | None) -> None:
        self._document = _document(evidence)
        self.hits: tuple[Hit, ...] = library.hits(self._document, name)

    def success(self) -> bool | None:
        """True or False by the success test of the provider who surely answered, else None."""
        for hit in self.hits:
            if hit.by in SURE:
                verdict = hit.profile.success(self._document)
                if verdict is not None:
                    return verdict
        return None

    def located(self, now: float) -> "Reading | None":
        """Code and message from where a profile of the user's own says they stand, with or without a
        row for them: the places that an API's own description names beat any guess."""
        for hit in self.hits:
            if hit.by in SURE and hit.profile.own:
                reading = hit.profile.read(self._document, now=now)
                if reading is not None and (reading.code or reading.message):
                    return reading
        return None

    def findings(self, now: float) -> Iterable[tuple[Finding, "Reading"]]:
        """The rows that profiles have for this answer, the surest profile first."""
        enough = False
        for hit in self.hits:
            if hit.profile.kind == "transport" or (enough and hit.by in _WEAK_SIGNS):
                continue
            reading = hit.profile.read(self._document, now=now, rows_only=True)
            if reading is None:
                continue
            entry = reading.entry
            if (
                entry is None
                or entry.code.startswith("http:")
                or entry.category is Category.UNKNOWN
            ):
                continue
            strength = _STRENGTH[hit.by]
            if hit.by == "exception" and hit.profile.kind in _OWN_DRIVERS:
                strength = _DRIVER
            elif hit.by not in SURE and _NUMBER.fullmatch(reading.code or ""):
                strength = _HINTED_NUMBER
            if not entry.confirmed:
                strength -= _UNCONFIRMED_PENALTY
            if hit.by in _WEAK_SIGNS and _strange(entry.http, self._document.status):
                strength -= _STRANGE_STATUS_PENALTY
            enough = enough or strength >= _STRENGTH["body"]
            yield (
                Finding(
                    f"profile.{hit.profile.id}.{entry.code}",
                    _AS.get(entry.as_code, entry.as_code),
                    entry.effect,
                    strength,
                    "profile",
                    entry.transient,
                    advice=entry.action,
                    meaning={"en": entry.en, "zh": entry.zh},
                    message=reading.message,
                    provider=hit.profile.id,
                    provider_code=reading.code,
                    request_id=reading.request_id,
                    parameter=reading.params[0] if reading.params else None,
                    confirmed=entry.confirmed,
                ),
                reading,
            )


def _strange(documented: int | None, status: int | None) -> bool:
    """Is the row for a refusal with another status than the one that came?"""
    return (
        documented is not None
        and status is not None
        and documented >= 400
        and status >= 400
        and documented != status
    )


def _class_names(evidence: Evidence) -> tuple[str, ...]:
    """The classes of the chain, and those they derive from: clients make classes on the spot."""
    if not evidence.exceptions:
        return ()
    names = [fact.name for fact in evidence.exceptions]
    names += [base for fact in evidence.exceptions[:4] for base in fact.bases[:4]]
    return tuple(dict.fromkeys(names))


def _document(evidence: Evidence) -> Document:
    exception = evidence.exception
    if exception is not None:
        wrapped = getattr(exception, "orig", None)  # SQLAlchemy's, around the driver's
        if isinstance(wrapped, BaseException):
            exception = wrapped
    return Document(
        status=evidence.status,
        headers=evidence.headers,
        body=evidence.body,
        text=evidence.text,
        host=evidence.host,
        content_type=evidence.content_type,
        exceptions=_class_names(evidence),
        exception=exception,
        exception_text=evidence.exceptions[-1].text if evidence.exceptions else "",
        phase=evidence.phase,
    )
