"""``failwise report``: what a journal's records say."""

import argparse
import time
from typing import Final

from failwise.cli.journals import existing
from failwise.cli.moments import epoch
from failwise.cli.terminal import add_common, console, language, print_json

_BY: Final = ("tool", "hour", "day", "category", "code", "provider")
_EPILOG: Final = """\
examples:
  failwise report
  failwise report --since 24h --by hour
  failwise report .failwise/journal.db --since 2026-11-01 --until 2026-12-01 --json

Without JOURNAL: FAILWISE_JOURNAL, else .failwise/journal.db. docs/metrics.md has every formula."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("journal", nargs="?", metavar="JOURNAL", help="the journal's file")
    parser.add_argument("--since", metavar="WHEN", help="24h, 7d, or an ISO moment (included)")
    parser.add_argument("--until", metavar="WHEN", help="likewise (not included)")
    parser.add_argument("--by", choices=_BY, help="only this breakdown")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Print the report."""
    from failwise.insight.report import report

    now = time.time()
    since, until = (
        None if text is None else epoch(text, option=option, now=now)
        for option, text in (("--since", arguments.since), ("--until", arguments.until))
    )
    found = report(existing(arguments.journal), since=since, until=until, by=arguments.by, now=now)
    if arguments.json:
        print_json(found.to_dict())
        return 0
    from failwise.insight.render import render

    render(found, console(), lang=language(arguments.lang))
    return 0
