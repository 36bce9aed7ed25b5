"""``failwise.toml``: a runtime with tools, credentials, policy, guards, profiles and journal.

`load` is the door. The file's sections are described in ``docs/configuration.md``; paths in it count
from its folder, and that folder is put on the import path, so that its functions are found.
"""

import difflib
import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.journal_section import journal_of, places_of
from failwise.cli.places import fault_in, line_of
from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.records import record

if TYPE_CHECKING:
    from failwise.classify.advisor import Advisor
    from failwise.guards import MemoryGuards
    from failwise.guards.shared import ValkeyGuards
    from failwise.runtime.runtime import Runtime
    from failwise.tools.declared import Declarations
    from failwise.vocabulary.spec import ToolSpec

NAME: Final = "failwise.toml"
_SIZE_LIMIT: Final = 10_000_000
_SECTIONS: Final = (
    "tools", "declare", "credentials", "policy", "guards", "arguments", "classification", "advisor", "profiles",
    "redaction", "journal", "telemetry", "tls",
)  # fmt: skip
_TELEMETRY: Final = ("opentelemetry", "content", "prometheus_port")
_GUARDS: Final = ("url", "env", "namespace")
_ARGUMENTS: Final = ("repair", "fixer")
_ADVISOR: Final = ("function", "below", "seconds", "per_hour")
_TLS: Final = ("probe",)
_CREDENTIAL: Final = ("env", "function", "refresh")


def load(path: "str | os.PathLike[str]" = NAME) -> "Runtime":
    """A runtime as the file says, its tools and credentials registered; nothing is opened yet.

    Raises `ConfigurationError` naming file and line, and what to write instead.
    """
    return read(path).runtime()


def read(path: "str | os.PathLike[str]" = NAME) -> "Configuration":
    """The file, read and its sections known. Raises `ConfigurationError`."""
    name = os.fspath(path)
    try:
        if os.path.getsize(name) > _SIZE_LIMIT:
            raise ConfigurationError(f"larger than {_SIZE_LIMIT} bytes", file=name)
        text = Path(name).read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot be read ({error.strerror}); write one with [tools.NAME] tables, or name "
            "another with --config",
            file=name,
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"not UTF-8: {error}", file=name) from error
    data = documents.parsed(text, name)
    configuration = Configuration(name, text, data)
    for section, value in data.items():
        configuration.known(section, _SECTIONS, section)
        if not isinstance(value, Mapping):
            raise configuration.error(f"write a table: [{section}]", section)
    return configuration


