"""``failwise import``: failures that were recorded elsewhere become records of a journal."""

import argparse
import os
import time
from functools import partial
from typing import Final

from failwise.cli.terminal import add_common, console, facts, language, print_json, say
from failwise.vocabulary.errors import UsageError

_FORMATS: Final = ("auto", "openai", "anthropic", "langchain", "langsmith", "otlp", "log")
_KEPT_DAYS: Final = 36_500.0
_EPILOG: Final = """\
examples:
  failwise import conversations.jsonl --journal imported.db && failwise clusters imported.db
  failwise import traces.json --format otlp --journal imported.db
  failwise import app.log --format log --tool billing --journal imported.db

Understood are JSON and JSON lines of OpenAI chat and responses messages, Anthropic messages, LangChain
messages, LangSmith runs, OTLP traces, and logs. Each call is classified as if it had just ended, and
recorded once: the same file twice adds nothing. What a runtime recorded is moved by `failwise journal`.

A journal that a runtime writes to forgets what is older than its retention (30 days): give old records
a file of their own."""


def _note(skipped: list[str], path: str, number: int, why: str) -> None:
    skipped.append(f"{path}:{number}: {why}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="what was recorded")
    parser.add_argument(
        "--format", choices=_FORMATS, default="auto", help="insist on a form (auto)"
    )
    parser.add_argument("--journal", metavar="JOURNAL", help="where to: a path or URL")
    parser.add_argument("--tool", default="", metavar="NAME", help="the tool that a log is of")
    parser.add_argument(
        "--upstream", default="", metavar="NAME", help="who was called, for all of it"
    )
    parser.add_argument(
        "--failures-only", action="store_true", help="no successes: rates cannot be told then"
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Read the files, classify what is in them, record it."""
    from failwise.insight.importing.reading import read_calls
    from failwise.insight.importing.taking import Taken, take_over
    from failwise.journal.journal import Journal

    lang = language(arguments.lang)
    skipped: list[str] = []
    taken: list[tuple[str, Taken]] = []
    # Records keep their own dates: a usual retention would take old ones out again at once.
    journal = Journal(arguments.journal, retention_days=_KEPT_DAYS, retention_rows=2**31)
    try:
        for path in arguments.files:
            if not os.path.isfile(path):
                raise UsageError(f"{path}: there is no such file")
            moment = os.stat(path).st_mtime
            calls = read_calls(
                path,
                arguments.format,
                tool=arguments.tool,
                year=time.gmtime(moment).tm_year,
                skipped=partial(_note, skipped, path),
            )
            taken.append(
                (
                    path,
                    take_over(
                        calls,
                        journal,
                        moment=moment,
                        failures_only=arguments.failures_only,
                        upstream=arguments.upstream,
                    ),
                )
            )
    finally:
        journal.close(30.0)
    if arguments.json:
        print_json(
            {
                "journal": journal.place,
                "files": [{"file": path, **one.to_dict()} for path, one in taken],
                "skipped": skipped[:100],
            }
        )
    else:
        out = console()
        for path, one in taken:
            out.print(say(lang, "import_done", file=path, calls=one.calls, added=one.added,
                          failures=one.failures, known=one.known, unanswered=one.unanswered),
                      style="bold")  # fmt: skip
            out.print(facts((code, count) for code, count in one.codes[:10]))
        for line in skipped[:5]:
            out.print(say(lang, "import_skipped", line=line), style="dim")
        out.print(say(lang, "import_next", journal=journal.place))
    if not any(one.added or one.known for _, one in taken):
        raise UsageError(
            "no tool call with its end was found: `failwise import --help` has the forms"
        )
    return 0
