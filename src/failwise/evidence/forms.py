"""The forms of `texts.toml`: statuses, causes with a number, and places in a free text, compiled."""

import functools
import re
from collections.abc import Mapping
from typing import Final

from failwise.vocabulary import documents
from failwise.vocabulary.alternation import any_of
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

FILE: Final = "texts.toml"


@record
class Cause:
    """A form of `texts.toml` under which a cause with a number of its own is found."""

    name: str
    attribute: str
    pattern: re.Pattern[str]
    need: tuple[str, ...]


@record
class Form:
    """A pattern, and the literals of which one stands in every text that it is for (none: in any)."""

    need: tuple[str, ...]
    pattern: re.Pattern[str]

    def search(self, text: str, lowered: str) -> re.Match[str] | None:
        """Where it stands in the text, looked for only behind one of its literals."""
        return self.pattern.search(text) if needed(self.need, lowered) else None


@record
class Forms:
    """The forms of `texts.toml`, compiled."""

    status: tuple["Form", ...]
    causes: tuple[Cause, ...]
    wrappers: frozenset[str]
    places: Mapping[str, Form]
    causes_need: re.Pattern[str]
    headers_need: re.Pattern[str]
    """What one of the causes, and the place of headers, need: one of their literals, in lower case."""

    def status_in(self, text: str, lowered: str) -> re.Match[str] | None:
        """Where the first of the forms of a status stands."""
        for form in self.status:
            for literal in form.need:
                if literal in lowered:
                    break
            else:
                if form.need:
                    continue
            found = form.pattern.search(text)
            if found is not None:
                return found
        return None


def needed(literals: tuple[str, ...], lowered: str) -> bool:
    """Does one of the literals stand in a text, given in lower case? Yes too where there are none."""
    for literal in literals:
        if literal in lowered:
            return True
    return not literals


@functools.cache
def forms() -> Forms:
    """The forms, read once. Raises `ConfigurationError` naming the pattern that is wrong."""
    _, data = documents.read("failwise.evidence", FILE)
    try:
        return Forms(
            tuple(Form(tuple(row["need"]), _compiled(row["pattern"])) for row in data["status"]),
            tuple(
                Cause(row["name"], row["attribute"], _compiled(row["pattern"]), tuple(row["need"]))
                for row in data["causes"]
            ),
            frozenset(data["wrappers"]),
            {
                name: Form(tuple(data["needs"][name]), _compiled(pattern))
                for name, pattern in data["places"].items()
            },
            re.compile(any_of(literal for row in data["causes"] for literal in row["need"])),
            re.compile(any_of(data["needs"]["headers"])),
        )
    except KeyError as error:
        raise ConfigurationError(f"{error} is missing", file=FILE) from error


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise ConfigurationError(f"{pattern!r}: {error}", file=FILE) from error
