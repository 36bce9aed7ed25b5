"""`Profile`: one provider's table, and how an answer is read by it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate
from functools import cached_property
from typing import Any, Literal, TypeAlias

from failwise.profiles import locators, waits
from failwise.profiles.document import Document
from failwise.profiles.values import VALUES, as_text, passes, path_text, spellings
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.kinds import Action, Category, Effect
from failwise.vocabulary.records import record

Kind: TypeAlias = Literal["api", "edge", "framework", "protocol", "database", "transport"]

_REMEMBERED = 256
_REMEMBERED_LENGTH = 100
"""Codes of which the rows are remembered, of at most so many characters."""


@record
class CodeEntry:
    """What one code of a provider means and calls for.

    `code` as the provider spells it (``*`` stands for any run of characters), `as_code` the code
    of ours, of whose `category` it is. `transient`: the same request may succeed within minutes.
    `action` is advice, `effect` what became of the side effect. `confirmed` False: a hint only, by
    which alone nothing that changes something is repeated.
    """

    code: str
    as_code: str
    category: Category
    transient: bool
    action: Action
    effect: Effect
    en: str
    zh: str
    name: str | None = None
    http: int | None = None
    field: str | None = None
    phase: str | None = None
    confirmed: bool = True


@record
class Reading:
    """What one profile reads in one answer.

    `code` is the provider's own, `entry` the chosen row of its table (None: not in the table).
    `params` are names or paths of the arguments at fault, `details` what else the profile points
    at, by locator. `waits` are (seconds, locator) pairs in the order of trust, never negative.
    """

    profile: str
    code: str | None = None
    entry: CodeEntry | None = None
    message: str | None = None
    request_id: str | None = None
    params: tuple[str, ...] = ()
    details: Mapping[str, Any] | None = None
    waits: tuple[tuple[float, str], ...] = ()
    link: str | None = None


@record
class Idempotency:
    """How a repeated request is recognised as one: ``header`` or ``field`` (its `name`),
    ``natural`` (a key of the domain), ``none`` or ``unknown``. `window` such as ``24h``."""

    support: Literal["header", "field", "natural", "none", "unknown"]
    name: str | None = None
    window: str | None = None
    note: str | None = None


class Profile:
    """One provider, protocol, framework, database or client library.

    `error_in`: where its failures stand: ``http_status``, ``body`` (of a 2xx), ``both``,
    ``exception`` or ``reply``. `own`: it is a user's, not one of the package.
    """

    def __init__(self, data: Mapping[str, Any], *, own: bool = False) -> None:
        self.id: str = data["id"]
        self.name: str = data["name"]
        self.kind: Kind = data["kind"]
        self.error_in: str = data["error_in"]
        self.own = own
        self._data = data
        self._entries: dict[int, CodeEntry] = {}
        self._rows_of: dict[str, Sequence[Sequence[Any]]] = {}

    def __repr__(self) -> str:
        return f"Profile({self.id!r})"

    @property
    def idempotency(self) -> Idempotency:
        """How this provider recognises a repeated request."""
        return Idempotency(**self._data["idempotency"])

    @property
    def deadline_header(self) -> str | None:
        """The request header that tells this provider how long the caller will wait, with its unit:
        ``grpc-timeout grpc``, ``X-Server-Timeout seconds``. None where it knows none."""
        place = self._data.get("deadline")
        return " ".join(place) if place else None

    @property
    def entries(self) -> tuple[CodeEntry, ...]:
        """The whole table."""
        groups = [*self._data["exact"].values(), *(rows for _, rows in self._data["globs"])]
        groups += self._data["status"].values()
        return tuple(self._entry(row) for rows in groups for row in rows)

    def success(self, document: Document) -> bool | None:
        """Whether a 2xx answer is a success by this profile's tests; None where none applies."""
        if document.status is not None and not 200 <= document.status < 300:
            return None
        verdict: bool | None = None
        for locator, test, expected in self._tests:
            if locator.applies(document):
                if not passes(locator.find(document), test, expected):
                    return False
                verdict = True
        return verdict

    def read(
        self, document: Document, *, now: float = 0.0, rows_only: bool = False
    ) -> Reading | None:
        """What this profile reads in a failure; None where it finds neither code nor message, and
        with `rows_only` where the table has no row for it.

        `now` is the wall-clock time of the answer, in epoch seconds, from which moments such as a
        reset are counted. Never raises, whatever the document holds.
        """
        code, entry = self._choose(document)
        if entry is None and rows_only:
            return None
        message = self._first("message", document)
        if entry is None and code is None and message is None:
            return None
        details = {}
        for locator in self._fields.get("details", ()):
            values = locator.find(document)
            if values:
                details[locator.text] = values if len(values) > 1 else values[0]
        return Reading(
            profile=self.id,
            code=code,
            entry=entry,
            message=message,
            request_id=self._first("request_id", document),
            params=tuple(self._params(document)),
            details=details or None,
            waits=tuple(self._waits(document, entry, now)),
            link=self._first("link", document),
        )

    @cached_property
    def _fields(self) -> Mapping[str, Sequence[locators.Locator]]:
        return {
            name: [locators.compile(text) for text in texts]
            for name, texts in self._data["fields"].items()
        }

    @cached_property
    def _tests(self) -> Sequence[tuple[locators.Locator, str, list[Any]]]:
        return [
            (locators.compile(at), test, expected[0] if expected else [])
            for at, test, *expected in self._data["success"]
        ]

    def _first(self, name: str, document: Document) -> str | None:
        for locator in self._fields.get(name, ()):
            for value in locator.find(document):
                text = as_text(value)
                if text:
                    return text
        return None

    def _params(self, document: Document) -> Iterator[str]:
        for locator in self._fields.get("param", ()):
            found = [text for value in locator.find(document) if (text := path_text(value))]
            if found:
                yield from found[:VALUES]
                return

    def _choose(self, document: Document) -> tuple[str | None, CodeEntry | None]:
        """The code and its entry: places in order, the first that has an entry wins."""
        seen: str | None = None
        for locator, general in self._code_places:
            values = locator.find(document)
            for value in values if len(values) <= VALUES else values[:VALUES]:
                for text in spellings(value, locator.text):
                    if seen is None and general:
                        seen = text
                    rows = self._rows(text)
                    row = self._best(rows, locator.text, general, document) if rows else None
                    if row is not None:
                        return text, self._entry(row)
        rows = self._data["status"].get(str(document.status), ())
        row = self._best(rows, None, True, document) if rows else None
        return seen, self._entry(row) if row is not None else None

    @cached_property
    def _code_places(self) -> Sequence[tuple[locators.Locator, bool]]:
        """Where codes stand, and whether any row may stand there or only those that name the place."""
        fields = self._fields["code"]
        places = [locators.compile(text) for text in self._data["places"]]
        return [(locator, locator in fields) for locator in (*fields, *places)]

    @cached_property
    def _globs(self) -> Sequence[tuple[re.Pattern[str], Sequence[Sequence[Any]]]]:
        return [(re.compile(translate(glob)), rows) for glob, rows in self._data["globs"]]

    def _rows(self, text: str) -> Sequence[Sequence[Any]]:
        rows = self._rows_of.get(text)
        if rows is None:
            exact = self._data["exact"]
            found = [*exact.get(text, ())]
            for pattern, more in self._globs:
                if pattern.match(text):
                    found += more
            rows = (*found, *exact.get("*", ()))
            if len(text) <= _REMEMBERED_LENGTH:
                if len(self._rows_of) >= _REMEMBERED:
                    self._rows_of.clear()
                self._rows_of[text] = rows
        return rows

    def _best(
        self,
        rows: Sequence[Sequence[Any]],
        place: str | None,
        general: bool,
        document: Document,
    ) -> Sequence[Any] | None:
        best: Sequence[Any] | None = None
        best_rank: tuple[Any, ...] = ()
        for row in rows:
            code, _, http, field, match, phase, *_rest = row
            if field is not None and place is not None and field != place:
                continue
            if field is None and not general:
                continue
            if match is not None and not re.search(match, self._words(document)):
                continue
            rank = (
                http is None or document.status is None or http == document.status,
                "*" not in code,
                len(code) if "*" in code else 0,
                match is not None,
                http is not None and http == document.status,
                field is not None,
                2 if phase is not None and phase == document.phase else phase in (None, "any"),
            )
            if best is None or rank > best_rank:
                best, best_rank = row, rank
        return best

    def _words(self, document: Document) -> str:
        """The text that rows may want to match: the message, else all there is."""
        message = self._first("message", document)
        return (message if message is not None else document.words)[:10_000]

    def _entry(self, row: Sequence[Any]) -> CodeEntry:
        entry = self._entries.get(id(row))
        if entry is None:
            code, as_code, http, field, _, phase, transient, action, effect, en, zh, name, sure = (
                row
            )
            entry = CodeEntry(
                code=code,
                as_code=as_code,
                category=category_of(as_code),
                transient=transient,
                action=Action(action),
                effect=Effect(effect),
                en=en,
                zh=zh,
                name=name,
                http=http,
                field=field,
                phase=phase,
                confirmed=sure,
            )
            self._entries[id(row)] = entry
        return entry

    def _waits(
        self, document: Document, entry: CodeEntry | None, now: float
    ) -> Iterator[tuple[float, str]]:
        """Waits by the profile's own places. `Retry-After` itself belongs to HTTP, and is left out.

        A reset header stands on every answer of some providers: it is a wait only when the counter
        beside it is empty, or when this is a rate limit and there is no counter.
        """
        for locator, unit, reset in self._wait_places:
            if reset is None or (
                entry is not None
                and entry.category is Category.RATE_LIMIT
                and _remaining(document, reset) is None
            ):
                yield from _told(locator, unit, document, now)
        for name, unit in self._data["resets"]:
            if name in document.headers and _remaining(document, name) == 0:
                yield from _told(locators.compile(f"header:{name}"), unit, document, now)

    @cached_property
    def _wait_places(self) -> Sequence[tuple[locators.Locator, str, str | None]]:
        """Where waits stand: place, unit, and the header's name where it is the reset of a counter."""
        done: set[str] = {"header:retry-after"}
        places: list[tuple[locators.Locator, str, str | None]] = []
        for text, unit in self._data["waits"]:
            if text not in done:
                done.add(text)
                places.append((locators.compile(text), unit, None))
        resets = dict(self._data["resets"])
        for locator in self._fields.get("retry", ()):
            if locator.text not in done:
                done.add(locator.text)
                name = locator.text.removeprefix("header:")
                reset = name if name in resets else None
                places.append((locator, resets.get(name, "text"), reset))
        return places


def _told(
    locator: locators.Locator, unit: str, document: Document, now: float
) -> Iterator[tuple[float, str]]:
    for value in locator.find(document)[:3]:
        wait = waits.seconds(value, unit, now)
        if wait is not None:
            yield wait, locator.text


def _remaining(document: Document, reset: str) -> float | None:
    """The counter that stands beside a reset header: ``x-limit-remaining`` for ``x-limit-reset``."""
    if "reset" not in reset:
        return None
    name = reset.replace("reset", "remaining", 1).removesuffix("-after")
    try:
        return float(document.headers.get(name, ""))
    except ValueError:
        return None
