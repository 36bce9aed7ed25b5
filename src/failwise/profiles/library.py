"""`Profiles`: the profiles of the package and the user's own, found by what an answer looks like."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from failwise.profiles import build
from failwise.profiles.document import Document
from failwise.profiles.profile import Profile
from failwise.profiles.recognition import By, Recognition, Signs
from failwise.vocabulary.codes import registry
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.linear import explosive
from failwise.vocabulary.records import record

# importlib.resources would do, and costs more to import than all the rest of this room
_ROOM = Path(__file__).parent
_REMEMBERED = 1_024
"""Combinations of signs of which it is remembered which profiles they mean: answers look alike."""


@record
class Hit:
    """A profile that fits, and by what. Only a ``name`` or a ``host`` says who answered; the other
    signs are hints, so `Profile.success` is worth asking for those two alone."""

    profile: Profile
    by: By


class Profiles:
    """A library of profiles. Its own are loaded at their first hit; the user's come before them."""

    def __init__(self) -> None:
        self._own: dict[str, Profile] = {}
        self._own_sources: dict[str, Mapping[str, Any]] = {}
        self._own_recognition: Recognition | None = None
        self._arranged: dict[tuple[str | None, Signs, Signs], tuple[Hit, ...]] = {}
        self._shared = False
        self.edition = 0
        """Another number as soon as profiles were added: what fitted before may not fit again."""

    @staticmethod
    @functools.cache
    def default() -> "Profiles":
        """The package's profiles, one library for everyone; nothing can be added to it."""
        library = Profiles()
        library._shared = True
        return library

    def names(self) -> tuple[str, ...]:
        """The ids of all profiles, sorted."""
        return tuple(sorted({*_shipped_index()["ids"], *self._own}))

    def get(self, name: str) -> Profile | None:
        """The profile of this id, the user's own before ours; None where there is none."""
        own = self._own.get(name)
        if own is not None:
            return own
        return _shipped(name) if name in _shipped_ids() else None

    def find(self, document: Document, name: str | None = None) -> tuple[Profile, ...]:
        """The profiles that an answer may belong to, the surest first; see `hits`."""
        return tuple(hit.profile for hit in self.hits(document, name))

    def hits(self, document: Document, name: str | None = None) -> tuple[Hit, ...]:
        """The profiles that fit, each once, with the sign it was found by.

        The named one, the user's own, then by host (exact, then suffix), header, exception, body
        and text; edges, frameworks and protocols after all of these. Where the name or the host says
        which API answered, bodies that another API would send are no sign; a text is one only where the
        profile knows the code in it. ``http_status`` is never among them: `get` it.
        Raises `UsageError` for a name that does not exist.
        """
        if name is not None and self.get(name) is None:
            raise UsageError(f"profile={name!r} does not exist; {_nearest(name, self.names())}")
        recognition = _recognition()
        signs = (
            name,
            () if self._own_recognition is None else self._fitting(self._own_recognition, document),
            self._fitting(recognition, document),
        )
        found = self._arranged.get(signs)
        if found is None:
            found = self._arrange(*signs, recognition.last)
            if len(self._arranged) >= _REMEMBERED:
                self._arranged.clear()
            self._arranged[signs] = found
        return found

    def _arrange(
        self, name: str | None, own: Signs, shipped: Signs, last: frozenset[str]
    ) -> tuple[Hit, ...]:
        """The profiles of these signs in the order of `hits`."""
        found: dict[str, Hit] = {}
        known = False
        named = self.get(name) if name is not None else None
        if named is not None:
            found[named.id] = Hit(named, "name")
            known = named.kind == "api"
        for one, by in own:
            profile = self.get(one)
            if profile is not None and one not in found:
                found[one] = Hit(profile, by)
        behind: dict[str, Hit] = {}
        seen: set[str] = set()
        for one, by in shipped:
            profile = None if one in seen else self.get(one)
            seen.add(one)
            if profile is None or (by in ("body", "text") and profile.kind == "api" and known):
                continue
            known = known or by == "host"
            if not profile.own and one not in found:
                late = profile.kind == "edge" or one in last
                (behind if late else found).setdefault(one, Hit(profile, by))
        return (*found.values(), *behind.values())

    def asks_for(self, field: str) -> bool:
        """Is a body with this field at its root possibly one that some profile knows?"""
        own = self._own_recognition
        return _recognition().asks_for(field) or (own is not None and own.asks_for(field))

    def _fitting(self, recognition: Recognition, document: Document) -> Signs:
        """The signs that fit; a text is one only where the profile has a row for it."""
        signs = recognition.hits(document)
        if not signs or signs[-1][1] != "text":  # texts come last
            return signs
        seen: set[str] = set()
        fitting = []
        for name, by in signs:
            if by == "text" and name not in seen:
                profile = self.get(name)
                if profile is None or profile.read(document, rows_only=True) is None:
                    seen.add(name)
                    continue
            if name not in seen:
                seen.add(name)
                fitting.append((name, by))
        return tuple(fitting)

    def add(self, source: "str | Path | Mapping[str, Any]") -> tuple[str, ...]:
        """Add the user's profiles: a YAML file, a folder of them, or one as a mapping.

        A profile of an id that exists takes its place. Gives the ids added. Raises
        `ConfigurationError` naming file and line, and then nothing is added.
        """
        if self._shared:
            raise UsageError("Profiles.default() is shared: add to a Profiles() of your own")
        added: dict[str, Mapping[str, Any]] = {}
        if isinstance(source, Mapping):
            faults = list(_faults(source, {}))
            if faults:
                line, reason = faults[0]
                raise ConfigurationError(reason, file=f"profile {source.get('id', '')}".strip())
            added[source["id"]] = source
        else:
            for path in _files(Path(source)):
                data, faults = _read(path)
                if faults:
                    line, reason = faults[0]
                    raise ConfigurationError(reason, file=str(path), line=line)
                added[data["id"]] = data
        for name, data in added.items():
            self._own_sources[name] = data
            self._own[name] = Profile(build.compiled(data), own=True)
        self._own_recognition = Recognition(build.index(self._own_sources))
        self._arranged.clear()
        self.edition += 1
        return tuple(added)


