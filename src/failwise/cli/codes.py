"""``failwise codes``: the registry, in either language."""

import argparse
import difflib
from typing import Any

from failwise.cli.terminal import add_common, console, language, named, print_json, say, table
from failwise.vocabulary.codes import Code, registry
from failwise.vocabulary.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which", nargs="?", metavar="CODE|CATEGORY", help="only this one, such as network.dns"
    )
    add_common(parser, json_help="print one JSON object a code, both languages")


def main(arguments: argparse.Namespace) -> int:
    """Print the codes."""
    codes = _chosen(arguments.which)
    if arguments.json:
        for code in codes:
            print_json(_data(code))
        return 0
    from rich.text import Text

    lang = language(arguments.lang)
    columns = ("code", "transient", "fix_by", "meaning", "remedy")
    shown = table(*(say(lang, column) for column in columns))
    for code in codes:
        shown.add_row(
            Text(code.name, style="strike" if code.deprecated else "bold"),
            say(lang, "yes" if code.transient else "no"),
            named(lang, "fix_by", code.fix_by.value),
            code.meaning[lang],
            code.remedy[lang],
        )
    out = console()
    out.print(shown)
    out.print(say(lang, "codes_title", count=len(codes)), style="dim")
    return 0


def _chosen(which: str | None) -> list[Code]:
    known = registry()
    if which is None:
        return list(known.values())
    found = [code for code in known.values() if which in (code.name, code.category.value)]
    if not found:
        names = [*known, *{code.category.value for code in known.values()}]
        near = difflib.get_close_matches(which, names, 3)
        told = f"did you mean {' or '.join(near)}?" if near else "failwise codes lists them all"
        raise UsageError(f"there is no code {which!r}: {told}")
    return found


def _data(code: Code) -> dict[str, Any]:
    return {
        "code": code.name,
        "category": code.category.value,
        "transient": code.transient,
        "fix_by": code.fix_by.value,
        "meaning": dict(code.meaning),
        "remedy": dict(code.remedy),
        "deprecated": code.deprecated,
    }
