"""A page in an answer: what the caller asked for, and whether the page asks to sign in first."""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

Asked: TypeAlias = Literal["page", "data", "api"]
"""``data``: something else than a page, as promised or asked for; ``api``: its address looks like one."""

_API: Final = re.compile(
    r"(?:^|/)(?:api|rest|graphql|rpc|jsonrpc|odata|v\d{1,2}(?:\.\d{1,2})?)(?:/|$)|\.json$",
    re.IGNORECASE,
)
_API_HOST: Final = re.compile(r"^(?:[a-z0-9-]{1,40}\.){0,3}?api(?:[.-]|$)", re.IGNORECASE)
_LOGIN: Final = re.compile(
    r"(?<![a-z])(?:log-?in|sign-?in|sso|oauth2?|saml|cas|passport|authorize)(?![a-z])",
    re.IGNORECASE,
)
_PASSWORD: Final = re.compile(
    r"<input\b[^<>]{0,400}\btype\s{0,3}=\s{0,3}[\"']?password\b", re.IGNORECASE
)
_SEPARATOR: Final = re.compile(
    r"[|–—·•:：»«‹›_]|(?<=\s)-(?=\s)|(?<=[\u4e00-\u9fff])-|-(?=[\u4e00-\u9fff])"
)
_LOGIN_TITLE: Final = re.compile(
    r"(?:(?!how |why |when |where |what |about |to |cannot |can.t |not |failed )[\w.&'’-]{1,30} ){0,3}"
    r"(?:log[ -]?in|sign[ -]?in|log[ -]?on)(?: (?:page|required|portal|screen|first|(?:to|with|into) [^\n]{1,60}))?"
    r"|(?!.{0,8}(?:如何|怎么|怎样|为何|关于))[\w ]{0,16}(?:登录|登入|登陆|登錄|身份认证|身份验证)(?:页面?|界面|系统|平台|中心|入口)?"
    r"|(?:ログイン|サインイン|로그인|anmelden|anmeldung|iniciar sesión|connexion|se connecter|entrar|вход)",
    re.IGNORECASE,
)
_READING: Final = re.compile(r"<(?:article|code|pre)\b", re.IGNORECASE)
"""What documentation about logins has, and logins have not."""
_SIGN_IN_WORDS: Final = re.compile(
    r"(?<![a-z])(?:log ?-?in|sign ?-?in|log on|authenticat(?:e|ion)|password)(?![a-z])"
    r"|登录|登入|登陆|认证|验证身份|ログイン|サインイン|로그인|anmelden|iniciar sesión|connexion|entrar|вход",
    re.IGNORECASE,
)


def asked_for(promised: str | None, accepts: str | None, url: str | None) -> Asked | None:
    """Did the caller ask for a page, for data, or something of an API? None where nothing tells.

    `promised` is the media type that the tool declares, `accepts` the request's ``Accept``, `url`
    the address that was asked for, before any redirect.
    """
    for kinds in (promised, accepts):
        told = (kinds or "").lower()
        if "html" in told:
            return "page"
        if told and "*/*" not in told:
            return "data"
    try:
        parts = urlsplit(url or "")
        host = parts.hostname or ""
    except ValueError:
        return None
    return "api" if _API.search(parts.path) or _API_HOST.match(host) else None


def leads_to_login(before: str | None, after: str | None) -> bool:
    """A redirect from some page to one whose address says that it signs people in."""
    if not before or not after or before == after:
        return False
    try:
        old, new = urlsplit(before), urlsplit(after)
    except ValueError:
        return False
    return bool(
        _LOGIN.search(f"{new.hostname or ''}{new.path}")
        and not _LOGIN.search(f"{old.hostname or ''}{old.path}")
    )


def is_login_address(url: str | None) -> bool:
    """An address of a page that signs people in: who asks for it gets what was wanted."""
    try:
        parts = urlsplit(url or "")
        return _LOGIN.search(f"{parts.hostname or ''}{parts.path}") is not None
    except ValueError:
        return False


def is_login(title: str | None, text: str) -> bool:
    """A page that is nothing but a login: its title says so, and it has a password to fill in. A shop
    with a box to sign in beside its wares is none, nor is an article about logins."""
    return (
        title is not None
        and any(_LOGIN_TITLE.fullmatch(one.strip()) for one in _SEPARATOR.split(title[:200]))
        and _PASSWORD.search(text) is not None
        and _READING.search(text) is None
    )


def asks_to_sign_in(title: str | None, text: str) -> bool:
    """A page with a password to fill in, that says so: a login, not an article about logins."""
    return bool(
        _PASSWORD.search(text)
        and (_SIGN_IN_WORDS.search(title or "") or _SIGN_IN_WORDS.search(text))
    )


def first_address(history: object) -> str | None:
    """The address of the first request of a chain of redirects, as clients keep it (``history``)."""
    if isinstance(history, (list, tuple)) and history:
        url = getattr(history[0], "url", None)
        return str(url) if url is not None else None
    return None


def header(headers: object, name: str) -> str | None:
    """One header of a request, whatever kind of mapping its client has."""
    try:
        found = (
            headers.get(name) if isinstance(headers, Mapping) or hasattr(headers, "get") else None
        )
    except Exception:
        return None
    return found if isinstance(found, str) else None
