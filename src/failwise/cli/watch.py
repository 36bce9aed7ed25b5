"""``failwise watch``: what is new or far more frequent since the last look, for cron and CI."""

import argparse
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from failwise.cli.clusters import is_log
from failwise.cli.terminal import add_common, console, language, print_json
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    from failwise.insight.watching import Alarm, Look, Sensitivity, State
    from failwise.vocabulary.result import Language

_COMMAND_TIME: Final = 60.0
"""Seconds that a command on alarm may take."""
_EPILOG: Final = """\
examples:
  failwise watch --since 1h                               a journal: the last hour against the week before
  */10 * * * * failwise watch --state /var/lib/app/watch.json --command /usr/local/bin/page
  failwise watch app.log --state watch.json               what the file has grown by since the last look

A new kind of failure, one that is back after --silence days, or one that comes far more often than its
baseline makes likely, is an alarm. The command reads the alarms as JSON on standard input; it is run
without a shell, unless --shell. Where it fails, the state is left as it was: the alarms come again.

The exit code is 0 when all is as usual, 1 on alarm, 2 for wrong usage."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="JOURNAL|LOG|-", help="a journal, a log file, or a stream"
    )
    parser.add_argument("--state", metavar="FILE", help="what was seen at the last look")
    parser.add_argument(
        "--since", metavar="WHEN", help="look from there on: 1h, or an ISO moment (journals)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.001, metavar="P",
        help="chance of a false alarm about spikes in one look (0.001)",
    )  # fmt: skip
    parser.add_argument(
        "--least", type=int, default=5, metavar="N", help="failures that make a spike (5)"
    )
    parser.add_argument(
        "--factor", type=float, default=2.0, metavar="X", help="times what was expected (2)"
    )
    parser.add_argument(
        "--new-from", type=int, default=1, metavar="N", help="failures that make a new kind (1)"
    )
    parser.add_argument(
        "--silence",
        type=float,
        default=14.0,
        metavar="DAYS",
        help="after which a kind is back (14)",
    )
    parser.add_argument("--command", dest="alarm", metavar="COMMAND", help="run this on alarm")
    parser.add_argument("--shell", action="store_true", help="run the command by the shell")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Look once; 1 on alarm."""
    from failwise.insight.watching import load_state, save_state

    lang = language(arguments.lang)
    state = load_state(arguments.state) if arguments.state else None
    found = _look(arguments, state)
    _tell(found, arguments, state, lang)
    delivered = not found.alarms or _run(arguments, found, lang)
    if arguments.state and delivered:
        save_state(arguments.state, found.state)
    return 1 if found.alarms else 0


def _look(arguments: argparse.Namespace, state: "State | None") -> "Look":
    from failwise.cli.moments import epoch
    from failwise.insight.watched import look_at_journal, look_at_log

    now, how = time.time(), _sensitivity(arguments)
    if not is_log(arguments.source):
        since = arguments.since and epoch(arguments.since, option="--since", now=now)
        return look_at_journal(
            arguments.source, state, now=now, since=since or None, sensitivity=how
        )
    if arguments.since:
        raise UsageError(
            f"--since is for journals: {arguments.source} is read from the last look on"
        )
    if not arguments.state:
        raise UsageError("a log has no history of its own: name a file with --state to keep one")
    from failwise.redaction import default

    stream = sys.stdin.buffer if arguments.source == "-" else None
    return look_at_log(
        arguments.source,
        state,
        now=now,
        redactor=default(),
        year=time.gmtime(now).tm_year,
        sensitivity=how,
        stream=stream,
    )


def _sensitivity(arguments: argparse.Namespace) -> "Sensitivity":
    from failwise.insight.watching import Sensitivity

    if not 0.0 < arguments.alpha < 1.0:
        raise UsageError(f"--alpha {arguments.alpha}: a chance between 0 and 1, such as 0.001")
    return Sensitivity(
        arguments.alpha,
        arguments.least,
        arguments.factor,
        arguments.new_from,
        arguments.silence,
    )


def _tell(
    found: "Look", arguments: argparse.Namespace, state: "State | None", lang: "Language"
) -> None:
    if arguments.json:
        print_json(
            {
                "alarms": [alarm.to_dict() for alarm in found.alarms],
                "clusters": found.clusters,
                "failures": found.failures,
                "first": found.first,
            }
        )
        return
    from rich.text import Text

    from failwise.insight.render_clusters import cluster_words, moment

    out, say = console(), cluster_words(lang)
    for alarm in found.alarms:
        style = "bold red" if alarm.kind == "spike" else "bold"
        out.print(Text(_line(alarm, lang), style=style))
    if found.first:
        facts = {"clusters": found.clusters, "failures": found.failures}
        out.print(
            say["learned"].format(count=found.failures, state=arguments.state or "-", **facts)
        )
    elif not found.alarms:
        since = moment(state.at) if state is not None else arguments.since or "1h"
        out.print(say["quiet"].format(count=found.failures, clusters=found.clusters, since=since))


def _line(alarm: "Alarm", lang: "Language") -> str:
    from failwise.cli.terminal import clean
    from failwise.insight.render_clusters import cluster_words

    cluster = alarm.cluster
    return cluster_words(lang)[f"alarm_{alarm.kind}"].format(
        id=cluster.id,
        code=cluster.code,
        count=alarm.count,
        expected=f"{alarm.expected:.1f}" if alarm.expected is not None else "",
        days=f"{alarm.days:.0f}" if alarm.days is not None else "",
        what=clean(cluster.name or cluster.template)[:200],
    )


def _run(arguments: argparse.Namespace, found: "Look", lang: "Language") -> bool:
    """Run the command on alarm; False where it failed."""
    if not arguments.alarm:
        return True
    import json
    import shlex

    from failwise.insight.render_clusters import cluster_words

    given = json.dumps([alarm.to_dict() for alarm in found.alarms], ensure_ascii=False, default=str)
    try:
        words = arguments.alarm if arguments.shell else shlex.split(arguments.alarm)
    except ValueError as error:
        raise UsageError(f"--command {arguments.alarm}: {error}") from error
    if not words:
        raise UsageError("--command: write a program to run")
    reason = ""
    try:
        # The user's own command line, on purpose: without a shell unless they ask for one.
        done = subprocess.run(  # noqa: S603
            words,
            shell=arguments.shell,
            input=given,
            encoding="utf-8",
            timeout=_COMMAND_TIME,
            check=False,
            env={**os.environ, "FAILWISE_ALARMS": str(len(found.alarms))},
        )
        if done.returncode:
            reason = f"exit code {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if reason:
        message = cluster_words(lang)["command_failed"].format(reason=reason)
        sys.stderr.write(f"failwise: {message}\n")
    return not reason
