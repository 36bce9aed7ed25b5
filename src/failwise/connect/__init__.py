"""Other people's frameworks. Each module imports its own when it is first used, never before."""

from typing import Any


def __getattr__(name: str) -> Any:
    """A connection by its name, so that ``failwise.connect.httpx.transport()`` is all one writes."""
    import importlib
    import importlib.util

    if name.startswith("_") or importlib.util.find_spec(f"failwise.connect.{name}") is None:
        raise AttributeError(f"module 'failwise.connect' has no attribute {name!r}")
    return importlib.import_module(f"failwise.connect.{name}")
