"""What repeats a tool without asking: decorators, loops, and clients that retry by themselves."""

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from failwise.cli.linting.tool import attribute, innermost, layers, package_of

_SOURCE_LIMIT: Final = 200_000


def decorators(function: Callable[..., Any], packages: Collection[str]) -> Iterator[str]:
    """The packages whose decorators around a function repeat it."""
    told: set[str] = set()
    for layer in layers(function):
        name = _package(layer, packages)
        control = getattr(layer, "retry", None)
        if name is None and hasattr(control, "stop") and hasattr(control, "wait"):
            name = type(control).__module__.partition(".")[0]
        if name is not None and name not in told:
            told.add(name)
            yield f"{name}.retry" if name in ("tenacity", "stamina") else name


def _package(layer: Any, packages: Collection[str]) -> str | None:
    code = getattr(layer, "__code__", None)
    home = package_of(code.co_filename) if code is not None else ""
    return home if home in packages else None


def loops(function: Callable[..., Any]) -> Iterator[str]:
    """Loops of a function's own that catch, wait and go round again."""
    tree = _tree(innermost(function))
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and _repeats(node):
            yield "a loop"
            return


def _repeats(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    handlers = [
        handler
        for statement in loop.body
        if isinstance(statement, ast.Try)
        for handler in statement.handlers
    ]
    if not handlers:
        return False
    sleeps = any(
        isinstance(node, ast.Call) and _called(node).endswith("sleep") for node in ast.walk(loop)
    )
    swallowed = any(not _always_leaves(handler.body) for handler in handlers)
    return sleeps and swallowed


def _called(call: ast.Call) -> str:
    target = call.func
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _always_leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Break)


@functools.lru_cache(maxsize=512)
def _tree(function: Callable[..., Any]) -> ast.AST | None:
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return None
    if len(source) > _SOURCE_LIMIT:
        return None
    try:
        return ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError, RecursionError):
        return None


def clients(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Clients that a function uses and that repeat by themselves: (name, how)."""
    inner: Any = innermost(function)
    owner = None
    if isinstance(inner, MethodType):
        owner, inner = inner.__self__, inner.__func__
    if not isinstance(inner, FunctionType):
        return
    names = [name for name in inner.__code__.co_names if name in inner.__globals__]
    used = [(name, inner.__globals__[name]) for name in dict.fromkeys(names)]
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=False):
        try:
            used.append((name, cell.cell_contents))
        except ValueError:
            continue
    if owner is not None:
        own = getattr(owner, "__dict__", None) or {}
        used += [(name, attribute(owner, name)) for name in inner.__code__.co_names if name in own]
    for name, thing in used:
        how = (
            None
            if isinstance(thing, ModuleType | type | FunctionType)
            else repeats_by_itself(thing)
        )
        if how is not None:
            yield name, how


def repeats_by_itself(client: Any) -> str | None:
    """How a client repeats, where it does: an SDK's `max_retries`, a session's or transport's retries,
    botocore's attempts."""
    found = getattr(client, "max_retries", None)
    if isinstance(found, int) and not isinstance(found, bool) and found > 0:
        return f"max_retries={found}"
    adapters = getattr(client, "adapters", None)
    if isinstance(adapters, dict):
        for adapter in adapters.values():
            total = getattr(getattr(adapter, "max_retries", None), "total", 0)
            if isinstance(total, int) and not isinstance(total, bool) and total > 0:
                return f"max_retries={total}"
    pool = getattr(getattr(client, "_transport", None), "_pool", None)
    retries = getattr(pool, "_retries", 0)
    if isinstance(retries, int) and not isinstance(retries, bool) and retries > 0:
        return f"retries={retries}"
    config = getattr(getattr(client, "meta", None), "config", None)
    asked = getattr(config, "retries", None)
    if isinstance(asked, dict):
        attempts = asked.get("total_max_attempts") or (asked.get("max_attempts", 0) or 0) + 1
        if isinstance(attempts, int) and attempts > 1:
            return f"total_max_attempts={attempts}"
    return None
