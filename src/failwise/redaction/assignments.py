"""Secrets that only the name beside them tells: ``api_key = "..."``, ``密码：...``, ``<token>...</token>``."""

import functools
import re

from failwise.redaction.checks import (
    is_password,
    is_placeholder,
    is_random,
    is_secret,
    is_strictly_random,
)
from failwise.redaction.headers import mask_authorization, mask_cookies
from failwise.redaction.names import NameClass, chinese_names, classify_name, is_query_secret

_LONGEST_VALUE = 8000
_HEAD = 256
_SEPARATOR = r"""
    (?P<quote>\\{0,7}["'`]?)\]?[ \t]{0,8}
    (?P<separator>
        =>|:=
        |[:=](?![:=])(?:[ ]{0,3}(?:str|string|String|bytes|Optional\[str\])[ ]{0,3}=(?!=))?
        |[：＝]|%3[aAdD]
        |(?<=["'])[ ]{0,3},[ ]{0,3}["']value["'][ ]{0,3}:
        |(?<=["'])[ ]{0,3},[ ]{0,3}(?=b?["'])
        |(?<=")\r?\n\r?\n
    )[ \t]{0,8}
"""
_ELEMENT = re.compile(
    r"<(?P<name>[A-Za-z][\w:.-]{0,63}+)(?:\s[^<>]{0,200}+)?>\s{0,3}(?:<!\[CDATA\[)?(?P<value>[^<\]]{1,4000}+)(?=<|\]\])",
    re.ASCII,
)
_OPTION = re.compile(
    r"(?<![\w-])--?(?P<name>[A-Za-z][\w-]{1,60}+)[ \t]{1,3}(?P<open>[\"']?)(?P<value>[^\s\"'-][^\s\"']{0,4000}+)",
    re.ASCII,
)
_OPEN = re.compile(r"b?(\\{0,7}[\"'`])")
_INSIDE = {
    '"': re.compile(r'(?:[^"\\]|\\.){0,8000}+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.){0,8000}+", re.DOTALL),
    "`": re.compile(r"[^`]{0,8000}+"),
}
_BARE = re.compile(r"[^\s\"'`<>&,;|)}\]\\，；。、]{1,8000}+")
_QUERY_VALUE = re.compile(r"[^\s\"'`<>&#?;,)\]}\\]{1,8000}+")
_LINE = re.compile(r"""(?:=\\{0,7}"[^"\r\n\\]{0,2000}+\\{0,7}"|[^\r\n"'`\\]){1,8000}+""")
_NEXT_NAME = re.compile(r"[\w$.-]{1,64}\]?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}\Z", re.ASCII)
"""A name with its separator at the end of what was read: the quoted value behind it is its own."""
_LOOSE = ("key", "st", "auth", "session", "upn", "ticket")
_NUMBER = re.compile(r"[\d +().xX*/-]{7,40}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


# Every word is taken whole, with a separator or without: so no place of the text is looked at twice.
_ASCII = re.compile(
    rf"(?P<name>[A-Za-z0-9_$-][A-Za-z0-9_.$\[-]{{0,127}}+)(?:{_SEPARATOR})?", re.VERBOSE
)


@functools.cache
def _chinese() -> re.Pattern[str]:
    names = "|".join(map(re.escape, chinese_names()))
    return re.compile(rf"(?P<name>{names})(?:{_SEPARATOR}|(?P<said>是|为)[ ]?)", re.VERBOSE)


def redact_assignments(text: str) -> str:
    """The text with the values of telling names replaced; linear in the text."""
    text = _redact_pairs(_ASCII, text)
    if not text.isascii():
        text = _redact_pairs(_chinese(), text)
    if "</" in text:
        text = _ELEMENT.sub(_replace_element, text)
    if " -" in text or text.startswith("-"):
        text = _OPTION.sub(_replace_option, text)
    return text


def _redact_pairs(pattern: re.Pattern[str], text: str) -> str:
    pieces: list[str] = []
    done = 0
    for match in pattern.finditer(text):
        if match.lastgroup == "name" or match.start() < done:
            continue
        name, start = match["name"], match.start()
        if name[:2] in ("3F", "3f", "26", "3B", "3b") and text[start - 1 : start] == "%":
            name, in_query = name[2:], True
        else:
            in_query = text[start - 1 : start] in ("?", "&", ";", "#") and start > 0
        kind = classify_name(name)
        if kind is NameClass.NONE and not (in_query or is_query_secret(name)):
            continue
        separator = match["separator"] or ""
        if "," in separator and not _is_pair(name, kind, separator):
            continue
        found = _value(text, match.end(), name, kind, in_query)
        if found is not None:
            begin, end, mask = found
            pieces += (text[done:begin], mask)
            done = end
    if not pieces:
        return text
    pieces.append(text[done:])
    return "".join(pieces)


def _is_pair(name: str, kind: NameClass, separator: str) -> bool:
    """A comma stands between name and value only in lists of headers and ``{"name", "value"}``."""
    if "value" in separator:
        return True
    return kind in (NameClass.AUTHORIZATION, NameClass.COOKIE) or (
        kind is NameClass.SECRET and "-" in name
    )


def _value(
    text: str, start: int, name: str, kind: NameClass, in_query: bool
) -> tuple[int, int, str] | None:
    """Where the value stands and what takes its place; None where it is to stay."""
    opened = _OPEN.match(text, start)
    if opened:
        begin, closer = opened.end(), opened[1]
        if len(closer) == 1:
            inside = _INSIDE[closer].match(text, begin)
            end = inside.end() if inside else begin
        else:
            end = text.find(closer, begin, begin + _LONGEST_VALUE)
            if end < 0:
                bare = _BARE.match(text, begin)
                end = bare.end() if bare else begin
        value = text[begin:end]
    else:
        begin = start
        if kind in (NameClass.AUTHORIZATION, NameClass.COOKIE):
            pattern = _LINE
        else:
            pattern = _QUERY_VALUE if in_query else _BARE
        # Most are turned down: the beginning decides, so that a long run is not read at every "=".
        bare = pattern.match(text, begin, begin + _HEAD)
        if bare is None or _mask(bare[0], name, kind, in_query, False) is None:
            after = bare is not None and text[bare.end() : bare.end() + 1] == "&"
            if not after:
                return None
        bare = pattern.match(text, begin)
        if bare is None:
            return None
        end, value = bare.end(), bare[0]
        if pattern is _LINE and (swallowed := _NEXT_NAME.search(value[-100:])):
            end, value = end - len(swallowed[0]), value[: -len(swallowed[0])]
        in_query = in_query or text[end : end + 1] == "&"
    if not value:
        return None
    mask = _mask(value, name, kind, in_query and not opened, bool(opened))
    return None if mask is None or mask == value else (begin, end, mask)


def _mask(value: str, name: str, kind: NameClass, in_query: bool, quoted: bool) -> str | None:
    """What stands in the place of a value beside that name; None where it stays."""
    if kind is NameClass.AUTHORIZATION:
        return mask_authorization(value, quoted)
    if kind is NameClass.COOKIE:
        return mask_cookies(value)
    if in_query and is_query_secret(name):
        loose = name.lower() in _LOOSE
        if is_placeholder(value) or (
            loose and len(value) < 16 and not any(map(str.isdigit, value))
        ):
            return None
        return "****"
    return f"[{mask_kind(kind)}]" if is_telling(value, name, kind, quoted) else None


def mask_kind(kind: NameClass) -> str:
    """The word that stands in the place of a value beside a name of that class."""
    return "secret" if kind in (NameClass.SECRET, NameClass.WEAK) else kind.value


def is_telling(value: str, name: str, kind: NameClass, quoted: bool = True) -> bool:
    """True when a value beside a name of that class is to go."""
    value = value[:_HEAD]
    match kind:
        case NameClass.PASSWORD:
            short_number = len(value) < 4 and value.isdigit() and not quoted
            return is_password(value) and not short_number
        case NameClass.SECRET:
            return is_secret(value)
        case NameClass.WEAK:
            if name.lower() == "key":
                return is_strictly_random(value)
            bare = name.isalpha() and (name.islower() or name.isupper())
            if bare and _UUID.fullmatch(value):
                return False
            return is_random(value)
        case NameClass.CODE:
            return value.isdigit() and 3 <= len(value) <= 10
        case NameClass.PERSONAL:
            return bool(_NUMBER.fullmatch(value)) and sum(map(str.isdigit, value)) >= 10
        case _:
            return False


def _replace_element(match: re.Match[str]) -> str:
    name, value = match["name"].rpartition(":")[2], match["value"].strip()
    kind = classify_name(name)
    known = kind in (NameClass.NONE, NameClass.EXEMPT) and not is_query_secret(name)
    telling = is_telling(value, name, kind) or (is_query_secret(name) and is_random(value))
    if known or not telling:
        return match[0]
    return match[0][: match.start("value") - match.start()] + f"[{mask_kind(kind) or 'secret'}]"


def _replace_option(match: re.Match[str]) -> str:
    kind = classify_name(match["name"])
    if kind in (NameClass.NONE, NameClass.EXEMPT) or not is_telling(
        match["value"], match["name"], kind, False
    ):
        return match[0]
    return match[0][: match.start("value") - match.start()] + f"[{mask_kind(kind)}]"
