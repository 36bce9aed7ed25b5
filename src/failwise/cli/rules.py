"""``failwise rules``: text rules of one's own: drafts from a journal, a check, a person's yes or no."""

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.journals import existing
from failwise.cli.moments import utc
from failwise.cli.terminal import add_common, clean, console, language, print_json, say, table
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.classify.own import Read
    from failwise.classify.suggestions import Suggestion
    from failwise.classify.tables import TextRule

_FINGERPRINT: Final = re.compile(r"fingerprint ([0-9a-f]{16})")

_EPILOG: Final = """\
examples:
  failwise rules suggest --output draft.toml    from the journal: what no rule knew
  failwise rules check draft.toml               ids, patterns, examples; file and line of each fault
  failwise rules accept draft.toml --into rules.toml
  failwise rules reject 1a2b3c4d5e6f7081        this answer of the advisor labels nothing any more
  failwise rules list timeout                   rules with this word, yours first

Rules are used once failwise.toml names their file ([classification] rules = ["rules.toml"]), or
Runtime(rules=["rules.toml"]). check and accept exit with 1 when something is wrong, a line for each
fault. Without --journal: FAILWISE_JOURNAL, else .failwise/journal.db."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    kinds = parser.add_subparsers(dest="what", metavar="list|suggest|check|accept|reject")
    listing = kinds.add_parser("list", help="the rules in force (the default)")
    listing.add_argument("word", nargs="?", metavar="WORD", help="only rules that hold it")
    listing.add_argument("--own", action="store_true", help="only your own")
    suggesting = kinds.add_parser("suggest", help="draft rules from what no rule knew")
    suggesting.add_argument("--output", metavar="FILE", help="write there, not to standard output")
    suggesting.add_argument(
        "--limit", type=int, default=200, metavar="N", help="at most N kinds of failures (200)"
    )
    checking = kinds.add_parser("check", help="say what is wrong with rules files")
    checking.add_argument("files", nargs="+", metavar="FILE")
    accepting = kinds.add_parser("accept", help="take a draft over into a rules file")
    accepting.add_argument("file", metavar="FILE", help="the draft, read and corrected by you")
    accepting.add_argument("--into", default="rules.toml", metavar="FILE", help="(rules.toml)")
    refusing = kinds.add_parser("reject", help="refuse an answer of the advisor")
    refusing.add_argument("fingerprint", metavar="FINGERPRINT", help="or its beginning")
    for nested in (listing, suggesting, checking, accepting, refusing):
        _add_options(nested, nested=True)
    parser.epilog = _EPILOG


def _add_options(parser: argparse.ArgumentParser, *, nested: bool = False) -> None:
    default = argparse.SUPPRESS if nested else None
    parser.add_argument("--journal", metavar="FILE", default=default, help="the journal's file")
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help="where your rules are named (failwise.toml)",
    )
    add_common(parser, nested=nested)


def main(arguments: argparse.Namespace) -> int:
    """List, draft, check, accept or refuse rules."""
    lang = language(arguments.lang)
    match arguments.what:
        case "suggest":
            return _suggest(arguments, lang)
        case "check":
            return _check(arguments, lang)
        case "accept":
            return _accept(arguments, lang)
        case "reject":
            return _reject(arguments, lang)
        case _:
            return _list(arguments, lang)


def _own_files(arguments: argparse.Namespace) -> tuple[Path, ...]:
    """The rules files that the configuration names; none where there is no configuration."""
    from failwise.cli.configuration import NAME, read

    if arguments.config is None and not os.path.exists(NAME):
        return ()
    return read(arguments.config or NAME).rules()


def _list(arguments: argparse.Namespace, lang: Language) -> int:
    from failwise.classify.own import PREFIX, OwnRules
    from failwise.classify.tables import text_rules

    own = OwnRules.load(_own_files(arguments)).rules
    rows = [(f"{PREFIX}{rule.id}", rule) for rule in own]
    if not getattr(arguments, "own", False):
        rows += [(f"text.{rule.id}", rule) for rule in text_rules()]
    word = (getattr(arguments, "word", None) or "").lower()
    rows = [(name, rule) for name, rule in rows if word in _haystack(name, rule)]
    if arguments.json:
        for name, rule in rows:
            print_json(_summary(name, rule))
        return 0
    from rich.text import Text

    columns = ("rule", "code", "strength", "example", "rule_origin")
    shown = table(*(say(lang, column) for column in columns), right=(2,), whole=(0, 1))
    for name, rule in rows:
        shown.add_row(
            Text(name, style="bold" if name.startswith(PREFIX) else ""),
            rule.code,
            str(rule.strength),
            Text(clean(rule.example)[:120]),
            Text(clean(rule.origin)),
        )
    out = console()
    out.print(shown)
    out.print(say(lang, "rules_title", count=len(rows), own=len(own)), style="dim")
    return 0


def _haystack(name: str, rule: "TextRule") -> str:
    return "\n".join((name, rule.code, rule.example, *rule.need)).lower()


def _summary(name: str, rule: "TextRule") -> dict[str, Any]:
    return {
        "rule": name,
        "code": rule.code,
        "strength": rule.strength,
        "effect": rule.effect.value,
        "example": rule.example,
        "counter": rule.counter,
        "origin": rule.origin,
    }


def _suggest(arguments: argparse.Namespace, lang: Language) -> int:
    from failwise.classify.suggestions import render

    if arguments.limit < 1:
        raise UsageError("--limit: write a number of 1 or more")
    journal = existing(arguments.journal)
    found = _suggestions(journal, arguments)
    if arguments.json:
        for one in found:
            print_json(
                {
                    "fingerprint": one.cluster.fingerprint,
                    "count": one.cluster.count,
                    "code": one.cluster.code,
                    "complete": one.complete,
                    "reason": one.reason or None,
                    "toml": one.toml,
                }
            )
        return 0
    ready = sum(one.complete for one in found)
    said = say(lang, "rules_suggested", count=len(found), ready=ready)
    if not found:
        console().print(say(lang, "rules_nothing"))
        return 0
    text = render(found, f"{utc(time.time())} from {Path(journal).name}")
    if arguments.output is None:
        sys.stdout.write(text)
        print(f"failwise: {said}", file=sys.stderr)  # noqa: T201
        return 0
    path = Path(arguments.output)
    if path.exists():
        raise UsageError(f"{path} is there already: name another file, or delete it first")
    _write(path, text)
    console().print(f"{path}: {said}")
    return 0


def _suggestions(journal: str, arguments: argparse.Namespace) -> "list[Suggestion]":
    from failwise.classify.own import OwnRules
    from failwise.classify.suggestions import suggest
    from failwise.journal.read import opened
    from failwise.journal.unknowns import known_messages, unknown_clusters

    own = OwnRules.load(_own_files(arguments))
    with opened(journal) as source:
        clusters = unknown_clusters(source, limit=arguments.limit)
        others = known_messages(source)
    known = [one for one in clusters if any(own.verdict(text, None) for text in one.messages)]
    return suggest([one for one in clusters if one not in known], others)


def _read(file: str) -> "Read":
    from failwise.classify.own import read

    return read(file, tried=True)


def _check(arguments: argparse.Namespace, lang: Language) -> int:
    problems: list[str] = []
    seen: dict[str, str] = {}
    count = 0
    for file in arguments.files:
        try:
            found = _read(file)
        except ConfigurationError as error:
            problems.append(str(error))
            continue
        problems += [str(error) for error in found.problems]
        for rule in found.rules:
            if rule.id in seen:
                problems.append(f"{file}: rule {rule.id!r} stands in {seen[rule.id]} too")
            seen[rule.id] = file
        count += len(found.rules)
    if arguments.json:
        print_json({"files": arguments.files, "rules": count, "problems": problems})
    else:
        out = console()
        for problem in problems:
            out.print(clean(problem), soft_wrap=True)
        if not problems:
            out.print(say(lang, "rules_good", count=count))
    return 1 if problems else 0


def _accept(arguments: argparse.Namespace, lang: Language) -> int:
    """The draft's rules go to the end of a rules file, as they are written; the journal notes it."""
    draft = _read(arguments.file)
    target = Path(arguments.into)
    there = _read(str(target)) if target.exists() else None
    problems = [str(error) for error in draft.problems]
    known = {rule.id for rule in there.rules} if there is not None else set()
    problems += [
        f"{arguments.file}: rule {rule.id!r} stands in {target} already: give it another id"
        for rule in draft.rules
        if rule.id in known
    ]
    if target.exists() and target.resolve() == Path(arguments.file).resolve():
        raise UsageError(f"{target} is the draft itself: name another file with --into")
    if problems:
        for problem in problems:
            console().print(clean(problem), soft_wrap=True)
        return 1
    if not draft.rules:
        raise UsageError(f"{arguments.file} holds no rule: take the marks away before [[rules]]")
    text = Path(arguments.file).read_text("utf-8")
    before = target.read_text("utf-8").rstrip() + "\n\n" if there is not None else ""
    after = before + _rows_of(text) + "\n"
    if len(_parsed(after, target)) != len(known) + len(draft.rules):
        raise UsageError(f"{arguments.file} and {target}: write each rule as a table, [[rules]]")
    _write(target, after)
    noted = _note(arguments, draft)
    if arguments.json:
        print_json({"rules": len(draft.rules), "into": str(target), "advice_accepted": noted})
        return 0
    out = console()
    out.print(say(lang, "rules_accepted", count=len(draft.rules), file=target))
    used = {path.resolve() for path in _own_files(arguments)}
    if target.resolve() not in used:
        out.print(say(lang, "rules_name_file", file=target))
    return 0


