"""What the proxy is told: the ``mcpServers`` file of desktop hosts, with keys of our own.

Ours stand under ``failwise``, in a server's entry and at the top. Secrets need not stand in the
file: a value names a variable (``"Bearer ${TOKEN}"``) or a command (``{"command": ["pass", "show",
"shop"]}``) whose first line is the secret; ``{"value": "..."}`` is taken as it is.
"""

import difflib
import json
import os
import re
import subprocess
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

_SIZE_LIMIT: Final = 1_000_000
_SECRET_SECONDS: Final = 30.0
_SECRET_LENGTH: Final = 100_000
_VARIABLE: Final = re.compile(r"\$\{(\w{1,200})\}")

_TOP: Final = ("lang", "notes", "hide_open", "start_wait", "result_limit", "policy", "journal")
_SERVER: Final = (
    "timeout", "timeout_limit", "connect_timeout", "trust_annotations", "forward_authorization",
    "profile", "prefix", "protocol", "tools",
)  # fmt: skip
_ENTRY: Final = (
    "command", "args", "env", "cwd", "url", "headers", "type", "transport", "disabled", "failwise",
)  # fmt: skip
_TOOL: Final = (
    "read_only", "idempotent", "destructive", "idempotency_key", "verified_by", "fallback",
    "timeout", "timeout_limit", "hidden", "policy",
)  # fmt: skip


@record
class ToolSettings:
    """What a person says of the tools whose names match a pattern. None: nothing said.

    `idempotency_key` names the argument with which the tool honours one. `verified_by` names the read
    tool (of any server) with which an unknown effect can be looked up. `fallback` names other tools.
    `timeout` in seconds without news, `timeout_limit` in all. `hidden` tools are not listed.
    """

    read_only: bool | None = None
    idempotent: bool | None = None
    destructive: bool | None = None
    idempotency_key: str | None = None
    verified_by: str | None = None
    fallback: tuple[str, ...] = ()
    timeout: float | None = None
    timeout_limit: float | None = None
    hidden: bool = False
    policy: Mapping[str, Any] | None = None


@record
class ServerSettings:
    """One upstream. `command` with `args`, or `url`.

    `env` and `headers` hold templates, filled by `secrets` when the connection is made. `timeout`:
    seconds a call may go without news (progress is news), `timeout_limit`: in all.
    `trust_annotations`: what the server says of its own tools may allow a repeat.
    `forward_authorization`: an HTTP host's ``Authorization`` goes on to this upstream.
    `prefix`: before its tools' names; None: the server's name and two underscores. `protocol`: ``auto``
    (ask the server), ``legacy`` (shake hands, as before 2026-07-28), or a modern version.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, Any] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, Any] | None = None
    timeout: float = 60.0
    timeout_limit: float = 600.0
    connect_timeout: float = 30.0
    trust_annotations: bool = False
    forward_authorization: bool = False
    profile: str | None = None
    prefix: str | None = None
    protocol: str = "auto"
    tools: tuple[tuple[str, ToolSettings], ...] = ()

    def of(self, tool: str) -> ToolSettings:
        """What is said of a tool: the first pattern that matches its own name."""
        for pattern, settings in self.tools:
            if fnmatchcase(tool, pattern):
                return settings
        return _NOTHING


_NOTHING = ToolSettings()


@record
class ProxySettings:
    """Servers, and what holds for all. `lang`: of the texts for the model. `notes`: a tool that keeps
    failing is described as such in the listing; `hide_open`: it is not listed while its circuit is
    open. `start_wait`: seconds a listing waits for servers that are starting. `result_limit`:
    characters of a result that are passed on.
    """

    servers: tuple[ServerSettings, ...]
    lang: str = "en"
    notes: bool = True
    hide_open: bool = False
    start_wait: float = 10.0
    result_limit: int = 16_000_000
    policy: str | None = None
    journal: str | None = None


def read_settings(path: "str | os.PathLike[str]") -> ProxySettings:
    """The file's servers and settings. Raises `ConfigurationError` with file, line and what to write."""
    name = os.fspath(path)
    try:
        if os.path.getsize(name) > _SIZE_LIMIT:
            raise ConfigurationError(f"larger than {_SIZE_LIMIT} bytes", file=name)
        text = Path(name).read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", file=name) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"not UTF-8: {error}", file=name) from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"not JSON: {error.msg}", file=name, line=error.lineno) from error
    return _Reader(name, text).settings(data)


