"""Declarations from outside: what a person knows of tools, and of requests, that others made.

Each stands under a tool's name or a glob of names (``pay_*``), or, for the requests of a connected
HTTP client, under a method and a glob of host and path (``POST api.shop.example/search*``).
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from fnmatch import translate
from typing import Any, Final

from failwise.tools.declarations import REPAIR_MODES, check_seconds, checked, fallback_names
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.spec import ToolSpec

TOOL_OPTIONS: Final = (
    "read_only", "idempotent", "destructive", "timeout", "fallback", "fallback_value", "verify",
    "verify_final_after", "profile", "upstream", "success", "repair", "fixer", "policy",
)  # fmt: skip
"""What can be said of a tool that exists already. How a key or a credential is sent cannot: the tool
itself must know."""
REQUEST_OPTIONS: Final = (
    "read_only", "idempotent", "idempotency_key", "profile", "upstream", "policy",
)  # fmt: skip
"""What can be said of a client's requests."""

_IMPORTED: Final = ("verify", "success", "fixer")
_TEXTS: Final = ("idempotency_key", "profile", "upstream")
_WILD: Final = re.compile(r"[*?\[]")
_REMEMBERED: Final = 4_096
_MOST: Final = 2_000
_LONGEST: Final = 300

At = Callable[..., ConfigurationError]
"""Makes the error about a place in a file: (reason, \\*keys)."""


class Declarations:
    """Options by name or glob. The person who writes them has the last word: they win over what a
    tool says of itself, option by option.

    Of several that fit, an exact name beats every glob, a glob with more letters of its own beats
    one with fewer, and a later one beats an equal. `at` makes errors that name file and line.
    Raises `ConfigurationError` for what cannot be meant.
    """

    def __init__(self, tables: Mapping[str, Any], *, at: At | None = None) -> None:
        at = at or _nowhere
        if not isinstance(tables, Mapping):
            raise at('declarations: write a mapping, such as {"pay_*": {"read_only": False}}')
        if len(tables) > _MOST:
            raise at(f"declarations: more than {_MOST}")
        self._exact: dict[str, dict[str, Any]] = {}
        globs: list[tuple[int, int, bool, re.Pattern[str], dict[str, Any]]] = []
        for place, (name, table) in enumerate(tables.items()):
            options = _checked(str(name), table, at)
            if _WILD.search(name):
                literal = len(_WILD.sub("", name))
                pattern = re.compile(translate(name))
                globs.append((literal, place, " " in name, pattern, options))
            else:
                self._exact[name] = options
        globs.sort(key=lambda found: found[:2])
        self._globs = [found[2:] for found in globs]
        self._found: dict[str, Mapping[str, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._exact or self._globs)

    def of(self, name: str) -> Mapping[str, Any]:
        """The options in force for a tool's name, or for a request (``POST host/path``)."""
        found = self._found.get(name)
        if found is None:
            made: dict[str, Any] = {}
            request = " " in name
            for of_requests, pattern, options in self._globs:
                if of_requests is request and pattern.match(name):
                    made.update(options)
            made.update(self._exact.get(name, {}))
            found = made
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            self._found[name] = found
        return found

    def of_request(self, method: str, address: str) -> Mapping[str, Any]:
        """The options for a request: only patterns that name a method speak of it."""
        return self.of(f"{method} {address[:_LONGEST]}")

    def applied(self, spec: ToolSpec, *, besides: Collection[str] = ()) -> ToolSpec:
        """The tool with what is declared of it, `besides` options said in a better place.

        Raises `UsageError` where both cannot hold together.
        """
        options = self.of(spec.name)
        if besides:
            options = {key: value for key, value in options.items() if key not in besides}
        return checked(replace(spec, **options)) if options else spec


def _nowhere(reason: str, *place: str) -> ConfigurationError:
    return ConfigurationError(reason)


def _checked(name: str, table: Any, at: At) -> dict[str, Any]:
    def wrong(reason: str, *key: str) -> ConfigurationError:
        return at(f"[declare.{_quoted(name)}]: {reason}", "declare", name, *key)

    if not name.strip() or len(name) > _LONGEST:
        raise wrong("name a tool, or a glob of names such as pay_*")
    if not isinstance(table, Mapping):
        raise wrong("write a table of options, such as read_only = true")
    request = " " in name
    allowed = REQUEST_OPTIONS if request else TOOL_OPTIONS
    if request and not re.match(r"[A-Z*?\[\]]+ \S+$", name):
        raise wrong('a request is a method and an address: "POST api.shop.example/search*"')
    options: dict[str, Any] = {}
    for key, value in table.items():
        if key not in allowed:
            raise wrong(_unknown(key, allowed, request=request), key)
        try:
            options[key] = _value(name, key, value)
        except UsageError as error:
            raise wrong(str(error).removeprefix(f"{name}: "), key) from error
    if options.get("read_only") is True and options.get("destructive") is True:
        raise wrong("read_only and destructive contradict each other: drop one", "destructive")
    return options


def _unknown(key: str, allowed: tuple[str, ...], *, request: bool) -> str:
    if key in ("idempotency_key", "credential") and not request:
        return (
            f"{key} cannot be declared from outside: the tool itself must send it, so say it where "
            "the tool is made"
        )
    near = difflib.get_close_matches(str(key), allowed, 1)
    told = f"did you mean {near[0]}?" if near else f"known are {', '.join(allowed)}"
    return f"unknown option {key!r}: {told}"


def _value(name: str, key: str, value: Any) -> Any:
    """A declared value, checked. Raises `UsageError` with what to write."""
    if key in ("read_only", "idempotent", "destructive"):
        if not isinstance(value, bool) and not (callable(value) and key != "destructive"):
            raise UsageError(f"{key} = {value!r}: write true or false")
    elif key in ("timeout", "verify_final_after"):
        check_seconds(name, key, value)
    elif key == "fallback":
        return fallback_names(name, value)
    elif key in _IMPORTED:
        if isinstance(value, str):
            from failwise.tools.config import imported

            return imported(key, value)
        if not callable(value):
            raise UsageError(f'{key} = {value!r}: name a function, "package.module:name"')
    elif key in _TEXTS:
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{key} = {value!r}: write a name")
    elif key == "repair":
        if value not in REPAIR_MODES:
            raise UsageError(f"repair = {value!r}: write one of {', '.join(REPAIR_MODES)}")
    elif key == "policy" and not isinstance(value, Mapping):
        raise UsageError(f"policy = {value!r}: write rows, as in a policy file")
    return value


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
