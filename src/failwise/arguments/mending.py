"""Schema-led repair: where the validator reports a place, the one value that it takes there.

A value is changed only at a place that was reported. Candidates come from the error's own words
(`readings`); each is tried against the whole document, and only one that is left alone counts.
"""

from collections.abc import Sequence
from typing import Any

from failwise.arguments.decode import Malformed, same
from failwise.arguments.readings import Readings, fold, nothing
from failwise.arguments.validators import Validator, pointer
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair

Path = tuple[str | int, ...]

_PLACES = 200
"""Places that are repaired in one document; one with more errors goes back to the model."""

_DEPTH = 6
_WORK = 1_000_000
"""Validations of one reading, times the values in its document: keeps hostile input bounded."""


class _Exhausted(Exception):
    """The work allowed for one document is used up."""


class Mended:
    """A document after repair: `value`, the `repairs` made, and the `errors` that are left."""

    __slots__ = ("errors", "repairs", "value")

    def __init__(self, value: Any, repairs: list[Repair], errors: list[Any]) -> None:
        self.value, self.repairs, self.errors = value, repairs, errors


class Mender:
    """Repairs documents against one schema. Not to be shared between calls: it counts its work."""

    def __init__(self, validator: Validator, readings: Readings) -> None:
        self._validator = validator
        self._readings = readings
        self._left = 0

    def mend(self, value: Any) -> Mended:
        """The document with every repair that has one reading; `errors` is empty when it fits."""
        self._left = max(20, min(2000, _WORK // _count(value)))
        try:
            return self._mend(value, self._validator.compiled, (), 0)
        except _Exhausted:
            return Mended(value, [], self._validator.errors(value))

    def _errors(self, value: Any, compiled: Any) -> list[Any]:
        self._left -= 1
        if self._left < 0:
            raise _Exhausted
        try:
            return list(compiled.iter_errors(value))
        except ValueError:
            raise Malformed("too_deep") from None  # deeper than the validator follows

    def _mend(self, value: Any, compiled: Any, base: Path, depth: int) -> Mended:
        """Places are taken one after the other; one that resists is left and reported."""
        repairs: list[Repair] = []
        resisting: set[Path] = set()
        while True:
            errors = self._errors(value, compiled)
            place = _next_place(errors, resisting)
            if place is None or len(errors) > _PLACES:
                return Mended(value, repairs, errors)
            here = [error for error in errors if tuple(error.instance_path) == place]
            fixed = self._place(value, place, here, compiled, base, depth)
            if fixed is None:
                resisting.add(place)
            else:
                value, made = fixed
                repairs += made

    def _place(
        self, value: Any, place: Path, errors: list[Any], compiled: Any, base: Path, depth: int
    ) -> tuple[Any, list[Repair]] | None:
        """The one change at a place after which the schema has no complaint there or below."""
        current = _get(value, place)
        where = (*base, *place)
        options: list[tuple[Any, list[Repair]]] = []
        if isinstance(current, dict):
            keys = self._keys(current, errors, where)
            if keys is not None:
                return _put(value, place, keys[0]), keys[1]
        for kind, reading in self._readings.of(current, errors):
            repair = Repair(kind, pointer(where), current, reading, Grade.UNIQUE)
            options.append((reading, [repair]))
        options += self._branches(current, errors, where, depth)
        accepted: list[tuple[Any, list[Repair]]] = []
        for reading, made in options:
            tried = self._try(value, place, reading, compiled, base, depth)
            if tried is not None and not any(same(tried[0], other[0]) for other in accepted):
                accepted.append((tried[0], made + tried[1]))
        if len(accepted) == 1:
            return accepted[0]
        if accepted or not place or not nothing(current):
            return None
        return self._absent(value, place, current, compiled, where)

    def _try(
        self, value: Any, place: Path, reading: Any, compiled: Any, base: Path, depth: int
    ) -> tuple[Any, list[Repair]] | None:
        """The document with a reading in place, and what had to be mended below it; or None."""
        if depth > _DEPTH:
            return None
        document = _put(value, place, reading)
        made: list[Repair] = []
        while True:
            inside = [
                error
                for error in self._errors(document, compiled)
                if tuple(error.instance_path[: len(place)]) == place
            ]
            if not inside:
                return document, made
            below = tuple(inside[0].instance_path)
            if below == place and not isinstance(reading, dict | list):
                return None
            here = [error for error in inside if tuple(error.instance_path) == below]
            fixed = self._place(document, below, here, compiled, base, depth + 1)
            if fixed is None:
                return None
            document, made = fixed[0], made + fixed[1]

    def _branches(
        self, current: Any, errors: list[Any], where: Path, depth: int
    ) -> list[tuple[Any, list[Repair]]]:
        """anyOf and oneOf: what each branch, taken alone, would make of the value."""
        found: list[tuple[Any, list[Repair]]] = []
        for error in errors:
            if error.kind.name not in ("anyOf", "oneOf") or depth >= _DEPTH:
                continue
            for number in range(len(getattr(error.kind, "context", None) or ())):
                part = self._validator.part((*error.schema_path, number))
                if part is None:
                    continue
                mended = self._mend(current, part, where, depth + 1)
                if not mended.errors and mended.repairs:
                    found.append((mended.value, mended.repairs))
        return found

    def _absent(
        self, value: Any, place: Path, current: Any, compiled: Any, where: Path
    ) -> tuple[Any, list[Repair]] | None:
        """ "Not given" under an optional key: the key goes."""
        parent, key = _get(value, place[:-1]), place[-1]
        if not isinstance(parent, dict):
            return None
        rest = {name: member for name, member in parent.items() if name != key}
        document = _put(value, place[:-1], rest)
        for error in self._errors(document, compiled):
            required = error.kind.name == "required" and error.kind.property == key
            if required and tuple(error.instance_path) == place[:-1]:
                return None
        return document, [Repair("absent", pointer(where), current, None, Grade.UNIQUE)]

    def _keys(
        self, current: dict[str, Any], errors: list[Any], where: Path
    ) -> tuple[dict[str, Any], list[Repair]] | None:
        """Keys that are spelt otherwise get their name; keys that the schema forbids go."""
        missing = [error.kind.property for error in errors if error.kind.name == "required"]
        refusals = [
            error
            for error in errors
            if error.kind.name in ("additionalProperties", "unevaluatedProperties")
        ]
        forbidden = [key for error in refusals for key in error.kind.unexpected]
        known = self._known(errors)
        strange = forbidden if refusals else [key for key in current if key not in known]
        wanted = missing + [key for key in known if key not in current] if refusals else missing
        names = _renames(strange, list(dict.fromkeys(wanted)), current)
        repairs: list[Repair] = []
        changed: dict[str, Any] = {}
        for key, member in current.items():
            name = names.get(key)
            if name is not None:
                path = pointer((*where, name))
                repairs.append(Repair("key_spelling", path, key, name, Grade.UNIQUE))
                changed[name] = member
            elif key in forbidden and not any(fold(key) == fold(other) for other in known):
                path = pointer((*where, key))
                repairs.append(Repair("unknown_key", path, member, None, Grade.UNIQUE))
            else:
                changed[key] = member
        if current and not changed:
            return None  # nothing of what was sent is ours: these are another tool's arguments
        for name in missing:
            if name not in changed and "default" in known.get(name, {}):
                changed[name] = known[name]["default"]
                path = pointer((*where, name))
                repairs.append(Repair("default", path, None, changed[name], Grade.UNIQUE))
        return (changed, repairs) if repairs else None

    def _known(self, errors: list[Any]) -> dict[str, dict[str, Any]]:
        """The properties that the schema names at the place of these errors, with their schemas."""
        known: dict[str, dict[str, Any]] = {}
        for error in errors:
            schema: Any = self._validator.schema
            for token in error.schema_path[:-1]:
                try:
                    schema = schema[token]
                except (KeyError, IndexError, TypeError):
                    schema = None
                    break
            if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
                for name, member in schema["properties"].items():
                    known[name] = member if isinstance(member, dict) else {}
        return known


def _renames(
    strange: Sequence[str], wanted: Sequence[str], current: dict[str, Any]
) -> dict[str, str]:
    """Strange key → the one wanted name it can mean, where no other strange key means it too."""
    names: dict[str, str] = {}
    for name in wanted:
        if name in current:
            continue
        alike = [key for key in strange if fold(key) == fold(name)]
        rivals = [other for other in wanted if fold(other) == fold(name)]
        if len(alike) == 1 and len(rivals) == 1:
            names[alike[0]] = name
    return names


def _next_place(errors: list[Any], resisting: set[Path]) -> Path | None:
    """The first reported place, nearest the root first: a change above may cure what is below."""
    places = {tuple(error.instance_path): None for error in errors}
    for place in sorted(places, key=len):
        if place not in resisting:
            return place
    return None


def _count(value: Any) -> int:
    """How many values a document holds, itself included."""
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    return 1


def _get(value: Any, path: Path) -> Any:
    for token in path:
        value = value[token]
    return value


def _put(value: Any, path: Path, new: Any) -> Any:
    """A copy along the path; what lies beside it is shared, and never changed."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _put(value[path[0]], path[1:], new)
    return copy