class _Reader:
    """Reads one file's data, and says where it is wrong."""

    def __init__(self, file: str, text: str) -> None:
        self._file, self._text = file, text

    def settings(self, data: Any) -> ProxySettings:
        servers = self._table(data, "").get("mcpServers")
        if not isinstance(servers, Mapping) or not servers:
            raise self._error('write {"mcpServers": {"NAME": {"command": ...} or {"url": ...}}}')
        ours = self._table(data.get("failwise", {}), "failwise")
        self._known(ours, _TOP, "failwise")
        lang = ours.get("lang", "en")
        if lang not in ("en", "zh"):
            raise self._error('"lang" is "en" or "zh"', "lang")
        return ProxySettings(
            tuple(
                self._server(name, self._table(entry, name))
                for name, entry in servers.items()
                if not (isinstance(entry, Mapping) and entry.get("disabled") is True)
            ),
            lang,
            self._flag(ours, "notes", True),
            self._flag(ours, "hide_open", False),
            self._seconds(ours, "start_wait", 10.0),
            int(self._seconds(ours, "result_limit", 16_000_000)),
            self._text_of(ours, "policy"),
            self._text_of(ours, "journal"),
        )

    def _server(self, name: str, entry: Mapping[str, Any]) -> ServerSettings:
        self._known(entry, _ENTRY, name)
        command, url = self._text_of(entry, "command"), self._text_of(entry, "url")
        if (command is None) == (url is None):
            raise self._error(f'{name}: give either "command" or "url"', name)
        if url is not None and not url.startswith(("http://", "https://")):
            raise self._error(f"{name}: the url begins with http:// or https://", "url")
        kind = entry.get("type", entry.get("transport"))
        if kind == "sse":
            raise self._error(f"{name}: SSE servers are not supported; use streamable HTTP", name)
        arguments = entry.get("args", [])
        if not isinstance(arguments, list) or not all(isinstance(a, str) for a in arguments):
            raise self._error(f'{name}: "args" is a list of texts', "args")
        ours = self._table(entry.get("failwise", {}), "failwise")
        self._known(ours, _SERVER, "failwise")
        tools = self._table(ours.get("tools", {}), "tools")
        return ServerSettings(
            name,
            command,
            tuple(arguments),
            self._templates(entry, "env"),
            self._text_of(entry, "cwd"),
            url,
            self._templates(entry, "headers"),
            self._seconds(ours, "timeout", 60.0),
            self._seconds(ours, "timeout_limit", 600.0),
            self._seconds(ours, "connect_timeout", 30.0),
            self._flag(ours, "trust_annotations", False),
            self._flag(ours, "forward_authorization", False),
            self._text_of(ours, "profile"),
            self._text_of(ours, "prefix"),
            self._text_of(ours, "protocol") or "auto",
            tuple((pattern, self._tool(pattern, given)) for pattern, given in tools.items()),
        )

    def _tool(self, pattern: str, given: Any) -> ToolSettings:
        table = self._table(given, pattern)
        self._known(table, _TOOL, pattern)
        fallback = table.get("fallback", [])
        names = [fallback] if isinstance(fallback, str) else fallback
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self._error(f'{pattern}: "fallback" names tools', "fallback")
        policy = table.get("policy")
        return ToolSettings(
            self._flag(table, "read_only", None),
            self._flag(table, "idempotent", None),
            self._flag(table, "destructive", None),
            self._text_of(table, "idempotency_key"),
            self._text_of(table, "verified_by"),
            tuple(names),
            self._seconds(table, "timeout", None),
            self._seconds(table, "timeout_limit", None),
            self._flag(table, "hidden", False),
            None if policy is None else self._table(policy, "policy"),
        )

    def _templates(self, entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        found = self._table(entry.get(key, {}), key)
        for name, value in found.items():
            command = value.get("command") if isinstance(value, Mapping) else None
            literal = value.get("value") if isinstance(value, Mapping) else value
            if isinstance(literal, str):
                continue
            if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
                raise self._error(
                    f'{name}: write a text (with ${{VARIABLE}}), or {{"command": ["PROGRAM", ...]}}',
                    name,
                )
        return found

    def _table(self, value: Any, key: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self._error(f"{key or 'the file'}: write an object {{...}}", key)
        return value

    def _text_of(self, table: Mapping[str, Any], key: str) -> str | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self._error(f'"{key}" is a text', key)
        return value

    def _flag(self, table: Mapping[str, Any], key: str, default: Any) -> Any:
        value = table.get(key, default)
        if value is not None and not isinstance(value, bool):
            raise self._error(f'"{key}" is true or false', key)
        return value

    def _seconds(self, table: Mapping[str, Any], key: str, default: Any) -> Any:
        value = table.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise self._error(f'"{key}" is a number above 0', key)
        return float(value)

    def _known(self, table: Mapping[str, Any], allowed: Collection[str], place: str) -> None:
        for key in table:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, 1)
                told = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(allowed)}"
                raise self._error(f"{place}: unknown key {key!r}: {told}", key)

    def _error(self, told: str, key: str = "") -> ConfigurationError:
        quoted = json.dumps(key)
        lines = self._text.splitlines()
        line = next((n for n, text in enumerate(lines, 1) if key and quoted in text), None)
        return ConfigurationError(told, file=self._file, line=line)