def _parsed(text: str, target: Path) -> "tuple[TextRule, ...]":
    """The rules that the file will hold, before it is written."""
    import tomllib

    from failwise.classify.own import parse

    try:
        return parse(tomllib.loads(text), text, str(target)).rules
    except tomllib.TOMLDecodeError:
        return ()


def _rows_of(text: str) -> str:
    """The rules of a draft as they are written, each with the comments right above it."""
    lines = text.splitlines()
    heads = [at for at, line in enumerate(lines) if line.strip() == "[[rules]]"]
    starts = [_above(lines, head) for head in heads]
    ends = [*starts[1:], len(lines)]
    return "\n\n".join(
        "\n".join(lines[start : _last_of(lines, head, end)])
        for start, head, end in zip(starts, heads, ends, strict=True)
    )


def _above(lines: list[str], head: int) -> int:
    """Where the comments right above a line begin."""
    while head and lines[head - 1].startswith("#"):
        head -= 1
    return head


def _last_of(lines: list[str], head: int, end: int) -> int:
    """Where a rule's own lines end: blank lines and comments after them are somebody else's."""
    while end > head and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def _note(arguments: argparse.Namespace, draft: "Read") -> int:
    """Note in the journal, where there is one, that a person accepted these answers."""
    from failwise.journal.advice import AdviceBook
    from failwise.journal.read import opened

    names = [found[1] for rule in draft.rules if (found := _FINGERPRINT.search(rule.origin))]
    if not names:
        return 0
    try:
        journal = existing(arguments.journal)
    except ConfigurationError:
        if arguments.journal is not None:
            raise
        return 0
    with opened(journal) as source:
        book = AdviceBook(source)
        return sum(book.judge(name, accepted=True) is not None for name in names)


def _reject(arguments: argparse.Namespace, lang: Language) -> int:
    from failwise.journal.advice import AdviceBook
    from failwise.journal.read import opened

    given = arguments.fingerprint
    with opened(existing(arguments.journal)) as source:
        book = AdviceBook(source)
        found = [one for one in book.listed() if one.fingerprint.startswith(given)]
        if len(found) != 1 or not given:
            told = (
                f"{len(found)} of them begin so: write more of it" if found else "nothing was asked"
            )
            raise UsageError(f"fingerprint {given!r}: {told}")
        book.judge(found[0].fingerprint, accepted=False)
    if arguments.json:
        print_json({"fingerprint": found[0].fingerprint, "code": found[0].code, "accepted": False})
        return 0
    console().print(
        say(lang, "rules_rejected", code=found[0].code, message=clean(found[0].message))
    )
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror})") from error
