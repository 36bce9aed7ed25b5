"""Drafts of text rules from failures that no rule knew: what a person looks at, completes and accepts.

A draft says nothing of the effect, whatever an advisor may have thought; it is anchored to whole lines
where it can be, matches every message it was made from, and passes the same check as any rules file.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from failwise.classify.fingerprint import template
from failwise.classify.own import parse
from failwise.classify.tables import spelled
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

PATTERN_LIMIT: Final = 160
"""Characters of a message that become a pattern; what follows is free."""
_LITERAL_LIMIT: Final = 60
_EXAMPLE_LIMIT: Final = 300
_GAP: Final = re.compile(r"<[a-z_]{1,12}>(?:\.\.)?|\[[a-z_]{3,20}\]|\*{3,40}")
_NUMBER: Final = "[-+0-9.,:]{1,40}"
_ANYTHING: Final = r"[^\n]{1,120}"
_SPECIAL: Final = re.compile(r"([\\.^$*+?{}\[\]|()])")
_START: Final = r"(?:^|[:：>)\]] ?)"
_END: Final = r"[.!。！ ]{0,3}$"
_EDGES: Final = " \t,.;:!?，。；：！？、-_'\"()（）[]"
_ASCII_WORD: Final = re.compile(r"[a-z0-9]{1,20}")


@record
class Cluster:
    """Failures of one fingerprint: `messages` (redacted, the likeliest example first), what they
    really said where that was kept (`originals`), how often and when last (epoch s), and the code
    that an advisor gave, if one did."""

    fingerprint: str
    messages: tuple[str, ...]
    originals: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    provider: str | None = None
    count: int = 1
    last: float | None = None
    code: str | None = None
    advisor: str | None = None


@record
class Suggestion:
    """A draft rule as TOML. `complete`: only a person's word is missing. Else it stands in comments,
    and `reason` says what else is: a code, or enough text."""

    cluster: Cluster
    toml: str
    complete: bool
    reason: str = ""


def suggest(clusters: Iterable[Cluster], others: Sequence[str] = ()) -> list[Suggestion]:
    """A draft for each cluster, the commonest first. `others`: messages of other failures, among
    which the counter-examples are looked for."""
    ordered = sorted(clusters, key=lambda one: (one.code is None, -one.count, one.fingerprint))
    every = [*others, *(message for one in ordered for message in one.messages[:1])]
    taken: set[str] = set()
    return [_suggestion(cluster, every, taken) for cluster in ordered]


def render(suggestions: Sequence[Suggestion], made: str) -> str:
    """The draft file. `made` says when and from what."""
    lines = [
        f"# Draft rules, made {made}.",
        "# Look at each: is the code right, does the pattern say enough and not too much? Correct or delete it.",
        "# Then: failwise rules check FILE, and name the file in failwise.toml:",
        "#   [classification]",
        '#   rules = ["FILE"]',
        "",
    ]
    for one in suggestions:
        lines += [one.toml, ""]
    return "\n".join(lines)


def _suggestion(cluster: Cluster, others: Sequence[str], taken: set[str]) -> Suggestion:
    example = cluster.messages[0][:_EXAMPLE_LIMIT] if cluster.messages else ""
    texts = [text for text in (*cluster.messages, *cluster.originals) if text]
    identity = _identity(cluster, example, taken)
    reason = ""
    for need, pattern in _patterns(example):
        compiled = re.compile(spelled(pattern), re.MULTILINE)
        if not all(compiled.search(text.lower()) for text in texts):
            continue
        toml = _toml(
            cluster, identity, need, pattern, example, _counter(need, compiled, example, others)
        )
        if cluster.code is None:
            return Suggestion(cluster, _commented(toml), False, "say which code it is")
        try:
            problems = parse(tomllib.loads(toml), toml, "draft", tried=True).problems
            if not problems:
                return Suggestion(cluster, toml, True)
            reason = problems[0].reason
        except (tomllib.TOMLDecodeError, ConfigurationError) as error:
            reason = str(error)
    reason = reason or "its messages have too little text in common for a rule"
    told = [*_about(cluster), f"# No draft: {reason}.", f"# {_basic(example)}"]
    return Suggestion(cluster, "\n".join(told), False, reason)


def _patterns(example: str) -> Iterator[tuple[str, str]]:
    """Required literal and pattern, the narrowest first: whole lines, then the beginning of one,
    then the words alone."""
    gist = template(example).lower()
    body, whole = _body(gist)
    pieces = [piece.strip(_EDGES) for piece in _GAP.split(gist[:PATTERN_LIMIT])]
    literal = max(pieces, key=_weight, default="")[:_LITERAL_LIMIT].strip(_EDGES)
    if _weight(literal) < 4:
        return
    if whole:
        yield literal, f"{_START}{body}{_END}"
    yield literal, f"{_START}{_edged(body)}"
    yield literal, _edged(body)
    if len(literal.split()) >= 3 or _weight(literal) >= 16:
        yield literal, _edged(_escaped(literal))


def _edged(body: str) -> str:
    """With the edges of words, where it begins or ends with one."""
    first, last = body[:1], body[-1:]
    begins = first.isascii() and first.isalnum()
    ends = last.isascii() and last.isalnum()
    return f"{'⟨' if begins else ''}{body}{'⟩' if ends else ''}"


def _body(gist: str) -> tuple[str, bool]:
    """The template as a pattern, and whether all of it is there."""
    parts: list[str] = []
    length, place, whole = 0, 0, True
    for found in [*_GAP.finditer(gist), None]:
        literal = gist[place : found.start() if found else len(gist)]
        if length + len(literal) > PATTERN_LIMIT:
            room = literal[: PATTERN_LIMIT - length]
            literal, whole = room.rpartition(" ")[0] or room, False
        parts.append(_escaped(literal))
        length += len(literal)
        if not whole or found is None:
            break
        parts.append(_NUMBER if found[0].startswith("<n>") else _ANYTHING)
        place = found.end()
    body = "".join(parts)
    return body.strip().rstrip(".!。！").rstrip("\\") if whole else body.rstrip(), whole


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _weight(text: str) -> int:
    """How much a literal says: characters, those of scripts without spaces double."""
    return sum(1 if character.isascii() else 2 for character in text if character.isalnum())


def _counter(need: str, pattern: re.Pattern[str], example: str, others: Sequence[str]) -> str:
    """A text that must not match: of other failures the likest one, else one made of the literal."""
    words = set(_ASCII_WORD.findall(example.lower())) | {*example}
    best, likeness = "", 0.0
    for other in (text[:_EXAMPLE_LIMIT] for text in others[:2_000]):
        if other == example or pattern.search(other.lower()):
            continue
        theirs = set(_ASCII_WORD.findall(other.lower())) | {*other}
        share = len(words & theirs) / max(1, len(words | theirs))
        if share > likeness:
            best, likeness = other, share
    if likeness >= 0.5:
        return best
    page = (
        f"a page about {need} and what to do then" if need.isascii() else f"关于“{need}”的说明页面"
    )
    made = (page, " ".join(reversed(need.split())), need[1:-1])
    return next((text for text in made if text and not pattern.search(text)), best or "all is well")


def _identity(cluster: Cluster, example: str, taken: set[str]) -> str:
    """An id a person recognises: the tool and the first words."""
    tool = "_".join(_ASCII_WORD.findall(cluster.tools[0].lower()))[:30] if cluster.tools else ""
    gist = _GAP.sub(" ", template(example).lower())
    words = "_".join(_ASCII_WORD.findall(gist)[:5])[:40] or cluster.fingerprint[:8]
    name = f"{tool}.{words}" if tool else words
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    taken.add(unique)
    return unique


def _about(cluster: Cluster) -> list[str]:
    """What a person needs to know before saying yes, as comments."""
    import datetime

    seen = f"# seen {cluster.count} times"
    if cluster.last is not None:
        seen += f", last {datetime.datetime.fromtimestamp(cluster.last, datetime.UTC):%Y-%m-%d %H:%M} UTC"
    if cluster.tools:
        seen += f"; tools: {', '.join(name[:60] for name in cluster.tools[:5])}"
    if cluster.provider:
        seen += f"; provider {cluster.provider[:60]}"
    return [_one_line(seen), f"# fingerprint {cluster.fingerprint}"]


def _toml(
    cluster: Cluster, identity: str, need: str, pattern: str, example: str, counter: str
) -> str:
    who = f"advisor {cluster.advisor or ''}".strip() if cluster.code else "the journal"
    rows = {
        "id": _basic(identity),
        "need": f"[{_basic(need)}]",
        "pattern": _literal(pattern),
        "code": _basic(cluster.code or ""),
        "example": _basic(example),
        "counter": _basic(counter),
        "origin": _basic(f"{who}, fingerprint {cluster.fingerprint}"[:200]),
    }
    lines = [f"{name} = {value}" for name, value in rows.items()]
    return "\n".join([*_about(cluster), "[[rules]]", *lines])


def _commented(toml: str) -> str:
    """The draft as comments: it says nothing yet."""
    lines = [line if line.startswith("#") else f"# {line}" for line in toml.splitlines()]
    lines.insert(
        2,
        "# No advisor named it: say which code it is (`failwise codes`), and take the marks away.",
    )
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _basic(text: str) -> str:
    """A TOML basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _literal(text: str) -> str:
    """A TOML literal string where it can be one: backslashes stay readable."""
    plain = text.isprintable() and "'" not in text
    return f"'{text}'" if plain else _basic(text)
