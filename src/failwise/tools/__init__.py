"""Tools: typed Python functions and HTTP endpoints as `ToolSpec`. Names are imported at first use."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.tools.answer import HttpAnswer as HttpAnswer
    from failwise.tools.answer import HttpRequest as HttpRequest
    from failwise.tools.config import tools_from_config as tools_from_config
    from failwise.tools.declarations import checked as checked
    from failwise.tools.function import function_tool as function_tool
    from failwise.tools.http import HttpTool as HttpTool
    from failwise.tools.send import close_clients as close_clients

_WHERE = {
    "HttpAnswer": "answer",
    "HttpRequest": "answer",
    "HttpTool": "http",
    "checked": "declarations",
    "close_clients": "send",
    "function_tool": "function",
    "tools_from_config": "config",
}

__all__ = [
    "HttpAnswer",
    "HttpRequest",
    "HttpTool",
    "checked",
    "close_clients",
    "function_tool",
    "tools_from_config",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found
