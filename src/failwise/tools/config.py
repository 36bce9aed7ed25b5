"""Tools from a configuration file: the ``[tools.NAME]`` tables of ``failwise.toml``.

A table with `url` is an HTTP tool, one with ``function = "package.module:name"`` a Python function;
the other keys are the options of `HttpTool` and `function_tool`. `verify`, `success` and `fixer`
name functions by import path too.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from failwise.tools.function import function_tool
from failwise.tools.http import HttpTool
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.spec import ToolSpec

_IMPORTED = ("verify", "success", "fixer")
_NOT_IN_FILES = frozenset({"errors", "passthrough"})
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_TABLE = re.compile(r"""^\s*\[\s*tools\s*\.\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*\]""")
_MAXIMUM_FILE = 10_000_000


def tools_from_config(tables: Mapping[str, Any], *, file: str = "failwise.toml") -> list[ToolSpec]:
    """The tools of the parsed ``[tools.NAME]`` tables, in the file's order.

    `file` is named in errors; where it can be read, so is the table's line. A relative `ca_file`
    or `schema_file` counts from the file's folder. Raises `ConfigurationError` for a table that
    cannot work, with what to do.
    """
    if not isinstance(tables, Mapping):
        raise ConfigurationError("tools: write one [tools.NAME] table for each tool", file=file)
    lines = _lines(file)
    specs: list[ToolSpec] = []
    for name, table in tables.items():
        try:
            specs.append(_tool(str(name), table, Path(file).parent))
        except UsageError as error:
            reason = str(error)
            where = f"[tools.{name}]"
            raise ConfigurationError(
                reason if where in reason else f"{where}: {reason}",
                file=file,
                line=lines.get(str(name)),
            ) from error
    names = {spec.name for spec in specs}
    for spec in specs:
        for fallback in spec.fallback:
            if fallback not in names:
                raise ConfigurationError(
                    f"[tools.{spec.name}]: fallback names {fallback!r}, but there is no "
                    f"[tools.{fallback}]: add it, or choose from {', '.join(sorted(names))}",
                    file=file,
                    line=lines.get(spec.name),
                )
    return specs


def _lines(file: str) -> dict[str, int]:
    """The line of each table; none where the file cannot be read."""
    path = Path(file)
    try:
        if path.stat().st_size > _MAXIMUM_FILE:
            return {}
        text = path.read_text("utf-8")
    except (OSError, ValueError):
        return {}
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            found.setdefault(match[1] or match[2] or match[3], number)
    return found


def _tool(name: str, table: Any, folder: Path) -> ToolSpec:
    if not isinstance(table, Mapping):
        raise UsageError("write a table, with url or function in it")
    options = dict(table)
    if ("url" in options) == ("function" in options):
        raise UsageError(
            'give either url = "https://..." (an HTTP tool) or function = "package.module:name"'
        )
    _read_schema_file(options, folder)
    for option in _IMPORTED:
        if option in options:
            options[option] = imported(option, options[option])
    if "url" in options:
        _check_options(options, HttpTool.__init__, {"self", "name"})
        if isinstance(options.get("ca_file"), str):
            options["ca_file"] = str(folder / options["ca_file"])
        method, url = options.pop("method", "GET"), options.pop("url")
        return _made(lambda: HttpTool(name, method, url, **options).spec())
    function = imported("function", options.pop("function"))
    _check_options(options, function_tool, {"function", "name"})
    return _made(lambda: function_tool(function, name=name, **options))


def _made(make: Callable[[], ToolSpec]) -> ToolSpec:
    """Values of a wrong type are the file's fault too, wherever they are noticed."""
    try:
        return make()
    except UsageError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"a value has a wrong type ({error}): see the option's description"
        ) from error


def _check_options(options: Mapping[str, Any], taker: Callable[..., Any], hidden: set[str]) -> None:
    known = set(inspect.signature(taker).parameters) - hidden - _NOT_IN_FILES
    for option in options:
        if option not in known:
            import difflib

            near = difflib.get_close_matches(option, known, 1)
            told = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise UsageError(f"unknown option {option!r}: {told}")


def _read_schema_file(options: dict[str, Any], folder: Path) -> None:
    given = options.pop("schema_file", None)
    if given is None:
        return
    import json

    if "schema" in options:
        raise UsageError("give schema or schema_file, not both")
    try:
        path = folder / str(given)
        if path.stat().st_size > _MAXIMUM_FILE:
            raise UsageError(f"schema_file {given!r} is larger than {_MAXIMUM_FILE} bytes")
        options["schema"] = json.loads(path.read_text("utf-8"))
    except (OSError, RecursionError) as error:
        raise UsageError(f"schema_file {given!r} cannot be read: {error}") from error
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"schema_file {given!r} is no JSON: {error}") from error


def imported(option: str, path: Any) -> Any:
    """What an import path such as ``package.module:name`` names; it must be callable."""
    import importlib

    if not isinstance(path, str) or not _IMPORT_PATH.fullmatch(path):
        raise UsageError(f'{option} = {path!r}: write an import path, "package.module:name"')
    module_name, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(
            f"{option}: {module_name} cannot be imported ({type(error).__name__}: {error}): "
            "check the path, and that the module is on PYTHONPATH"
        ) from error
    for part in names.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"{option}: {module_name} has no {names}") from None
    if not callable(found):
        raise UsageError(f"{option}: {path} is no function")
    return found