def check(path: "str | Path") -> list[str]:
    """What is wrong with a profile file, or a folder of them: ``file:line: reason``, best in order.

    An empty list means that `Profiles.add` will take them.
    """
    problems: list[str] = []
    try:
        files = _files(Path(path))
    except ConfigurationError as error:
        return [str(error)]
    for file in files:
        _, faults = _read(file)
        problems += [f"{file}:{line}: {reason}" for line, reason in faults]
    return problems


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml"))
    if not path.is_file():
        raise ConfigurationError("no such file or folder", file=str(path))
    return [path]


def _read(path: Path) -> tuple[Any, list[tuple[int, str]]]:
    try:
        data, lines = build.load(path.read_text("utf-8"))
    except build.SourceError as error:
        return None, [(error.line or 1, error.reason)]
    except (OSError, UnicodeDecodeError) as error:
        return None, [(1, f"cannot be read: {error}")]
    return data, sorted(_faults(data, lines))


def _faults(data: Any, lines: build.Lines) -> Iterator[tuple[int, str]]:
    """Each fault with its line: by the schema; if that is content, by what it cannot say; and if there
    is none, by how long its expressions take on hostile texts."""
    content = True
    for error in _validator().iter_errors(data):
        content = False
        path = tuple(error.instance_path)
        where = ".".join(str(part) for part in path)
        yield _line(path, lines), f"{where}: {error.message}" if where else error.message
    if content:
        for path, reason in build.faults(data, registry()):
            content = False
            yield _line(path, lines), reason
    for path, text in build.expressions(data) if content else ():
        slow = explosive(re.compile(text))
        if slow is not None:
            yield _line(path, lines), f"{text!r}: {slow}"


def _line(path: tuple[str | int, ...], lines: build.Lines) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


@functools.cache
def _validator() -> Any:
    import jsonschema_rs

    schema = (_ROOM / "schema.json").read_text("utf-8")
    return jsonschema_rs.validator_for(json.loads(schema))


@functools.cache
def _shipped_index() -> Mapping[str, Any]:
    index = _compiled(build.INDEX)
    return index if index is not None else _built()[build.INDEX]


@functools.cache
def _shipped_ids() -> frozenset[str]:
    return frozenset(_shipped_index()["ids"])


@functools.cache
def _recognition() -> Recognition:
    return Recognition(_shipped_index())


@functools.cache
def _shipped(name: str) -> Profile:
    data = _compiled(f"{name}.json")
    return Profile(data if data is not None else _built()[f"{name}.json"])


def _compiled(name: str) -> Mapping[str, Any] | None:
    """A file of the build step; None in a checkout that was never built, or from another version."""
    try:
        text = (_ROOM / "compiled" / name).read_text("utf-8")
    except OSError:
        return None
    data: Mapping[str, Any] = json.loads(text)
    return data if data.get("version") == build.VERSION else None


@functools.cache
def _built() -> Mapping[str, Any]:
    """All of them from their sources, where the build step has not run."""
    return {name: json.loads(text) for name, text in build.build(_ROOM / "data").items()}


def _nearest(name: str, names: tuple[str, ...]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, 3)
    return f"did you mean {' or '.join(near)}?" if near else "Profiles.names() lists them"
