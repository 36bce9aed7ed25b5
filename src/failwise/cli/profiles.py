"""``failwise profiles``: the provider profiles there are, one of them in full, a check of one's own."""

import argparse
import difflib
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.terminal import (
    add_common,
    clean,
    console,
    facts,
    language,
    print_json,
    say,
    table,
)
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.profiles import Profile, Profiles

_EPILOG: Final = """\
examples:
  failwise profiles
  failwise profiles show stripe
  failwise profiles check profiles/
  failwise profiles test stripe answer.json
  failwise profiles new my_api answers.jsonl > my_api.yaml

An answer is {"status", "headers", "body", "method", "url"}; a file holds one, a list, or one a line.
check exits with 1 when something is wrong, a line for each fault."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    kinds = parser.add_subparsers(dest="what", metavar="list|show|check|test|new")
    listing = kinds.add_parser("list", help="all of them (the default)")
    showing = kinds.add_parser("show", help="one of them, with its table of codes")
    showing.add_argument("which", metavar="ID")
    checking = kinds.add_parser("check", help="say what is wrong with a file, or a folder of them")
    checking.add_argument("which", metavar="PATH")
    testing = kinds.add_parser("test", help="read recorded answers by one of them")
    testing.add_argument("which", metavar="ID")
    testing.add_argument("answers", metavar="FILE|-")
    making = kinds.add_parser("new", help="begin one from recorded answers, as YAML to complete")
    making.add_argument("which", metavar="ID")
    making.add_argument("answers", metavar="FILE|-")
    for nested in (listing, showing, checking, testing, making):
        _add_options(nested, nested=True)
    parser.epilog = _EPILOG


def _add_options(parser: argparse.ArgumentParser, *, nested: bool = False) -> None:
    parser.add_argument(
        "--add",
        action="append",
        metavar="PATH",
        default=argparse.SUPPRESS if nested else None,
        help="a file or folder of your own",
    )
    add_common(parser, nested=nested)


def main(arguments: argparse.Namespace) -> int:
    """List, show or check profiles."""
    lang = language(arguments.lang)
    if arguments.what == "check":
        return _check(arguments, lang)
    if arguments.what == "new":
        return _new(arguments)
    from failwise.profiles import Profiles

    library = Profiles()
    for path in arguments.add or ():
        library.add(path)
    if arguments.what == "show":
        return _show(library, arguments, lang)
    if arguments.what == "test":
        return _test(library, arguments, lang)
    return _list(library, arguments, lang)


def _check(arguments: argparse.Namespace, lang: Language) -> int:
    from failwise.profiles import check

    path = arguments.which
    problems = check(path)
    if arguments.json:
        print_json({"path": path, "problems": problems})
    else:
        out = console()
        for problem in problems:
            out.print(clean(problem), soft_wrap=True)
        if not problems:
            out.print(say(lang, "profile_good", path=path))
    return 1 if problems else 0


def _list(library: "Profiles", arguments: argparse.Namespace, lang: Language) -> int:
    profiles = [found for name in library.names() if (found := library.get(name)) is not None]
    if arguments.json:
        for profile in profiles:
            print_json(_summary(profile))
        return 0
    from rich.text import Text

    columns = ("name", "kind", "codes_count", "error_in", "idempotency")
    shown = table("id", *(say(lang, column) for column in columns), right=(3,))
    for profile in profiles:
        shown.add_row(
            Text(profile.id, style="bold"),
            Text(profile.name),
            profile.kind,
            str(len(profile.entries)),
            profile.error_in,
            _idempotency(profile),
        )
    out = console()
    out.print(shown)
    out.print(say(lang, "profiles_title", count=len(profiles)), style="dim")
    return 0


def _idempotency(profile: "Profile") -> str:
    known = profile.idempotency
    return f"{known.support} {known.name}" if known.name else known.support


def _summary(profile: "Profile") -> dict[str, Any]:
    return {
        "id": profile.id,
        "name": profile.name,
        "kind": profile.kind,
        "error_in": profile.error_in,
        "codes": len(profile.entries),
        "idempotency": _idempotency(profile),
        "own": profile.own,
    }


def _show(library: "Profiles", arguments: argparse.Namespace, lang: Language) -> int:
    name = arguments.which
    profile = library.get(name)
    if profile is None:
        near = difflib.get_close_matches(name, library.names(), 3)
        told = f"did you mean {' or '.join(near)}?" if near else "failwise profiles lists them"
        raise UsageError(f"there is no profile {name!r}: {told}")
    entries = sorted(profile.entries, key=lambda entry: (entry.code, entry.as_code))
    if arguments.json:
        entries_data = [
            {
                "code": entry.code,
                "as": entry.as_code,
                "http": entry.http,
                "transient": entry.transient,
                "action": entry.action.value,
                "effect": entry.effect.value,
                "en": entry.en,
                "zh": entry.zh,
            }
            for entry in entries
        ]
        print_json({**_summary(profile), "table": entries_data})
        return 0
    from rich.text import Text

    out = console()
    out.print(
        facts(
            (
                ("id", profile.id),
                (say(lang, "name"), profile.name),
                (say(lang, "kind"), profile.kind),
                (say(lang, "error_in"), profile.error_in),
                (say(lang, "idempotency"), _idempotency(profile)),
            )
        )
    )
    columns = ("meant_code", "status", "transient", "action", "effect", "meaning")
    rows = table(say(lang, "code"), *(say(lang, column) for column in columns))
    for entry in entries:
        rows.add_row(
            Text(entry.code),
            entry.as_code,
            str(entry.http) if entry.http else "",
            say(lang, "yes" if entry.transient else "no"),
            entry.action.value,
            entry.effect.value,
            Text(entry.zh if lang == "zh" else entry.en),
        )
    out.print(rows)
    return 0


def _answers(path: str) -> list[dict[str, Any]]:
    """The recorded answers of a file: one object, a list of them, or one a line."""
    import json

    from failwise.cli.inputs import read_text

    text = read_text(path)
    try:
        data = json.loads(text)
    except ValueError:
        try:
            data = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise UsageError(f"{path}: not JSON ({error})") from error
    found = data if isinstance(data, list) else [data]
    if not found or not all(isinstance(one, dict) for one in found):
        raise UsageError(f'{path}: write answers as {{"status", "headers", "body", "url"}}')
    return found


def _test(library: "Profiles", arguments: argparse.Namespace, lang: Language) -> int:
    """What the profile reads in each answer, and the verdict that follows."""
    from failwise.classify import Classifier
    from failwise.classify.drafts import evidence_of_answer
    from failwise.cli import verdict

    classifier = Classifier(library)
    out = console()
    for number, answer in enumerate(_answers(arguments.answers), 1):
        failure = classifier.classify(evidence_of_answer(answer), profile=arguments.which)
        read = failure is not None and failure.provider == arguments.which
        if arguments.json:
            print_json(
                {"answer": number, "read": read, "failure": failure.to_dict() if failure else None}
            )
            continue
        if failure is None:
            out.print(say(lang, "no_failure"))
            continue
        out.print(facts(verdict.rows(failure, lang)))
        if not read:
            out.print(say(lang, "not_in_table", profile=arguments.which), style="bold")
    return 0


def _new(arguments: argparse.Namespace) -> int:
    """A draft on standard output. Raises `UsageError` where the answers hold no code."""
    import sys

    import yaml

    from failwise.classify.drafts import draft

    data = draft(arguments.which, _answers(arguments.answers))
    if arguments.json:
        print_json(data)
        return 0
    sys.stdout.write(
        "# A draft from recorded answers: correct each row by the provider's page, then\n"
    )
    sys.stdout.write("# take its `confirmed: false` away.\n")
    sys.stdout.write(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=160))
    return 0