def filled(templates: Mapping[str, Any] | None, server: str) -> dict[str, str]:
    """Templates with variables and commands replaced by what they name, which becomes a known secret.

    Blocks while a command runs. Raises `ConfigurationError` naming the variable or the command, never a
    value.
    """
    from failwise.redaction import default

    redactor = default()
    found: dict[str, str] = {}
    for name, template in (templates or {}).items():
        literal = None if isinstance(template, str) else template.get("value")
        if literal is not None:
            value = str(literal)
            hidden = _written_secrets(name, value)
        elif isinstance(template, str):
            secrets = _VARIABLE.findall(template)
            for variable in secrets:
                if variable not in os.environ:
                    raise ConfigurationError(
                        f"server {server}: the variable {variable} that {name} names is not set"
                    )
            value = _VARIABLE.sub(lambda match: os.environ[match[1]], template)
            hidden = [os.environ[variable] for variable in secrets]
            hidden += _written_secrets(name, value)
        else:
            value = _said_by(template["command"], server, name)
            hidden = [value]
        for secret in hidden:
            redactor.add_secret(secret)
        found[name] = value
    return found


def _written_secrets(name: str, value: str) -> list[str]:
    """A secret that stands in the file all the same, told by its name."""
    from failwise.redaction.known import environment_secrets
    from failwise.redaction.names import NameClass, classify_name

    if classify_name(name) in (NameClass.AUTHORIZATION, NameClass.COOKIE):
        return [value]
    return list(environment_secrets({name: value}))


def _said_by(command: list[str], server: str, name: str) -> str:
    """The first line that a command prints."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own configuration names it
            command,
            capture_output=True,
            timeout=_SECRET_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"server {server}: the command for {name} ({command[0]}) failed: {type(error).__name__}"
        ) from error
    lines = done.stdout[:_SECRET_LENGTH].decode("utf-8", "replace").splitlines()
    if done.returncode or not lines:
        raise ConfigurationError(
            f"server {server}: the command for {name} ({command[0]}) ended with {done.returncode} "
            "and no secret"
        )
    return lines[0].strip()
