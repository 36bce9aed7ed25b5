"""A host's configuration file: its servers put behind the proxy, and taken out again.

Each server is changed by itself and in place, so that undoing leaves alone what was added since.
"""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from failwise.vocabulary.errors import ConfigurationError, UsageError

HEADERS: Final = "FAILWISE_MCP_HEADERS"
"""The variable that hands a wrapped server's headers on, as JSON: they may hold secrets."""

_SECTIONS: Final = ("mcpServers", "servers")
_WRAP: Final = ("mcp", "wrap")
_SIZE_LIMIT: Final = 5_000_000

PLACES: Final[Mapping[str, Sequence[str]]] = {
    "claude-desktop": (
        "~/Library/Application Support/Claude/claude_desktop_config.json",
        "~/AppData/Roaming/Claude/claude_desktop_config.json",
        "~/.config/Claude/claude_desktop_config.json",
    ),
    "claude-code": (".mcp.json",),
    "cursor": ("~/.cursor/mcp.json",),
    "vscode": (".vscode/mcp.json",),
    "windsurf": ("~/.codeium/windsurf/mcp_config.json",),
}
"""Where hosts keep their configuration; the first that exists counts."""


def located(host: str) -> Path:
    """The file of a host by name, or the path itself. Raises `ConfigurationError` where none exists."""
    if host not in PLACES:
        return Path(host)
    for place in PLACES[host]:
        path = Path(place).expanduser()
        if path.is_file():
            return path
    raise ConfigurationError(
        f"no configuration of {host} was found at {', '.join(PLACES[host])}: name its file instead"
    )


def read(path: Path) -> tuple[str, dict[str, Any], str]:
    """A host's file: its text, its data, the key of its servers. Raises `ConfigurationError`."""
    name = str(path)
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            raise ConfigurationError(f"larger than {_SIZE_LIMIT} bytes", file=name)
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", file=name) from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"not plain JSON ({error.msg}); remove comments first", file=name, line=error.lineno
        ) from error
    if isinstance(data, dict):
        for section in _SECTIONS:
            if isinstance(data.get(section), dict):
                return text, data, section
    raise ConfigurationError('it has no "mcpServers" (or "servers") object', file=name)


def wrapped(
    data: Mapping[str, Any], section: str, program: Sequence[str], only: Collection[str] = ()
) -> dict[str, Any]:
    """The data with its servers behind ``PROGRAM mcp wrap``; those that are already stay.

    Raises `UsageError` for a name in `only` that is not there.
    """
    servers = data[section]
    for name in only:
        if name not in servers:
            raise UsageError(f"there is no server {name!r}; there are {', '.join(servers)}")
    changed = {
        name: _wrapped(name, entry, program) if not only or name in only else entry
        for name, entry in servers.items()
    }
    return {**data, section: changed}


def unwrapped(data: Mapping[str, Any], section: str, only: Collection[str] = ()) -> dict[str, Any]:
    """The data with its servers as they were before `wrapped`."""
    changed = {
        name: _unwrapped(entry) if not only or name in only else entry
        for name, entry in data[section].items()
    }
    return {**data, section: changed}


def _wrapped(name: str, entry: Any, program: Sequence[str]) -> Any:
    if not isinstance(entry, dict) or _marks(entry) is not None:
        return entry
    head = [*program[1:], *_WRAP, "--name", name]
    if isinstance(entry.get("command"), str):
        arguments = entry.get("args", [])
        return {
            **entry,
            "command": program[0],
            "args": [*head, "--", entry["command"], *arguments],
        }
    if isinstance(entry.get("url"), str) and entry.get("type") != "sse":
        kept = {key: value for key, value in entry.items() if key not in ("url", "headers", "type")}
        if entry.get("type"):
            head += ["--type", entry["type"]]
        made = {"command": program[0], "args": [*head, "--url", entry["url"]], **kept}
        if entry.get("headers"):
            made["env"] = {**entry.get("env", {}), HEADERS: json.dumps(entry["headers"])}
        return made
    return entry


def _marks(entry: Mapping[str, Any]) -> int | None:
    """Where ``mcp wrap`` begins in the arguments of a wrapped entry."""
    arguments = entry.get("args")
    if not isinstance(arguments, list):
        return None
    for index in range(min(len(arguments), 4)):
        if tuple(arguments[index : index + 3]) == (*_WRAP, "--name"):
            return index
    return None


def _unwrapped(entry: Any) -> Any:
    start = _marks(entry) if isinstance(entry, dict) else None
    if start is None:
        return entry
    rest = entry["args"][start + 4 :]
    if "--" in rest:
        command = rest[rest.index("--") + 1 :]
        found = {**entry, "command": command[0], "args": command[1:]}
        return found if command[1:] else {k: v for k, v in found.items() if k != "args"}
    found = {key: value for key, value in entry.items() if key not in ("command", "args", "env")}
    made: dict[str, Any] = {}
    if "--type" in rest:
        made["type"] = rest[rest.index("--type") + 1]
    made["url"] = rest[rest.index("--url") + 1]
    environment = dict(entry.get("env", {}))
    headers = environment.pop(HEADERS, None)
    if headers is not None:
        made["headers"] = json.loads(headers)
    if environment:
        made["env"] = environment
    return {**made, **found}


def as_text(data: Mapping[str, Any], before: str) -> str:
    """The data as JSON, indented as the file was."""
    match = re.search(r"\n([ \t]+)\S", before)
    indent = match[1] if match else "  "
    end = "\n" if before.endswith("\n") else ""
    return json.dumps(data, indent=indent, ensure_ascii=False) + end


def write(path: Path, text: str, before: str) -> Path:
    """Write a host's file, keeping the one before beside it (with the same permissions); its place."""
    backup = path.with_name(path.name + ".before-failwise")
    mode = path.stat().st_mode & 0o777
    _put(backup, before, mode)
    fresh = path.with_name(path.name + ".new")
    _put(fresh, text, mode)
    fresh.replace(path)
    return backup


def _put(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    path.chmod(mode)
