"""``failwise replay``: recorded failures before today's rules and policy, offline."""

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from failwise.cli.moments import epoch
from failwise.cli.terminal import add_common, console, facts, language, print_json, say, table
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.insight.backtest import Backtest, Change, Rejudged
    from failwise.insight.replaying import Replay
    from failwise.policy.decide import TablePolicy

_EPILOG: Final = """\
examples:
  failwise replay call_7                               one call, by today's rules and policy
  failwise replay call_7 --policy strict.toml
  failwise replay --all --since 7d                     which failures are judged otherwise now
  failwise replay --all --since 7d --policy strict.toml --read-only "search_*"
                                                       a backtest: which decisions would change

Nothing is sent. Which tools only read is not part of a record: name them with --read-only; of others the
recorded retries tell, else they count as writes. docs/replay.md says what a backtest cannot know.

The exit code is 0 when nothing differs, 1 when something does."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("call_id", nargs="?", metavar="CALL_ID", help="a recorded call")
    parser.add_argument("--journal", metavar="JOURNAL", help="its path or URL")
    parser.add_argument("--all", action="store_true", help="every failure of the period")
    parser.add_argument("--since", metavar="WHEN", help="24h, 7d, or an ISO moment (with --all)")
    parser.add_argument("--until", metavar="WHEN", help="likewise (not included)")
    parser.add_argument("--policy", metavar="FILE|PRESET", help="decide by this policy")
    parser.add_argument(
        "--baseline",
        metavar="FILE|PRESET",
        default="default",
        help="compare with this one (default)",
    )
    parser.add_argument(
        "--read-only",
        action="append",
        default=[],
        metavar="TOOL",
        help="a tool that only reads (*)",
    )
    parser.add_argument(
        "--limit", type=int, default=100_000, metavar="N", help="calls looked at, newest first"
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Judge one recorded call again, or all of a period."""
    if arguments.all == (arguments.call_id is not None):
        raise UsageError("name a call, or write --all")
    lang = language(arguments.lang)
    return _all(arguments, lang) if arguments.all else _one(arguments, lang)


def load_policy(given: str | None) -> "TablePolicy":
    """A policy by the name of its preset or its file; without jitter, so that waits compare."""
    import os
    from pathlib import Path

    from failwise.policy.decide import TablePolicy

    if given is not None and (os.path.sep in given or given.endswith(".toml")):
        return TablePolicy(Path(given), jitter=0)
    return TablePolicy(given, jitter=0)


def _one(arguments: argparse.Namespace, lang: Language) -> int:
    from fnmatch import fnmatchcase

    from failwise.insight.replaying import replay
    from failwise.journal.reader import open_reader

    with open_reader(arguments.journal) as reader:
        call = reader.call(arguments.call_id)
        if call is None:
            raise UsageError(f"there is no call {arguments.call_id} in this journal")
        raw = reader.raw_answers(arguments.call_id)
    reads = any(fnmatchcase(call["tool"], one) for one in arguments.read_only) or None
    found = replay(call, policy=load_policy(arguments.policy), raw=raw, read_only=reads)
    if arguments.json:
        print_json(found.to_dict())
        return 1 if found.differences else 0
    out = console()
    out.print(facts(_rows(found, lang)))
    steps = table(
        *(
            say(lang, word)
            for word in ("replay_attempt", "code", "replay_then", "replay_now", "why")
        ),
        right=(0,),
    )
    for step in found.steps:
        now = (
            f"{step.now.action.value} {step.now.delay:g} s"
            if step.now.delay
            else step.now.action.value
        )
        steps.add_row(str(step.attempt), step.code, step.recorded or "-", now, step.now.reason)
    out.print(steps)
    if not found.differences:
        out.print(say(lang, "replay_same"))
    for one in found.differences:
        out.print(
            say(lang, "replay_differs", what=one.what, before=one.before, now=one.now), style="bold"
        )
    return 1 if found.differences else 0


def _rows(found: "Replay", lang: Language) -> Iterator[tuple[str, object]]:
    yield say(lang, "replay_call"), f"{found.call_id}  {found.tool}"
    yield say(lang, "replay_basis"), say(lang, f"replay_basis_{found.basis}")
    yield (
        say(lang, "replay_then"),
        f"{found.before.code}  {found.before.effect}  {found.before.rule}",
    )
    yield say(lang, "replay_now"), f"{found.now.code}  {found.now.effect}  {found.now.rule}"
    yield say(lang, "message"), found.before.message


def _all(arguments: argparse.Namespace, lang: Language) -> int:
    now = time.time()
    since, until = (
        None if text is None else epoch(text, option=option, now=now)
        for option, text in (("--since", arguments.since), ("--until", arguments.until))
    )
    if arguments.policy is None:
        from failwise.insight.backtest import rejudge

        judged = rejudge(arguments.journal, since=since, until=until, limit=arguments.limit)
        if arguments.json:
            print_json(judged.to_dict())
        else:
            _show_judged(judged, lang)
        return 1 if judged.changed else 0
    from failwise.insight.backtest import backtest

    tested = backtest(
        arguments.journal,
        load_policy(arguments.policy),
        load_policy(arguments.baseline),
        since=since,
        until=until,
        read_only=arguments.read_only,
        limit=arguments.limit,
    )
    if arguments.json:
        print_json(tested.to_dict())
    else:
        _show_tested(tested, lang)
    return 1 if tested.changed else 0


def _show_judged(found: "Rejudged", lang: Language) -> None:
    out = console()
    out.print(
        say(lang, "replay_judged", looked=found.looked, stood=found.stood, changed=found.changed)
    )
    if found.changes:
        shown = table(
            *(
                say(lang, word)
                for word in ("replay_then", "replay_now", "replay_count", "replay_examples")
            ),
            right=(2,),
        )
        for one in found.changes:
            shown.add_row(one.before, one.now, str(one.count), ", ".join(one.examples))
        out.print(shown)


def _show_tested(found: "Backtest", lang: Language) -> None:
    out = console()
    out.print(
        say(
            lang,
            "replay_tested",
            calls=found.calls,
            decisions=found.decisions,
            changed=found.changed,
        )
    )
    if not found.changed:
        return
    out.print(
        say(
            lang,
            "replay_effect",
            left_out=found.left_out,
            lost=found.lost,
            added=found.added,
            before=f"{found.waited:.0f}",
            now=f"{found.waits:.0f}",
        )
    )
    shown = table(
        *(
            say(lang, word)
            for word in ("code", "replay_then", "replay_now", "replay_count", "replay_examples")
        ),
        right=(3,),
    )
    for one in found.changes:
        shown.add_row(*_cells(one))
    out.print(shown)


def _cells(one: "Change") -> tuple[str, ...]:
    return one.code, one.before, one.now, str(one.count), ", ".join(one.examples)
