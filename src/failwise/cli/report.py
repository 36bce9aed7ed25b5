"""``failwise report``: what a journal's records say, and what has changed."""

import argparse
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, get_args

from failwise.cli.journals import existing
from failwise.cli.moments import ago, epoch
from failwise.cli.terminal import add_common, console, language, print_json
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    from failwise.insight import compare as comparing
    from failwise.journal.reader import Filter
    from failwise.vocabulary.result import Language

_Stretch: TypeAlias = tuple[float | None, float | None]
_BY: Final = (
    "tool", "upstream", "category", "code", "hour", "day", "model", "run", "provider", "arguments",
)  # fmt: skip
_EPILOG: Final = """\
examples:
  failwise report
  failwise report --since 24h --by hour
  failwise report postgresql://host/agents --since 7d --where upstream=api.example --where effect=unknown
  failwise report --compare 24h                   the last 24 hours against the 24 before
  failwise report --since 2026-11-20 --compare    since then against as long before
  failwise report --since 7d --against 2026-11-01..2026-11-08
  failwise report --since 7d --svg charts --markdown > report.md

Without JOURNAL: FAILWISE_JOURNAL, else .failwise/journal.db. --where takes tool, upstream, category,
code, model, provider, run, call_id, fingerprint, effect, http_status, success and text (in the message);
several of one name: any of them. docs/metrics.md has every formula."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("journal", nargs="?", metavar="JOURNAL", help="the journal's file or URL")
    parser.add_argument("--since", metavar="WHEN", help="24h, 7d, or an ISO moment (included)")
    parser.add_argument("--until", metavar="WHEN", help="likewise (not included)")
    parser.add_argument("--by", choices=_BY, help="only this breakdown")
    parser.add_argument(
        "--where", action="append", default=[], metavar="NAME=VALUE", help="only calls that fit"
    )
    parser.add_argument(
        "--compare",
        nargs="?",
        const="",
        metavar="LENGTH",
        help="with the stretch of that length before (24h, 7d; as long as the one shown)",
    )
    parser.add_argument(
        "--against", metavar="SINCE..UNTIL", help="compare with this stretch instead"
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--svg", metavar="FOLDER", help="write charts into this folder, too")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Print the report or the comparison; write charts."""
    if arguments.json and arguments.markdown:
        raise UsageError("--json, --markdown: say one of them")
    now = time.time()
    since, until = (
        None if text is None else epoch(text, option=option, now=now)
        for option, text in (("--since", arguments.since), ("--until", arguments.until))
    )
    two = arguments.compare is not None or arguments.against is not None
    where = filter_of(arguments.where)
    before: _Stretch = (None, None)
    if two:
        before, (since, until) = _stretches(arguments, since, until, now)
    place, lang = existing(arguments.journal), language(arguments.lang)
    if arguments.svg:
        _write_charts(place, arguments.svg, since, until, where, lang)
    if two:
        _compare(place, before, (since, until), arguments, where, lang)
    else:
        _report(place, since, until, arguments, where, lang, now)
    return 0


def _report(
    place: str,
    since: float | None,
    until: float | None,
    arguments: argparse.Namespace,
    where: "Filter",
    lang: "Language",
    now: float,
) -> None:
    from failwise.insight.report import report
    from failwise.insight.tables import ROWS

    rows = ROWS if arguments.by is None else None
    found = report(place, since=since, until=until, by=arguments.by, where=where, now=now)
    if arguments.json:
        print_json(found.to_dict())
    elif arguments.markdown:
        from failwise.insight.markdown import report_markdown

        sys.stdout.write(report_markdown(found, lang, rows=rows))
    else:
        from failwise.insight.render import render

        render(found, console(), lang=lang, rows=rows)


def _compare(
    place: str,
    before: _Stretch,
    after: _Stretch,
    arguments: argparse.Namespace,
    where: "Filter",
    lang: "Language",
) -> None:
    from failwise.insight import compare as comparing

    by = arguments.by
    if by is not None and by not in get_args(comparing.By):
        raise UsageError(
            f"--by {by}: two periods are compared by {', '.join(get_args(comparing.By))}"
        )
    found = comparing.compare(
        place, before=before, after=after, by=cast("comparing.By | None", by), where=where
    )
    if arguments.json:
        print_json(found.to_dict())
    elif arguments.markdown:
        from failwise.insight.markdown import comparison_markdown

        sys.stdout.write(comparison_markdown(found, lang))
    else:
        from failwise.insight.render import render_comparison

        render_comparison(found, console(), lang=lang)


def _write_charts(
    place: str,
    folder: str,
    since: float | None,
    until: float | None,
    where: "Filter",
    lang: "Language",
) -> None:
    from failwise.insight.charts import charts, series
    from failwise.insight.tables import report_words

    made = charts(series(place, since=since, until=until, where=where), lang)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (target / name).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--svg {folder}: {error.strerror or error}") from error
    said = report_words(lang)["charts_written"].format(folder=folder, names=", ".join(made))
    sys.stderr.write(f"{said}\n")


def _stretches(
    arguments: argparse.Namespace, since: float | None, until: float | None, now: float
) -> tuple[_Stretch, _Stretch]:
    """The stretch before, and the one that is shown."""
    length = ago(arguments.compare, option="--compare") if arguments.compare else None
    last = now if until is None else until
    if arguments.against is not None:
        if arguments.compare is not None:
            raise UsageError("--compare, --against: say one of them")
        first, mark, end = arguments.against.partition("..")
        if not mark:
            raise UsageError(f"--against {arguments.against}: write SINCE..UNTIL")
        before = tuple(
            epoch(text, option="--against", now=now) if text else None for text in (first, end)
        )
        return (before[0], before[1]), (since, last)
    if since is None:
        if length is None:
            raise UsageError("--compare: say how long (--compare 24h), or --since when")
        since = last - length
    length = last - since if length is None else length
    if length <= 0:
        raise UsageError("--since lies after --until: there is nothing to compare")
    return (since - length, since), (since, last)


def filter_of(said: list[str]) -> "Filter":
    """The filter that ``--where NAME=VALUE`` says; several values of one name are alternatives."""
    from failwise.journal.reader import Filter

    names = [one.name for one in fields(Filter) if one.name != "asked"]
    found: dict[str, list[Any]] = {}
    for text in said:
        name, mark, value = text.partition("=")
        name = name.strip()
        if not mark or name not in names:
            raise UsageError(f"--where {text}: write NAME=VALUE, with one of {', '.join(names)}")
        found.setdefault(name, []).append(_typed(name, value.strip()))
    for name in ("success", "text"):
        if len(found.get(name, ())) > 1:
            raise UsageError(f"--where {name}: say it once")
    fitting: dict[str, Any] = {
        name: values[0] if len(values) == 1 else tuple(values) for name, values in found.items()
    }
    return Filter(**fitting)


def _typed(name: str, value: str) -> Any:
    if name == "http_status":
        if not value.isdecimal() or len(value) > 3:
            raise UsageError(f"--where http_status={value}: write a number such as 502")
        return int(value)
    if name == "success":
        if value not in ("true", "false"):
            raise UsageError(f"--where success={value}: write true or false")
        return value == "true"
    return value
