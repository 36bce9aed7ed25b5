"""``failwise clusters``: what fails, as few kinds, of a journal or of any log."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from failwise.cli.inputs import lines, opened
from failwise.cli.terminal import add_common, console, language, print_json
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    from failwise.insight.clusters import Cluster
    from failwise.vocabulary.result import Language

_SQLITE: Final = b"SQLite format 3\0"
_EPILOG: Final = """\
examples:
  failwise clusters                                  the journal of this directory
  failwise clusters --since 24h --show 3f9a
  failwise clusters postgresql://host/agents --json
  failwise clusters app.log                          any log file: no journal needed
  journalctl -u app | failwise clusters -            any stream; Ctrl-C shows what was read so far

  failwise clusters --name 3f9a "gateway down"       by the id of a cluster, or one of its fingerprints
  failwise clusters --merge 3f9a 77c0
  failwise clusters --split 8b21
  failwise clusters --mute 3f9a

Without JOURNAL: FAILWISE_JOURNAL, else .failwise/journal.db. The exit code is 0 whatever was found;
`failwise watch` is for alarms. Everything shown is redacted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="JOURNAL|LOG|-", help="a journal, a log file, or a stream"
    )
    parser.add_argument("--since", metavar="WHEN", help="24h, 7d, or an ISO moment (journals)")
    parser.add_argument("--until", metavar="WHEN", help="likewise (not included)")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="clusters listed (20)")
    parser.add_argument(
        "--details", type=int, default=3, metavar="N", help="of them shown in full (3)"
    )
    parser.add_argument("--show", metavar="ID", help="one cluster in full")
    parser.add_argument(
        "--all", action="store_true", help="muted clusters too; templates that tell of no failure"
    )
    acting = parser.add_mutually_exclusive_group()
    acting.add_argument("--name", nargs=2, metavar=("ID", "NAME"), help="give a cluster a name")
    acting.add_argument("--merge", nargs="+", metavar="ID", help="make clusters one")
    acting.add_argument("--split", metavar="FINGERPRINT", help="let a fingerprint stand alone")
    acting.add_argument("--mute", metavar="ID", help="leave a cluster out of lists and alarms")
    acting.add_argument("--unmute", metavar="ID", help="bring a muted cluster back")
    acting.add_argument(
        "--assign", metavar="FILE|-", help="print the cluster of each line, a number, in order"
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Print the clusters, or do what was asked of one."""
    if arguments.assign is not None:
        return _assign(arguments.assign)
    lang = language(arguments.lang)
    if is_log(arguments.source):
        return _log(arguments, lang)
    from failwise.cli.moments import epoch
    from failwise.insight.recorded import clusters

    if _act(arguments, lang):
        return 0

    now = time.time()
    since, until = (
        None if text is None else epoch(text, option=option, now=now)
        for option, text in (("--since", arguments.since), ("--until", arguments.until))
    )
    found = clusters(arguments.source, since=since, until=until)
    if arguments.show:
        return _show(found.clusters, arguments, lang)
    if arguments.json:
        print_json(found.to_dict())
        return 0
    from failwise.insight.render_clusters import render_clusters

    render_clusters(
        found.clusters,
        found.verdict,
        console(),
        lang=lang,
        limit=arguments.limit,
        details=arguments.details,
        muted=arguments.all,
    )
    return 0


def is_log(source: str | None) -> bool:
    """Whether a source is a log file or a stream, and not a journal. Raises `UsageError` for a file
    that is not there."""
    if source is None or "://" in source:
        return False
    if source == "-" or not os.path.isfile(source):
        if source != "-" and not os.path.exists(source):
            raise UsageError(f"{source}: there is no such file")
        return True
    with opened(source) as file:
        return file.read(len(_SQLITE)) != _SQLITE


def _show(found: "Sequence[Cluster]", arguments: argparse.Namespace, lang: "Language") -> int:
    from failwise.insight.clusters import find

    cluster = find(found, arguments.show)
    if cluster is None:
        raise UsageError(f"--show {arguments.show}: names no cluster of this period, or several")
    if arguments.json:
        print_json(cluster.to_dict())
    else:
        from failwise.insight.render_clusters import render_cluster

        render_cluster(cluster, console(), lang=lang)
    return 0


def _act(arguments: argparse.Namespace, lang: "Language") -> bool:
    """Do what a person says of clusters; False where nothing was said."""
    from failwise.insight import recorded
    from failwise.insight.render_clusters import cluster_words

    place = arguments.source
    facts: dict[str, str]
    if arguments.name:
        wanted, name = arguments.name
        cluster = recorded.name_cluster(place, wanted, name)
        done, facts = "named", {"id": cluster.id, "name": name}
    elif arguments.merge:
        cluster = recorded.merge_clusters(place, arguments.merge)
        done, facts = "merged", {"id": cluster.id, "ids": ", ".join(arguments.merge)}
    elif arguments.split:
        recorded.split_cluster(place, arguments.split)
        done, facts = "split", {"id": arguments.split}
    elif arguments.mute or arguments.unmute:
        silent = arguments.mute is not None
        cluster = recorded.mute_cluster(place, arguments.mute or arguments.unmute, silent)
        done, facts = "silenced" if silent else "unsilenced", {"id": cluster.id}
    else:
        return False
    if arguments.json:
        print_json({"done": done, **facts})
    else:
        console().print(cluster_words(lang)[done].format(**facts))
    return True


def _log(arguments: argparse.Namespace, lang: "Language") -> int:
    from failwise.insight.logs import LogCounting
    from failwise.insight.verdict import verdict
    from failwise.redaction import default

    for option in ("name", "merge", "split", "mute", "unmute", "since", "until"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} is for journals: {arguments.source} is a log")
    name = "" if arguments.source == "-" else os.path.basename(arguments.source)
    import datetime

    counting = LogCounting(year=datetime.datetime.now(datetime.UTC).year)
    with opened(arguments.source) as file:
        try:
            counting.read(lines(file), _progress(lang))
        except KeyboardInterrupt:
            pass  # a stream that never ends: what was read so far is the answer
        finally:
            _clear_progress()
    found = counting.result(default(), name=name)
    said = verdict(found.clusters, found.recent)
    if arguments.show:
        return _show(found.clusters, arguments, lang)
    if arguments.json:
        data = {
            "lines": found.lines,
            "entries": found.entries,
            "failures": found.failures,
            "verdict": said.to_dict(),
            "clusters": [cluster.to_dict() for cluster in found.clusters],
        }
        if arguments.all:
            data["others"] = [cluster.to_dict() for cluster in found.others]
        print_json(data)
        return 0
    from failwise.insight.render_clusters import cluster_words, render_clusters

    out, say = console(), cluster_words(lang)
    if found.clusters:
        render_clusters(
            found.clusters, said, out, lang=lang, limit=arguments.limit, details=arguments.details
        )
        out.print()
    else:
        out.print(say["none"].format(lines=found.lines))
    fine = say["fine"].format(entries=found.entries, lines=found.lines, others=len(found.others))
    out.print(fine, style="dim")
    if arguments.all and found.others:
        from rich.text import Text

        out.print(say["fine_title"], style="bold")
        for cluster in found.others[: max(arguments.limit, 1)]:
            out.print(Text(f"{cluster.count:>8}  {cluster.template}"))
    return 0


def _progress(lang: "Language") -> Callable[[int], None] | None:
    """A line that counts, where somebody looks on."""
    if not sys.stderr.isatty():
        return None
    from failwise.insight.render_clusters import cluster_words

    form = cluster_words(lang)["reading"]

    def tell(number: int) -> None:
        sys.stderr.write("\r" + form.format(lines=number))
        sys.stderr.flush()

    return tell


def _clear_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def _assign(path: str) -> int:
    """One number a line, in the order of the lines; lines of one cluster have the same."""
    from array import array

    from failwise.insight.mining import Miner

    miner = Miner(remembered=None)
    numbers = array("L")
    with opened(path) as file:
        for _, line in lines(file):
            numbers.append(miner.add(line or ""))
    cluster = {one: group[0] for group in miner.groups().values() for one in group}
    shown = (cluster.get(miner.home(number), 0) for number in numbers)
    sys.stdout.write("".join(f"{number}\n" for number in shown))
    return 0
