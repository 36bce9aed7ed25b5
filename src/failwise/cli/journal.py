"""``failwise journal``: look at a journal, move, export, import, prune and check it."""

import argparse
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from failwise.cli.journals import existing
from failwise.cli.moments import epoch, utc
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

if TYPE_CHECKING:
    from failwise.journal.archive import Format
    from failwise.journal.reader import Filter
    from failwise.journal.transfer import Progress

_FORMATS: Final = ("jsonl", "parquet", "bulk")
_SHOWN: Final = 5
_EPILOG: Final = """\
examples:
  failwise journal info
  failwise journal move .failwise/journal.db postgresql://me@host/db
  failwise journal export --since 7d --failures --output week.jsonl
  failwise journal export --format bulk | curl -sH 'Content-Type: application/x-ndjson' \\
      --data-binary @- http://localhost:9200/_bulk
  failwise journal import week.jsonl --journal other.db
  failwise journal prune --days 14
  failwise journal check

A journal is a path or a URL; without one FAILWISE_JOURNAL, else .failwise/journal.db. Exit code 1: check
found something, or import could not read a part."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    kinds = parser.add_subparsers(dest="what", metavar="info|move|export|import|prune|check")
    kinds.required = True
    info = kinds.add_parser("info", help="what it holds")
    move = kinds.add_parser("move", help="copy all of it to another place, of any engine")
    move.add_argument("source", metavar="FROM", help="its path or URL")
    move.add_argument(
        "target", metavar="TO", help="a place of its own; a copy that broke off goes on"
    )
    move.add_argument("--claims", metavar="PLACE", help="where TO keeps claims, beside ClickHouse")
    move.add_argument("--claims-from", metavar="PLACE", help="where FROM keeps them, likewise")
    move.add_argument("--raw", action="store_true", help="the raw answers too")
    export = kinds.add_parser("export", help="its calls as JSON lines, Parquet or bulk lines")
    export.add_argument("--format", choices=_FORMATS, help="by the name of --output, else jsonl")
    export.add_argument("--output", metavar="FILE", help="else standard output")
    export.add_argument("--index", default="failwise-calls", help="of bulk lines (failwise-calls)")
    _add_filter(export)
    bring = kinds.add_parser("import", help="take over calls that were exported")
    bring.add_argument("files", nargs="+", metavar="FILE", help=".jsonl or .parquet")
    prune = kinds.add_parser("prune", help="remove old calls now")
    prune.add_argument("--days", type=float, help="keep calls of so many days")
    prune.add_argument("--rows", type=int, help="keep so many calls, the newest")
    prune.add_argument("--vacuum", action="store_true", help="give the space back (SQLite)")
    check = kinds.add_parser("check", help="is it whole, and do its counts agree with its calls?")
    for one in (info, export, prune, check):
        one.add_argument("journal", nargs="?", metavar="JOURNAL", help="its path or URL")
    bring.add_argument("--journal", metavar="JOURNAL", help="where to: a path or URL")
    for one in kinds.choices.values():
        add_common(one, nested=True)
    parser.epilog = _EPILOG


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", metavar="WHEN", help="24h, 7d, or an ISO moment (included)")
    parser.add_argument("--until", metavar="WHEN", help="likewise (not included)")
    parser.add_argument("--tool", help="only calls of this tool")
    parser.add_argument("--code", help="only calls that ended with this code")
    parser.add_argument("--failures", action="store_true", help="only calls that failed")


def main(arguments: argparse.Namespace) -> int:
    """Do what was asked for."""
    doing = {
        "info": _info,
        "move": _move,
        "export": _export,
        "import": _import,
        "prune": _prune,
        "check": _check,
    }[arguments.what]
    return doing(arguments)


def _info(arguments: argparse.Namespace) -> int:
    from failwise.journal.checking import info
    from failwise.journal.read import File

    source = File(existing(arguments.journal))
    try:
        found = info(source, time.time())
    finally:
        source.close()
    if arguments.json:
        print_json({"schema": 1, **found})
        return 0
    lang, out = language(arguments.lang), console()
    size = found["bytes"]
    out.print(
        facts(
            (
                (say(lang, "journal_place"), found["place"]),
                (say(lang, "journal_engine"), found["engine"]),
                (say(lang, "journal_oldest"), _moment(found["oldest"])),
                (say(lang, "journal_newest"), _moment(found["newest"])),
                (say(lang, "journal_size"), None if size is None else f"{size / 1e6:,.1f} MB"),
            )
        )
    )
    shown = table(say(lang, "journal_table"), say(lang, "journal_rows"), right=(1,))
    for name, rows in found["rows"].items():
        shown.add_row(name, say(lang, "journal_hidden") if rows is None else f"{rows:,}")
    out.print(shown)
    rows, counted, effects = found["rows"]["calls"], found["calls_counted"], found["open_effects"]
    out.print(say(lang, "journal_info", rows=rows, counted=counted, effects=effects))
    return 0


def _moment(moment: float | None) -> str | None:
    return None if moment is None else utc(moment)


def _move(arguments: argparse.Namespace) -> int:
    from failwise.journal.place import locate
    from failwise.journal.read import File
    from failwise.journal.transfer import copy

    target = locate(arguments.target)
    if target.address == locate(arguments.source).address:
        raise UsageError("a journal is moved to another place than its own")
    source = File(existing(arguments.source), arguments.claims_from)
    try:
        with _progress(arguments, "move") as progress:
            copied = copy(
                source,
                arguments.target,
                claims=arguments.claims,
                raw=arguments.raw,
                now=time.time(),
                progress=progress,
            )
    finally:
        source.close()
    found = {field.name: getattr(copied, field.name) for field in fields(copied)}
    if arguments.json:
        print_json({"schema": 1, "place": target.shown, **found})
    else:
        console().print(
            say(language(arguments.lang), "journal_copied", place=target.shown, **found)
        )
    return 1 if copied.failed else 0


def _export(arguments: argparse.Namespace) -> int:
    from failwise.journal.archive import lines, write
    from failwise.journal.reader import open_reader

    form = _format(arguments.format, arguments.output)
    now = time.time()
    since, until = (
        None if text is None else epoch(text, option=option, now=now)
        for option, text in (("--since", arguments.since), ("--until", arguments.until))
    )
    if arguments.output is None and form == "parquet":
        raise UsageError("Parquet is no text: say --output FILE.parquet")
    with open_reader(existing(arguments.journal)) as reader:
        found = lines(reader, _filter(arguments), since=since, until=until)
        if arguments.output is None:
            write(found, sys.stdout.buffer, form, index=arguments.index)
            return 0
        try:
            with Path(arguments.output).open("xb") as file:
                count = write(found, cast("IO[bytes]", file), form, index=arguments.index)
        except FileExistsError:
            raise UsageError(f"{arguments.output} is there already: name another file") from None
    if arguments.json:
        print_json({"schema": 1, "calls": count, "file": arguments.output})
    else:
        console().print(say(language(arguments.lang), "journal_exported", calls=count))
    return 0


def _filter(arguments: argparse.Namespace) -> "Filter":
    from failwise.journal.reader import Filter

    return Filter(
        tool=arguments.tool,
        code=arguments.code,
        success=False if arguments.failures else None,
    )


def _format(given: str | None, path: str | None) -> "Format":
    if given is None:
        ending = Path(path).suffix[1:] if path else ""
        given = ending if ending in _FORMATS else "jsonl"
    return cast("Format", given)


def _import(arguments: argparse.Namespace) -> int:
    from failwise.journal.archive import built, read
    from failwise.journal.place import locate
    from failwise.journal.store import open_store
    from failwise.journal.transfer import FOR_EVER, PAGE, missing
    from failwise.redaction import default

    store = open_store(locate(arguments.journal), FOR_EVER)
    redactor = default()
    calls = known = 0
    skipped: list[str] = []

    def load(page: list[Any]) -> None:
        nonlocal calls, known
        whole = built(page, redactor)
        fresh = missing(store, whole)
        known += len(whole.calls) - len(fresh.calls)
        if fresh.calls:
            calls += len(fresh.calls) - store.load(fresh)

    try:
        with _progress(arguments, "import") as progress:
            for path in map(Path, arguments.files):
                if not path.is_file():
                    raise UsageError(f"{path}: there is no such file")
                page: list[Any] = []
                for number, call in read(path, _format(None, str(path))):
                    try:
                        if isinstance(call, ValueError):
                            raise call
                        built([call], redactor)
                    except (ValueError, TypeError) as error:
                        skipped.append(f"{path}:{number}: {error}")
                        continue
                    page.append(call)
                    if len(page) == PAGE:
                        load(page)
                        page = []
                        if progress is not None:
                            progress(calls + known, 0)
                if page:
                    load(page)
    finally:
        store.close()
    if arguments.json:
        print_json({"schema": 1, "calls": calls, "known": known, "skipped": skipped[:1_000]})
    else:
        lang, out = language(arguments.lang), console()
        out.print(say(lang, "journal_imported", calls=calls, known=known))
        if skipped:
            out.print(say(lang, "journal_skipped", skipped=len(skipped)))
            for text in skipped[:_SHOWN]:
                out.print(clean(text))
    return 1 if skipped else 0


def _prune(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    from failwise.journal.place import locate
    from failwise.journal.store import open_existing
    from failwise.journal.transfer import FOR_EVER

    if arguments.days is None and arguments.rows is None:
        raise UsageError("journal prune: say what to keep: --days, --rows, or both")
    if (arguments.days or 0) < 0 or (arguments.rows or 0) < 0:
        raise UsageError("journal prune: --days and --rows are not negative")
    keeping = FOR_EVER
    if arguments.days is not None:
        keeping = replace(keeping, calls_days=arguments.days)
    if arguments.rows is not None:
        keeping = replace(keeping, calls_rows=arguments.rows)
    target = locate(existing(arguments.journal))
    store = open_existing(target, keeping)
    try:
        before = int(store.rows("SELECT count(*) AS n FROM calls")[0][0])
        with _progress(arguments, "prune") as progress:
            while store.prune(at_once=True):
                if progress is not None:
                    left = int(store.rows("SELECT count(*) AS n FROM calls")[0][0])
                    progress(before - left, before)
        left = int(store.rows("SELECT count(*) AS n FROM calls")[0][0])
        if arguments.vacuum and target.engine == "sqlite":
            store.rows("VACUUM")
    finally:
        store.close()
    if arguments.json:
        print_json({"schema": 1, "removed": before - left, "kept": left})
    else:
        console().print(
            say(language(arguments.lang), "journal_pruned", calls=before - left, left=left)
        )
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from failwise.journal.checking import check
    from failwise.journal.read import File

    source = File(existing(arguments.journal))
    try:
        found = check(source)
    finally:
        source.close()
    if arguments.json:
        findings = [{"what": one.what, "text": one.text} for one in found]
        print_json({"schema": 1, "sound": not found, "findings": findings})
    else:
        lang, out = language(arguments.lang), console()
        out.print(say(lang, "journal_unsound" if found else "journal_sound"))
        for one in found:
            out.print(clean(f"  {one.what}: {one.text}"))
    return 1 if found else 0


def _progress(
    arguments: argparse.Namespace, title: str
) -> "AbstractContextManager[Progress | None]":
    """A bar on standard error, where a person watches."""
    if arguments.json or not sys.stderr.isatty():
        return nullcontext()
    return _Bar(title)


class _Bar:
    """One bar: so many of so many calls (0: nobody knows of how many)."""

    def __init__(self, title: str) -> None:
        self._title = title

    def __enter__(self) -> "Progress":
        from rich.console import Console
        from rich.progress import Progress

        self._bars = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bars.add_task(self._title, total=None)
        self._bars.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def _tell(self, done: int, whole: int) -> None:
        self._bars.update(self._task, completed=done, total=whole or None)
