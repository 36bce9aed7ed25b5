"""The dashboard: what fails, why, and what was done about it, as pages on a journal.

`app` gives an ASGI application for any server, or to mount into one of your own. ``failwise dashboard``
serves it. It needs the extra ``dashboard`` (``starlette``, ``jinja2``, ``uvicorn``).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.dashboard.application import app as app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'failwise.dashboard' has no attribute {name!r}")
    from failwise.dashboard import application

    return getattr(application, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
