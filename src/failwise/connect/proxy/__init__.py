"""The MCP proxy: between any MCP host and any MCP servers, every tool call runs through a `Runtime`.

`Proxy` is the whole of it; `settings` reads the file that desktop hosts use; ``failwise mcp`` is the
command. It is built on the plain ``mcp`` package (extra: ``mcp``), imported when the first of its
modules is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.connect.proxy.front import Proxy as Proxy
    from failwise.connect.proxy.settings import ProxySettings as ProxySettings
    from failwise.connect.proxy.settings import ServerSettings as ServerSettings
    from failwise.connect.proxy.settings import ToolSettings as ToolSettings
    from failwise.connect.proxy.settings import read_settings as read_settings

__all__ = ["Proxy", "ProxySettings", "ServerSettings", "ToolSettings", "read_settings"]

_WHERE = dict.fromkeys(__all__, "failwise.connect.proxy.settings") | {
    "Proxy": "failwise.connect.proxy.front"
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'failwise.connect.proxy' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
