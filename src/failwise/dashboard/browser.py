"""What a request says of the browser it came from: where the dashboard is for it, in which language and
look, and the cookies that remember them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from failwise.vocabulary.result import Language

YEAR: Final = 365 * 86_400


def base(request: "Request") -> str:
    """The path that this is mounted below, or a proxy serves it under."""
    root: str = request.scope.get("root_path", "").rstrip("/")
    return root


def inner(request: "Request") -> str:
    """The path of a request inside the dashboard."""
    return request.url.path.removeprefix(base(request)) or "/"


def inside(path: str | None) -> str:
    """A path of this dashboard: nothing that leads elsewhere."""
    parts = urlsplit(path or "/")
    odd = parts.scheme or parts.netloc or not (path or "/").startswith("/") or "\\" in (path or "")
    if odd or (path or "").startswith("//"):
        return "/"
    return path or "/"


def remember(
    answer: "Response", request: "Request", name: str, value: str, seconds: int | None = None
) -> None:
    """Set a cookie that no script can read and that no other site can have sent along; for `seconds`,
    None for as long as the browser is open."""
    answer.set_cookie(
        name,
        value,
        max_age=seconds,
        path=base(request) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def language(request: "Request", parameters: Mapping[str, str]) -> "Language":
    """By the address, then the cookie, then what the browser prefers."""
    told = parameters.get("lang") or request.cookies.get("failwise_lang", "")
    if told not in ("en", "zh"):
        wanted = request.headers.get("accept-language", "")
        told = wanted.strip().partition(",")[0].partition("-")[0].lower()
    return "zh" if told == "zh" else "en"


def theme(request: "Request", parameters: Mapping[str, str]) -> str:
    """``light``, ``dark``, or ``auto`` where nothing was chosen."""
    told = parameters.get("theme") or request.cookies.get("failwise_theme", "")
    return told if told in ("light", "dark") else "auto"
