"""Names that tell what stands beside them: ``api_key``, ``Authorization``, 密码."""

import functools
import re
from collections.abc import Mapping
from enum import StrEnum

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\x00-\x7f]+")
_CAMEL_TAIL = re.compile(
    r"(?:password|passwd|passphrase|apikey|accesstoken|authtoken|secretkey|accesskey|privatekey|clientsecret|密码|口令|密钥)$"
)
_LONGEST = 4


class NameClass(StrEnum):
    """What a name says of its value; how careful to be follows from it."""

    NONE = ""
    EXEMPT = "exempt"
    PASSWORD = "password"  # noqa: S105
    SECRET = "secret"  # noqa: S105
    WEAK = "weak"
    QUERY = "query"
    CODE = "code"
    PERSONAL = "personal"
    AUTHORIZATION = "authorization"
    COOKIE = "cookie"


@functools.cache
def _table() -> Mapping[str, NameClass]:
    table: dict[str, NameClass] = {}
    for section, names in _data().items():
        if section in ("query", "words"):
            continue
        table.update((name.replace(" ", ""), NameClass(section)) for name in names)
    table.update((name.replace(" ", ""), NameClass.EXEMPT) for name in _data()["exempt"])
    return table


@functools.cache
def _data() -> Mapping[str, list[str]]:
    _, data = documents.read("failwise.redaction", "names.toml")
    wanted = {member.value for member in NameClass if member} | {"words"}
    if set(data) != wanted:
        raise ConfigurationError(
            f"sections must be {', '.join(sorted(wanted))}", file="names.toml", line=1
        )
    return data


@functools.cache
def ordinary_words() -> frozenset[str]:
    """Words that stand where a secret would, and are none."""
    return frozenset(_data()["words"])


@functools.cache
def chinese_names() -> tuple[str, ...]:
    """The Chinese names of the table, longest first."""
    names = (name for name in _table() if not name.isascii())
    return tuple(sorted(names, key=len, reverse=True))


@functools.cache
def _query_names() -> frozenset[str]:
    return frozenset(name.replace(" ", "") for name in _data()["query"])


@functools.lru_cache(maxsize=4096)
def classify_name(name: str) -> NameClass:
    """What a name says of its value, by its last words, the longest known ending first."""
    parts = [part.lower() for part in _PARTS.findall(name[-80:])]
    if not parts:
        return NameClass.NONE
    table = _table()
    for count in range(min(_LONGEST, len(parts)), 0, -1):
        found = table.get("".join(parts[-count:]))
        if found is not None:
            return found
    if _CAMEL_TAIL.search(parts[-1]):
        return (
            NameClass.PASSWORD
            if "pass" in parts[-1] or parts[-1].endswith(("密码", "口令"))
            else NameClass.SECRET
        )
    return NameClass.NONE


@functools.lru_cache(maxsize=4096)
def is_query_secret(name: str) -> bool:
    """True for a parameter of a URL or form whose value lets somebody in, whatever it looks like."""
    joined = "".join(_PARTS.findall(name[-80:])).lower()
    return joined in _query_names() or classify_name(name) in (
        NameClass.PASSWORD,
        NameClass.SECRET,
        NameClass.WEAK,
    )
