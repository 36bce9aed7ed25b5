"""One spelling for rules and texts: without accents, in simplified characters (``rules/folding.toml``).

People and programs write ``sesion expirada`` and ``sesión expirada``, 餘額不足 and 余额不足. Every letter
is replaced by one letter and every word by one as long, so places in a text stay what they are.
"""

import functools
import re
from typing import Final

from failwise.classify.tables import read_toml
from failwise.vocabulary.errors import ConfigurationError

_FILE: Final = "folding.toml"


def fold(lowered: str) -> str:
    """A text, given in lower case, in the one spelling; most texts are in it already."""
    if lowered.isascii():
        return lowered
    letters, table, words, spoken = _table()
    if letters.search(lowered) is None:
        return lowered
    return words.sub(lambda found: spoken[found.group()], lowered.translate(table))


@functools.cache
def _table() -> tuple[re.Pattern[str], dict[int, str], re.Pattern[str], dict[str, str]]:
    _, data = read_toml(_FILE)
    table: dict[int, str] = {}
    for pair in (*data["accents"], *data["traditional"].split()):
        if len(pair) != 2 or not pair[1]:
            raise ConfigurationError(f"{pair!r} is not a pair of characters", file=_FILE)
        if pair[0] != pair[1]:
            table[ord(pair[0])] = pair[1]
    spoken = dict(data["words"])
    for word, told in spoken.items():
        if len(word) != len(told):
            raise ConfigurationError(f"{word!r} is not as long as {told!r}", file=_FILE)
    words = "|".join(map(re.escape, sorted(spoken, key=len, reverse=True)))
    letters = f"[{''.join(map(chr, table))}]|{words}"
    return re.compile(letters), table, re.compile(words), spoken
