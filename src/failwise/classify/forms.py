"""Forms of texts, as data: how failures are announced, how logs say that all is well, how sentences explain.

A file of forms has *places*: the beginning of a text, one of its lines, anywhere. Of a place all forms are one
pattern, compiled when a text is first asked for it.
"""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from failwise.classify.folding import fold
from failwise.classify.tables import read_toml
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import record

Found: TypeAlias = re.Match[str] | None

_WORD: Final = re.compile(r"‹(\w{1,20})›")
_FLAGS: Final = {"ignore_case": re.IGNORECASE, "ascii": re.ASCII, "lines": re.MULTILINE}


@record
class Setting:
    """What is around each form of a place, how letters are compared there, and whether the texts are
    folded first (`folding.fold`), as then the forms are."""

    before: str
    after: str
    flags: re.RegexFlag
    folded: bool

    def compiled(self, patterns: list[str]) -> re.Pattern[str]:
        """Several forms of the place in one pattern."""
        either = "|".join(f"(?:{pattern})" for pattern in patterns)
        whole = f"{self.before}(?:{either}){self.after}"
        return re.compile(fold(whole) if self.folded else whole, self.flags)


@record
class Form:
    """One form: the place where it stands and what is around it there, words of which a text that has
    it holds one (none: it is looked for in any text), its pattern, what a failure of this form is about
    (a code, or nothing) and whether anything may have happened, a text that has the form and one that has not, and where its words come from."""

    id: str
    place: str
    setting: Setting
    need: frozenset[str]
    pattern: str
    code: str | None
    effect: Effect
    example: str
    counter: str
    origin: str


@functools.cache
def read(file: str) -> tuple[Mapping[str, Setting], tuple[Form, ...]]:
    """The places of a file, and all its forms. Raises `ConfigurationError`, naming the file and the form, for a wrong one."""
    _, data = read_toml(file)
    words = data.get("words", {})
    settings, forms = {}, []
    for place, row in data["places"].items():
        settings[place] = _setting(row, file, place)
        ids = set()
        if place not in data:
            raise ConfigurationError(f"no [[{place}]] for [places.{place}]", file=file)
        for entry in data[place]:
            told = {"origin": data.get("origin", ""), **entry}
            form = _form(told, place, settings[place], words, file)
            if form.id in ids:
                raise ConfigurationError(f"[[{place}]] {form.id!r} stands twice", file=file)
            ids.add(form.id)
            forms.append(form)
    if unused := set(data) - set(settings) - {"places", "words", "origin"}:
        raise ConfigurationError(f"[[{min(unused)}]] is no place of [places]", file=file)
    return settings, tuple(forms)


def _setting(row: Mapping[str, Any], file: str, place: str) -> Setting:
    if unknown := set(row) - {"before", "after", "folded", *_FLAGS}:
        raise ConfigurationError(f"[places.{place}]: unknown {min(unknown)!r}", file=file)
    flags = re.NOFLAG
    for name, flag in _FLAGS.items():
        if row.get(name):
            flags |= flag
    return Setting(row.get("before", ""), row.get("after", ""), flags, bool(row.get("folded")))


def _form(
    row: Mapping[str, Any], place: str, setting: Setting, words: Mapping[str, str], file: str
) -> Form:
    try:
        pattern = _WORD.sub(lambda found: words[found[1]], row["pattern"])
        need, code = frozenset(row.get("need", ())), row.get("code")
        if code is not None and lookup(code) is None:
            raise ValueError(f"{code!r} is not in the registry of codes")
        return Form(
            row["id"], place, setting, need, pattern, code, Effect(row.get("effect", "rejected")),
            row["example"], row["counter"], row["origin"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"[[{place}]] {row.get('id', '?')!r}: {error}", file=file
        ) from error


@functools.cache
def pattern_of(file: str, place: str) -> re.Pattern[str]:
    """All forms of a place in one pattern. Raises `ConfigurationError` where one is no pattern."""
    settings, forms = read(file)
    try:
        return settings[place].compiled([form.pattern for form in forms if form.place == place])
    except re.error as error:
        raise ConfigurationError(f"[[{place}]]: {error}", file=file) from error


class Place:
    """Asks a text for the forms of a place; nothing is read before the first."""

    __slots__ = ("_file", "_name", "match", "search")

    def __init__(self, file: str, name: str) -> None:
        self._file, self._name = file, name
        self.match: Callable[[str], Found] = self._first_match
        """The form that a text begins with."""
        self.search: Callable[[str], Found] = self._first_search
        """The first form anywhere in a text."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """All its forms in one pattern."""
        return pattern_of(self._file, self._name)

    def _first_match(self, text: str) -> Found:
        self.match = self.pattern.match
        return self.match(text)

    def _first_search(self, text: str) -> Found:
        self.search = self.pattern.search
        return self.search(text)
