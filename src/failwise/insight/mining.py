"""Templates that differ in values only become one: which words are values shows in how they vary.

Templates of one length are compared position by position. A position is a value where what stands
there looks like one (digits, dots, mixed case), or where at least `VARIETY` different words stand
there while all the others are the same. Words that say what happened (``refused``, ``closed``) are
no values, however many there are. Which templates are merged follows from the set of templates, not
from the order in which they came.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import xor
from typing import Final

from failwise.insight.masking import MARK, Masker, Template

VARIETY: Final = 4
"""As many different words make a position a value; two positions at once need two more."""
TEMPLATES_LIMIT: Final = 20_000
_ROUNDS: Final = 6
_PAIRS_BUDGET: Final = 300_000
"""Comparisons of two positions at once, for templates of one length."""

_LIKE_A_VALUE: Final = re.compile(r"[\d_.\\/@<*>-]|[a-z][A-Z]")
_STATUS: Final = re.compile(r"(?:.*=)?\W*-?\d{3,5}\W*")
_SAYS_WHAT_HAPPENED: Final = re.compile(
    r".{2,}(?:ed|ing|able|ible)|not|no|ok|up|down|on|off|lost|open|shut|begin|end|start|stop|fail"
    r"|failure|success|timeout|error|warning|true|false|yes",
    re.IGNORECASE,
)
_PUNCTUATION: Final = "()[]{}<>\"'`,.;:!?"


class Miner:
    """Gives each line the number of its template, as lines come; memory is bounded.

    `add` is quick and gives a *first* number. `groups` says, at any time, which first numbers are
    one cluster. Beyond `limit` templates the similar ones are merged, then the rarest forgotten into
    one rest (number 0), so that an endless stream of nonsense cannot fill the memory; `on_fold` is
    told of each number that went into another. What became of old numbers is remembered for
    `remembered` of them (None: for all).
    """

    def __init__(
        self,
        limit: int = TEMPLATES_LIMIT,
        *,
        on_fold: Callable[[int, int], None] | None = None,
        remembered: int | None = 100_000,
    ) -> None:
        self._masker = Masker()
        self._limit = max(limit, 16)
        self._on_fold = on_fold
        self._remembered = remembered
        self._numbers: dict[Template, int] = {}
        self._counts: dict[int, int] = {0: 0}
        self._folded: dict[int, int] = {}
        self._next = 1

    def add(self, text: str) -> int:
        """The first number of a line's template, 1 and up; the same template gives the same."""
        template = self._masker.mask(text)
        number = self._numbers.get(template)
        if number is None:
            if len(self._numbers) >= self._limit:
                self._shrink()
            number, self._next = self._next, self._next + 1
            self._numbers[template] = number
            self._counts[number] = 0
        self._counts[number] += 1
        return number

    def know(self, template: Template) -> int:
        """Note a template that was seen before, without counting it; gives its number."""
        number = self._numbers.get(template)
        if number is None:
            number, self._next = self._next, self._next + 1
            self._numbers[template] = number
            self._counts[number] = 0
        return number

    def __len__(self) -> int:
        return len(self._numbers)

    def home(self, number: int) -> int:
        """The number that an old number went into: itself where it is still there, 0 for the rest."""
        while number in self._folded:
            number = self._folded[number]
        return number if number in self._counts else 0

    def templates(self) -> dict[int, Template]:
        """The templates that are there now, by number."""
        return {number: template for template, number in self._numbers.items()}

    def groups(self) -> dict[Template, list[int]]:
        """The clusters now: template → the numbers in it, lowest first. The rest is not among them."""
        merged = merge({template: self._counts[n] for template, n in self._numbers.items()})
        found: dict[Template, list[int]] = defaultdict(list)
        for template, number in sorted(self._numbers.items(), key=lambda item: item[1]):
            found[merged[template]].append(number)
        return dict(found)

    def _shrink(self) -> None:
        """Make room: merge what is similar; where that is not enough, forget the rarer half."""
        kept: dict[Template, int] = {}
        for template, numbers in self.groups().items():
            kept[template] = numbers[0]
            for number in numbers[1:]:
                self._fold(number, numbers[0])
        if len(kept) > self._limit // 2:
            order = sorted(kept.items(), key=lambda item: (-self._counts[item[1]], item[0]))
            for _, number in order[self._limit // 2 :]:
                self._fold(number, 0)
            kept = dict(order[: self._limit // 2])
        self._numbers = kept
        if self._remembered is not None and len(self._folded) > self._remembered:
            for number in list(self._folded)[: len(self._folded) - self._remembered]:
                del self._folded[number]

    def _fold(self, number: int, into: int) -> None:
        self._counts[into] += self._counts.pop(number)
        self._folded[number] = into
        if self._on_fold is not None:
            self._on_fold(number, into)


def merge(templates: Mapping[Template, int]) -> dict[Template, Template]:
    """Each template → the template of its cluster. `templates` with how often each was seen.

    The same whatever the order of `templates`.
    """
    by_length: dict[int, list[Template]] = defaultdict(list)
    for template in templates:
        by_length[len(template)].append(template)
    found: dict[Template, Template] = {}
    for length, members in by_length.items():
        found.update(_merge_of_one_length(sorted(members), length))
    return found


def _merge_of_one_length(templates: list[Template], length: int) -> dict[Template, Template]:
    alike = _OfOneLength(templates)
    for _ in range(_ROUNDS):
        before = len(alike.members)
        for width in (1, 2):
            places = list(combinations(range(length), width))
            count = len(alike.members)
            if count < 2 or (width == 2 and count * len(places) > _PAIRS_BUDGET):
                break
            for holes in places:
                alike.merge_at(holes)
        if len(alike.members) == before:
            break
    return {template: whole for whole, parts in alike.members.items() for template in parts}


class _OfOneLength:
    """Templates of one length, and what was merged into each. A template without the words at some
    places is known by a number, so that comparing takes the same time however long it is."""

    __slots__ = ("_numbers", "members")

    def __init__(self, templates: Iterable[Template]) -> None:
        self.members: dict[Template, list[Template]] = {}
        self._numbers: dict[Template, tuple[int, tuple[int, ...]]] = {}
        for template in templates:
            self._put(template, [template])

    def _put(self, template: Template, parts: list[Template]) -> None:
        self.members.setdefault(template, []).extend(parts)
        if template not in self._numbers:
            each = tuple(map(hash, enumerate(template)))
            self._numbers[template] = reduce(xor, each, 0), each

    def merge_at(self, holes: Sequence[int]) -> None:
        """Merge what is the same everywhere but at `holes`, where those are values."""
        found: dict[int, list[Template]] = defaultdict(list)
        for template in self.members:
            number, each = self._numbers[template]
            for hole in holes:
                number ^= each[hole]
            found[number].append(template)
        for several in found.values():
            if len(several) > 1:
                self._merge(several, holes)

    def _merge(self, templates: list[Template], holes: Sequence[int]) -> None:
        whole = list(templates[0])
        for hole in holes:
            words = {template[hole] for template in templates}
            if len(words) == 1:
                continue
            if not _are_values(words, len(holes)):
                return
            whole[hole] = MARK
        rest = [word for place, word in enumerate(whole) if place not in holes]
        if _says_enough(rest):
            parts = [part for template in templates for part in self.members.pop(template)]
            self._put(tuple(whole), parts)


def _says_enough(rest: Collection[str]) -> bool:
    """Enough plain words remain to say that this is one message, not any message of that length."""
    plain = sum(1 for word in rest if word != MARK and any(map(str.isalpha, word)))
    return plain >= max(1, len(rest) // 5)


def _are_values(words: Collection[str], holes: int) -> bool:
    if any(_STATUS.fullmatch(word) for word in words):
        return False
    bare = [word.strip(_PUNCTUATION) for word in words]
    if 2 * sum(1 for word in bare if _LIKE_A_VALUE.search(word)) >= len(words):
        return True
    if 3 * sum(1 for word in bare if _SAYS_WHAT_HAPPENED.fullmatch(word)) >= len(words):
        return False
    return len(words) >= VARIETY + 2 * (holes - 1)
