"""``failwise effects``: effects that may have happened, and a person's word on them."""

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Final, Literal

from failwise.cli.journals import existing
from failwise.cli.moments import utc
from failwise.cli.terminal import add_common, clean, console, language, print_json, say, table
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.journal.read import OpenEffect

_STATES: Final = ("done", "not_done")
_LIMIT: Final = 100_000

_EPILOG: Final = """\
examples:
  failwise effects
  failwise effects settle 3f9a done

A run that holds an open effect refuses the same call again until somebody says what became of it.
KEY may be shortened as long as it names one effect. Without --journal: FAILWISE_JOURNAL, else
.failwise/journal.db."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    kinds = parser.add_subparsers(dest="what", metavar="list|settle")
    listing = kinds.add_parser("list", help="the open effects (the default)")
    settling = kinds.add_parser("settle", help="say whether one happened")
    settling.add_argument("key", metavar="KEY", help="the effect, or the beginning of its key")
    settling.add_argument("state", choices=_STATES, help="did it happen?")
    for nested in (listing, settling):
        _add_options(nested, nested=True)
    parser.epilog = _EPILOG


def _add_options(parser: argparse.ArgumentParser, *, nested: bool = False) -> None:
    default = argparse.SUPPRESS if nested else None
    parser.add_argument("--journal", metavar="FILE", default=default, help="the journal's file")
    add_common(parser, nested=nested)


def main(arguments: argparse.Namespace) -> int:
    """List open effects, or settle one."""
    lang = language(arguments.lang)
    arguments.journal = existing(arguments.journal)
    return _settle(arguments, lang) if arguments.what == "settle" else _list(arguments, lang)


def _open(journal: str) -> "list[OpenEffect]":
    from failwise.journal.read import open_effects, opened

    with opened(journal) as source:
        return open_effects(source, limit=_LIMIT)


def _list(arguments: argparse.Namespace, lang: Language) -> int:
    effects = _open(arguments.journal)
    if arguments.json:
        for effect in effects:
            print_json({f.name: getattr(effect, f.name) for f in fields(effect)})
        return 0
    from rich.text import Text

    out = console()
    if not effects:
        out.print(say(lang, "effects_none"))
        return 0
    out.print(say(lang, "effects_title"), style="bold")
    columns = ("key", "tool", "run", "call_id", "since", "arguments")
    shown = table(*(say(lang, column) for column in columns))
    for effect in effects:
        shown.add_row(
            effect.key,
            Text(clean(effect.tool)),
            Text(clean(effect.run_id)),
            Text(clean(effect.call_id)),
            utc(effect.claimed_at),
            Text(clean(str(effect.arguments))[:200]),
        )
    out.print(shown)
    out.print(say(lang, "effects_hint"))
    return 0


def _settle(arguments: argparse.Namespace, lang: Language) -> int:
    from failwise.journal.read import settle

    state: Literal["done", "not_done"] = arguments.state
    keys = [effect.key for effect in _open(arguments.journal)]
    fitting = [key for key in keys if key.startswith(arguments.key)]
    if len(fitting) > 1 and arguments.key not in fitting:
        raise UsageError(
            f"{arguments.key} names {len(fitting)} open effects: write more of the key"
        )
    key = arguments.key if arguments.key in fitting or not fitting else fitting[0]
    before = settle(arguments.journal, key, state)
    if arguments.json:
        print_json({"key": key, "state": state, "before": before.state})
        return 0
    sentence = say(
        lang,
        "effects_settled",
        tool=before.tool,
        call_id=before.call_id,
        state=state,
        before=before.state,
    )
    console().print(clean(sentence))
    return 0
