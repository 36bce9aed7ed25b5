"""One tool of an agent as `failwise lint` sees it, and where its function is written."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final

from failwise.vocabulary.records import record

_INSTALLED: Final = ("site-packages", "dist-packages")


@record
class Found:
    """One tool: what it declares, and where its function is written.

    `framework` is whose object it is. `declared` holds what is said of it, by the names of `ToolSpec`'s
    options; what its framework has no word for is missing. `function` is as it is called, with all
    decorators around it.
    """

    name: str
    framework: str
    function: Callable[..., Any] | None
    declared: Mapping[str, Any]
    file: str = ""
    line: int | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line is not None else self.file


def layers(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function from the outermost decorator to the function itself."""
    seen: set[int] = set()
    layer: Any = function
    while layer is not None and id(layer) not in seen and len(seen) < 50:
        seen.add(id(layer))
        yield layer
        layer = attribute(layer, "__wrapped__") or attribute(layer, "func")


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was written, below its decorators."""
    *_, last = layers(function)
    return last


def placed(tool: Found, module: ModuleType, libraries: Collection[str]) -> Found:
    """A tool with its place: its function's, or where the module names it if there is none to mend: in
    one of the installed packages `libraries`, say."""
    file, line = "", None
    if tool.function is not None:
        code = getattr(innermost(tool.function), "__code__", None)
        if code is not None and package_of(code.co_filename) not in libraries:
            file, line = code.co_filename, code.co_firstlineno
    if not file:
        file = getattr(module, "__file__", None) or module.__name__
        line = _line_of_name(file, tool.name)
    return replace(tool, file=file, line=line)


def package_of(file: str) -> str:
    """The installed package that a file is of; empty for any other file."""
    parts = PurePath(file).parts
    at = max((i for i, part in enumerate(parts) if part in _INSTALLED), default=len(parts))
    return parts[at + 1].removesuffix(".py") if at + 1 < len(parts) else ""


def _line_of_name(file: str, name: str) -> int | None:
    """The line of the module that names a tool, for one that has no function."""
    try:
        with open(file, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                if f'"{name}"' in line or f"'{name}'" in line:
                    return number
    except (OSError, UnicodeDecodeError):
        return None
    return None


def attribute(thing: Any, name: str) -> Any:
    """An attribute, or None where there is none or it cannot be read."""
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody's that cannot be read now
        return None


def names_of(thing: Any) -> set[str]:
    """The attributes that an object and its classes have."""
    names = {name for kind in type(thing).__mro__ for name in vars(kind)}
    own = getattr(thing, "__dict__", None)
    return names | {str(name) for name in own} if isinstance(own, dict) else names
