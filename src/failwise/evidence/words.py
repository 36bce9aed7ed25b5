"""What the messages of exceptions tell beside their classes: ``RuntimeError("Error code: 429 - {...}")``."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from failwise.evidence.facts import Evidence, ExceptionFact, Phase
from failwise.evidence.texts import address_in, from_text, tells_of_answer
from failwise.vocabulary.records import UNSET, Unset

_OF_WORDS: Final = ("status", "body", "headers", "title", "waits", "exceptions", "phase")
_WITH_ADDRESS: Final = (*_OF_WORDS, "host", "url")
_PARSER: Final = "aiohttp.http_exceptions."
"""aiohttp's parser calls its own complaints by HTTP statuses; no server said them."""
_NOT_OF_STRUCTURE: Final = (None, "bug", "status", "database")
# What a text may add to a known class: a body, a page, a number, an address, parts.
_MORE_TO_TELL: Final = re.compile(r"[{<\d]|: |：|://|=")
_MESSAGES: Final = 4
"""Messages that are looked at."""


class Words:
    """The messages of exceptions, taken apart when somebody asks.

    `names` are the fields of the evidence that they fill; `address`: host and URL too, which nobody
    else knows (`addressed`: so they do). `structural`: a class is known, and the words only add to what it
    tells. `may_tell`: there is something to ask.
    """

    __slots__ = ("_facts", "_now", "_read", "addressed", "may_tell", "names", "structural")

    def __init__(self, facts: list[ExceptionFact], now: float | None, *, address: bool) -> None:
        self._now = now
        structural = any(fact.kind not in _NOT_OF_STRUCTURE for fact in facts)
        self._facts = [
            fact
            for fact in facts[:_MESSAGES]
            if fact.text and not (structural and not _MORE_TO_TELL.search(fact.text))
        ]
        self.structural = structural
        self.addressed = address and not structural
        self.names = _WITH_ADDRESS if self.addressed else _OF_WORDS
        self.may_tell = bool(self._facts)
        self._read: list[Evidence | str] = []

    def fields(
        self,
        headers: Mapping[str, str],
        title: str | None,
        exceptions: tuple[ExceptionFact, ...],
        phase: Phase | None,
    ) -> dict[str, Any]:
        """The fields of `names`, of which these four are known from the exceptions themselves."""
        found: dict[str, Any] = dict.fromkeys(self.names)
        found |= {"headers": headers, "title": title, "exceptions": exceptions, "phase": phase}
        found |= {"body": UNSET, "waits": ()}
        unparsed = any(fact.name.startswith(_PARSER) for fact in exceptions)
        read: list[Evidence | str] = []
        plain = ""
        for fact in self._facts:
            # Wrappers print what they wrap: what was looked at in one is not looked at again.
            if self.structural and (fact.text in plain or not tells_of_answer(fact.text)):
                plain += f"\n{fact.text}"
                read.append(fact.text)
                continue
            told = from_text(fact.text, now=self._now, classes=not self.structural)
            read.append(told)
            found["status"] = found["status"] or (None if unparsed else told.status)
            if isinstance(found["body"], Unset):
                found["body"] = told.body
            found["headers"] = found["headers"] or told.headers
            found["title"] = found["title"] or told.title
            found["waits"] = found["waits"] or told.waits
            if self.addressed:
                found["host"] = found["host"] or told.host
                found["url"] = found["url"] or told.url
            if not self.structural and told.exceptions:
                found["exceptions"] = (*exceptions, *told.exceptions)
                found["phase"] = phase or told.phase
                break
        self._read = read
        return found

    def addresses(self) -> Iterator[tuple[str | None, str | None]]:
        """Host and URL that each message names."""
        for one in self._told():
            yield address_in(one) if isinstance(one, str) else (one.host, one.url)

    def parts(self) -> dict[str, Any]:
        """The pieces of the first message that has any: the field `Evidence.parts`."""
        for place, one in enumerate(self._told()):
            if isinstance(one, str):
                one = self._read[place] = from_text(one, now=self._now, classes=False)  # noqa: PLW2901
            if one.parts:
                return {"parts": one.parts}
        return {"parts": {}}

    def _told(self) -> list[Evidence | str]:
        if not self._read:
            self.fields({}, None, (), None)
        return self._read
