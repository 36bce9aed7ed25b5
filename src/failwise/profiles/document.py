"""`Document`: the parts of one answer or exception that a profile's locators can look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from failwise.profiles.markup import Element, parse
from failwise.vocabulary.records import UNSET, Unset


@dataclass(slots=True)
class Document:
    """What locators can look at; nothing in it is changed.

    `headers` have lower-case names. `body` is the parsed JSON body (`UNSET`: none), `text` the text
    of the body or the free text. `exceptions` are qualified class names, the outermost first;
    `exception` is the live one, whose plain attributes are read where there is no body.
    `exception_text` is what it says; `found` are the values of locators already asked for. `phase` of a transport failure: ``dns``, ``connect``,
    ``tls``, ``write``, ``read``, ...
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any | Unset = UNSET
    text: str | None = None
    host: str | None = None
    content_type: str | None = None
    exceptions: tuple[str, ...] = ()
    exception: BaseException | None = None
    exception_text: str = ""
    phase: str | None = None
    found: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    _xml: Element | Unset | None = UNSET

    @property
    def xml(self) -> Element | None:
        """The root element of an XML body, read once and within bounds; None where it is none."""
        if isinstance(self._xml, Unset):
            self._xml = parse(self.text) if self.text else None
        return self._xml

    @property
    def words(self) -> str:
        """The text that expressions are tried on, bounded to 10,000 characters."""
        return (self.text or self.exception_text)[:10_000]
