"""Header values: the scheme word of an Authorization stays, the names of cookies stay."""

import re

from failwise.redaction.checks import is_password, is_placeholder, is_secret

MASK = "****"

# Scheme words: the HTTP Authentication Scheme Registry, and what large APIs use beside it.
_SCHEME = re.compile(
    r"(?P<scheme>bearer|basic|digest|token|negotiate|ntlm|kerberos|apikey|api-key|key|oauth|hawk|mac|dpop|gnap|mutual|vapid|"
    r"privatetoken|scram-sha-\d+|hoba|concealed|aws\d?-[a-z0-9-]+|aws|sharedkey(?:lite)?|sharedaccesssignature|signature|"
    r"hmac(?:-sha-?\d+)?|googlelogin|splunk|bot|ssws|sso-key|geniekey|klaviyo-api-key|zoho-oauthtoken|discogs|"
    r"wechatpay2-[a-z0-9-]+|tc3-hmac-sha256|acs3-[a-z0-9-]+|sdk-hmac-sha256|qbox|qiniu|ups|jwt|psk|user)"
    r"(?P<space>(?:\s|%20|\+){1,3})(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FIRST = re.compile(r"\[[a-z_]{2,30}\]|[^\s,;)}\]<>\\]{1,8000}+")
_COOKIE = re.compile(
    r"(?P<name>[^=;\s,]{1,100}+)(?P<equals>\s?=\s?\"?)(?P<value>[^;\s\"]{1,8000}+)"
)
_ENTRY = re.compile(r"(?P<before>:\s{0,3}[\"'])(?P<value>[^\"']{1,4000}+)")
_ATTRIBUTES = frozenset(
    (
        "path",
        "domain",
        "expires",
        "max-age",
        "samesite",
        "priority",
        "version",
        "comment",
        "secure",
        "httponly",
    )
)


def mask_authorization(value: str, whole: bool = True) -> str | None:
    """``Bearer ****``; the whole value where there is no known scheme; None for prose.

    `whole` says that the value ends where the header's does; else only its first word is taken.
    """
    found = _SCHEME.match(value)
    if found is None:
        return _mask_first(value, whole)
    rest = found["rest"]
    parts = "=" in rest and ("," in rest or '"' in rest or " " in rest.strip())
    if parts or whole:
        tail = "" if whole or parts else rest
        return found["scheme"] + found["space"] + MASK + tail
    first = _FIRST.match(rest)
    if first is None or is_placeholder(first[0]):
        return None
    if not is_password(first[0]) and rest.strip() != first[0]:
        return None
    return found["scheme"] + found["space"] + MASK + rest[first.end() :]


def _mask_first(value: str, whole: bool) -> str | None:
    if whole:
        return MASK if is_password(value) and not value.isspace() else None
    first = _FIRST.match(value)
    if first is None or not is_secret(first[0]):
        return None
    return MASK + value[first.end() :]


def mask_cookies(value: str) -> str | None:
    """``theme=****; sid=****; Path=/``; None where there is no cookie in it."""
    if value.lstrip()[:1] in ("{", "["):
        clean = _ENTRY.sub(lambda match: match["before"] + MASK, value)
        return None if clean == value else clean
    if "=" not in value:
        return MASK if is_secret(value.strip()) else None
    return _COOKIE.sub(_mask_cookie, value)


def _mask_cookie(match: re.Match[str]) -> str:
    if match["name"].lower() in _ATTRIBUTES:
        return match[0]
    return match["name"] + match["equals"] + MASK