@record
class Configuration:
    """A configuration file: its `name`, its `text` for line numbers, its tables."""

    name: str
    text: str
    data: Mapping[str, Any]

    def runtime(self) -> "Runtime":
        """The runtime it describes. Raises `ConfigurationError`."""
        from failwise.runtime.runtime import Runtime

        self._redaction()
        journal, policy = journal_of(self), self.policy()
        profiles, guards = self._profiles(), self.guards()
        options = {**self._arguments(), **self._tls()}
        options |= {"rules": self.rules(), "advisor": self._advisor()}
        try:
            runtime = Runtime(journal, policy=policy, profiles=profiles, guards=guards, **options)
        except ConfigurationError as error:
            raise self.placed(error) from error
        credentials = self.data.get("credentials", {})
        for name, table in credentials.items():
            self._credential(runtime, name, table)
        declarations, own = self.declarations(), self.data.get("tools", {})
        for made in self.tools():
            # what a tool's own table says is meant of this very tool: it beats a glob
            spec = declarations.applied(made, besides=own.get(made.name, ()))
            if spec.credential is not None and spec.credential not in credentials:
                raise self.error(
                    f"[tools.{spec.name}]: there is no [credentials.{spec.credential}]: add it, "
                    f'with env = "VARIABLE" or function = "module:name"',
                    *("tools", spec.name, "credential"),
                )
            runtime.add(spec)
        runtime.declare(declarations)
        self._telemetry(runtime)
        return runtime

    def _telemetry(self, runtime: "Runtime") -> None:
        """What tells the outside world of calls, as the ``[telemetry]`` section says."""
        section = self.data.get("telemetry", {})
        for key, value in section.items():
            self.known(key, _TELEMETRY, "telemetry", key)
            wanted = int if key == "prometheus_port" else bool
            if type(value) is not wanted:
                kind = "a port" if wanted is int else "true or false"
                raise self.error(f"[telemetry] {key}: write {kind}", "telemetry", key)
        if section.get("opentelemetry"):
            from failwise.connect.opentelemetry import instrument

            instrument(runtime, content=section.get("content", False))
        if "prometheus_port" in section:
            from failwise.connect.prometheus import Metrics

            try:
                Metrics(runtime).serve(section["prometheus_port"])
            except (OSError, OverflowError) as error:
                raise self.error(
                    f"[telemetry] prometheus_port: cannot be used ({error})",
                    "telemetry",
                    "prometheus_port",
                ) from error

    def declarations(self) -> "Declarations":
        """What the ``[declare."NAME or GLOB"]`` tables say of tools, and requests, made elsewhere."""
        from failwise.tools.declared import Declarations

        tables = self.data.get("declare", {})
        if tables:
            self._importable()
        return Declarations(tables, at=self.error)

    def _importable(self) -> None:
        """Functions beside the file are found."""
        folder = str(self.folder.resolve())
        if folder not in sys.path:
            sys.path.insert(0, folder)

    def tools(self) -> "list[ToolSpec]":
        """The tools of the ``[tools.NAME]`` tables."""
        from failwise.tools import tools_from_config

        self._importable()
        return tools_from_config(self.data.get("tools", {}), file=self.name)

    def policy(self) -> Any:
        """What `Runtime(policy=)` takes: None, a path, or the section's own tables.

        What is wrong inside of it is said by whoever loads it: see `placed`.
        """
        section = self.data.get("policy")
        if section is None:
            return None
        if "file" in section:
            if len(section) > 1:
                other = next(key for key in section if key != "file")
                raise self.error(
                    f"[policy]: file and {other} exclude each other: move {other} into the file",
                    *("policy", other),
                )
            return self.path("policy", "file")
        return section

    def placed(self, error: ConfigurationError) -> ConfigurationError:
        """The same error, with the line of this file where it is about the ``[policy]`` section."""
        section = self.data.get("policy")
        if error.line is not None or not isinstance(section, Mapping) or "file" in section:
            return error
        from failwise.policy import load as load_policy

        place = fault_in(section, load_policy)
        if not place:
            return error
        return self.error(f"[policy]: {error.reason}", "policy", *place)

    @property
    def folder(self) -> Path:
        """The file's folder, from which paths in it count."""
        return Path(self.name).parent

    def path(self, *place: str) -> Path:
        """A path that stands in the file, counted from its folder."""
        value: Any = self.data
        for key in place:
            value = value[key]
        if not isinstance(value, str) or not value:
            raise self.error(f"{place[-1]} = {value!r}: write a path", *place)
        return self.folder / Path(value).expanduser()

    def error(self, reason: str, *place: str) -> ConfigurationError:
        """An error about the key at `place`."""
        return ConfigurationError(reason, file=self.name, line=line_of(self.text, *place))

    def known(self, key: str, allowed: Collection[str], *place: str) -> None:
        """Refuse a key that means nothing. Raises `ConfigurationError` with the nearest that does."""
        if key in allowed:
            return
        near = difflib.get_close_matches(key, allowed, 1)
        told = f"did you mean {near[0]}?" if near else f"known are {', '.join(allowed)}"
        raise self.error(f"unknown key {key!r}: {told}", *place)

    def journal_places(self) -> tuple[str | None, str | None]:
        """Where ``[journal]`` says that the journal is, and its claims; None where it says nothing."""
        return places_of(self)

    def guards(self) -> "MemoryGuards | ValkeyGuards | None":
        """The guards of the ``[guards]`` section; None where it says nothing of them."""
        section = self.data.get("guards")
        if section is None:
            return None
        from failwise.guards import default_settings, guards_at, read_settings
        from failwise.runtime.clock import SystemClock

        figures = {key: value for key, value in section.items() if key not in _GUARDS}
        settings = read_settings(figures, file=self.name, text=self.text, base=default_settings())
        place = section.get("url")
        for key in _GUARDS:
            if key in section and (not isinstance(section[key], str) or not section[key]):
                raise self.error(f"{key} = {section[key]!r}: write a text", "guards", key)
        if "env" in section:
            if place is not None:
                raise self.error("[guards]: url and env exclude each other", "guards", "env")
            place = os.environ.get(section["env"])
            if not place:
                raise self.error(
                    f"[guards]: the environment has no {section['env']!r}: export it first, such as "
                    "rediss://user:password@host:6379/0",
                    *("guards", "env"),
                )
        place = place or os.environ.get("FAILWISE_GUARDS") or None
        namespace = section.get("namespace", "failwise")
        try:
            return guards_at(place, SystemClock(), settings, namespace=namespace)
        except UsageError as error:
            where = next((key for key in ("env", "url") if key in section), "namespace")
            raise self.error(f"[guards]: {error}", "guards", where) from error

    def _tls(self) -> dict[str, Any]:
        """What `Runtime` takes of the ``[tls]`` section."""
        section = self.data.get("tls", {})
        for key in section:
            self.known(key, _TLS, "tls", key)
        probe = section.get("probe", False)
        if not isinstance(probe, bool):
            raise self.error(f"[tls] probe = {probe!r}: write true or false", "tls", "probe")
        return {"tls_probe": probe}

    def _arguments(self) -> dict[str, Any]:
        """What `Runtime` takes for tools that say nothing: `repair` and `fixer`."""
        from failwise.tools.declarations import REPAIR_MODES

        section = self.data.get("arguments", {})
        for key in section:
            self.known(key, _ARGUMENTS, "arguments", key)
        given = dict(section)
        if "repair" in given and given["repair"] not in REPAIR_MODES:
            told = " or ".join(f'"{mode}"' for mode in REPAIR_MODES)
            raise self.error(
                f"repair = {given['repair']!r}: write {told}", *("arguments", "repair")
            )
        if "fixer" in given:
            given["fixer"] = self._function("arguments", "fixer", path=given["fixer"])
        return given

    def _profiles(self) -> tuple[Path, ...]:
        return self._paths("profiles", "paths", 'files or folders, such as ["profiles"]')

    def rules(self) -> tuple[Path, ...]:
        """The files of one's own text rules."""
        return self._paths("classification", "rules", 'files, such as ["rules.toml"]')

    def _paths(self, section: str, key: str, told: str) -> tuple[Path, ...]:
        """The paths of a section that has nothing else: each exists."""
        table = self.data.get(section, {})
        for name in table:
            self.known(name, (key,), section, name)
        paths = table.get(key, [])
        if not _are_texts(paths):
            raise self.error(f"{key}: write a list of {told}", section, key)
        found = tuple(self.folder / Path(path).expanduser() for path in paths)
        for path in found:
            if not path.exists():
                raise self.error(f"{key}: {path} does not exist", section, key)
        return found

    def _advisor(self) -> "Advisor | None":
        """The ``[advisor]`` section: a function, and how far it may be asked."""
        section = self.data.get("advisor")
        if section is None:
            return None
        for key in section:
            self.known(key, _ADVISOR, "advisor", key)
        if "function" not in section:
            raise self.error('[advisor]: give function = "module:name"', "advisor")
        from failwise.classify.advisor import Advisor

        ask = self._function("advisor", "function", path=section["function"])
        try:
            return Advisor(ask, **{key: section[key] for key in section if key != "function"})
        except UsageError as error:
            raise self.error(str(error), "advisor") from error

    def _redaction(self) -> None:
        section = self.data.get("redaction", {})
        for key in section:
            self.known(key, ("secrets",), "redaction", key)
        names = section.get("secrets", [])
        if not _are_texts(names):
            raise self.error(
                'secrets: write names of environment variables, such as ["DB_PASSWORD"]; never '
                "the values",
                *("redaction", "secrets"),
            )
        from failwise.redaction import default

        for name in names:
            if value := os.environ.get(name):
                default().add_secret(value)

    def _credential(self, runtime: "Runtime", name: str, table: Any) -> None:
        place = ("credentials", name)
        if not isinstance(table, Mapping):
            raise self.error(f'write a table: [credentials.{name}] with env = "VARIABLE"', *place)
        for key in table:
            self.known(key, _CREDENTIAL, *place, key)
        if ("env" in table) == ("function" in table):
            raise self.error(
                f'[credentials.{name}]: give either env = "VARIABLE" or function = "module:name"',
                *place,
            )
        given: Any
        if "env" in table:
            variable = table["env"]
            given = os.environ.get(variable) if isinstance(variable, str) else None
            if not given:
                raise self.error(
                    f"[credentials.{name}]: the environment has no {variable!r}: export it first "
                    "(the value itself never stands in this file)",
                    *(*place, "env"),
                )
        else:
            given = self._function(*place, "function", path=table["function"])
        refresh = table.get("refresh")
        runtime.credential(
            name,
            given,
            refresh=self._function(*place, "refresh", path=refresh)
            if refresh is not None
            else None,
        )

    def _function(self, *place: str, path: Any) -> Callable[..., Any]:
        """What an import path such as ``package.module:name`` names."""
        import pkgutil

        where = f"[{'.'.join(place[:-1])}]: {place[-1]} = {path!r}"
        if not isinstance(path, str) or ":" not in path:
            raise self.error(f'{where}: write an import path, "module:name"', *place)
        self._importable()
        try:
            found = pkgutil.resolve_name(path)
        except Exception as error:
            raise self.error(
                f"{where} cannot be imported ({type(error).__name__}: {error}): check the path; "
                "modules beside this file and on PYTHONPATH are found",
                *place,
            ) from error
        if not callable(found):
            raise self.error(f"{where} is no function", *place)
        function: Callable[..., Any] = found
        return function


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)
