"""``failwise call``: a user's own tools and calls, with every attempt shown."""

import argparse
import difflib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.asking import Asker, can_ask
from failwise.cli.configuration import NAME, load
from failwise.cli.inputs import LINE_LIMIT, lines, opened
from failwise.cli.live import watch
from failwise.cli.terminal import add_common, clean, console, language, print_json, say, table
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Decision, Language, ToolResult
from failwise.vocabulary.steps import Situation

if TYPE_CHECKING:
    from rich.console import Console

_KEYS: Final = ("tool", "arguments", "call_id", "deadline")
_FORM: Final = '{"tool": "search", "arguments": {"query": "shoes"}, "call_id": "call_7"}'
_CALLS_LIMIT: Final = 100_000

_EPILOG: Final = """\
Each line of CALLS.jsonl is {"tool": ..., "arguments": object or the model's raw text, "call_id"?,
"deadline"? (seconds)}. All lines are checked before the first call is sent; calls run in order, as one
chain. With --run the same file can be run again: effects that are done are not done twice. At a terminal
you are asked before a guessed repair is sent; no answer is a no.

The exit code is 1 when a call failed."""


@record
class _Line:
    """One call to make. `call_id` is the file's, else ``line-N``."""

    tool: str
    arguments: Any
    call_id: str
    deadline: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("calls", metavar="CALLS.jsonl|-", help="one call a line")
    parser.add_argument(
        "--config", default=NAME, metavar="FILE", help=f"the configuration (default: {NAME})"
    )
    parser.add_argument("--run", metavar="ID", help="the job's own name, the same after a restart")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="for all calls together")
    add_common(parser, json_help="print each result as one JSON line (ToolResult.to_dict())")
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Run the calls in order; 1 when one failed."""
    runtime = load(arguments.config)
    calls = _read(arguments.calls)
    lang = language(arguments.lang)
    screen = None if arguments.json else _Screen(console(), lang)
    if screen is not None:
        watch(runtime, screen.decided)
        if can_ask():
            runtime.confirm = Asker(console(), lang)
    results: list[ToolResult[Any]] = []
    with runtime, runtime.run(arguments.run, deadline=arguments.deadline) as run:
        for call in calls:
            if screen is not None:
                screen.begin(call)
            options = {} if call.deadline is None else {"deadline": call.deadline}
            result = run.call_sync(call.tool, call.arguments, call_id=call.call_id, **options)
            results.append(result)
            if screen is None:
                print_json(result.to_dict())
            else:
                screen.end(result)
        if screen is not None:
            screen.summary(results, arguments.calls, str(runtime.journal.place))
    return 0 if all(result.success for result in results) else 1


def _read(path: str) -> list[_Line]:
    """All calls of a file. Raises `ConfigurationError` naming the line, before anything is sent."""
    calls: list[_Line] = []
    seen: dict[str, int] = {}
    with opened(path) as file:
        for number, line in lines(file):
            if line is None:
                raise ConfigurationError(f"longer than {LINE_LIMIT} bytes", file=path, line=number)
            if not line.strip():
                continue
            if len(calls) >= _CALLS_LIMIT:
                raise ConfigurationError(
                    f"more than {_CALLS_LIMIT} calls: split the file", file=path, line=number
                )
            call = _line(line, path, number)
            if call.call_id in seen:
                raise ConfigurationError(
                    f"call_id {call.call_id!r} stands on line {seen[call.call_id]} already: "
                    "each call needs its own",
                    file=path,
                    line=number,
                )
            seen[call.call_id] = number
            calls.append(call)
    return calls


def _line(text: str, path: str, number: int) -> _Line:
    def wrong(reason: str) -> ConfigurationError:
        return ConfigurationError(reason, file=path, line=number)

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise wrong(f"not JSON ({error}); write {_FORM}") from error
    if not isinstance(data, Mapping):
        raise wrong(f"a JSON {type(data).__name__}; write {_FORM}")
    for key in data:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            told = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_KEYS)}"
            raise wrong(f"unknown key {key!r}: {told}")
    tool, arguments = data.get("tool"), data.get("arguments", {})
    call_id, deadline = data.get("call_id"), data.get("deadline")
    if not isinstance(tool, str) or not tool:
        raise wrong(f'"tool" must name a tool; write {_FORM}')
    if not isinstance(arguments, Mapping | str):
        raise wrong('"arguments" must be an object, or the raw text of the model')
    if call_id is not None and (not isinstance(call_id, str) or not call_id):
        raise wrong('"call_id" must be a text')
    if deadline is not None and (
        isinstance(deadline, bool) or not isinstance(deadline, int | float) or deadline <= 0
    ):
        raise wrong('"deadline" must be a number of seconds, above 0')
    return _Line(tool, arguments, call_id or f"line-{number}", deadline)


class _Screen:
    """What a person sees while calls run, and the tables after."""

    def __init__(self, out: "Console", lang: Language) -> None:
        self._out, self._lang = out, lang
        self._tool = ""

    def begin(self, call: _Line) -> None:
        self._tool = call.tool
        self._print(say(self._lang, "calling", tool=call.tool, call_id=call.call_id), "bold")

    def decided(self, failure: Failure, situation: Situation, decision: Decision) -> None:
        """One line for an attempt that failed, before its decision is carried out."""
        number = situation.attempts[-1].number if situation.attempts else 0
        delay = (
            say(self._lang, "in_seconds", seconds=f"{decision.delay:.3g}") if decision.delay else ""
        )
        tool = situation.tool.name
        line = say(
            self._lang,
            "attempt" if number else "attempt_unsent",
            number=number,
            code=failure.code if tool == self._tool else f"{tool}: {failure.code}",
            status=f" ({failure.http_status})" if failure.http_status else "",
            action=decision.action.value,
            delay=delay,
        )
        self._print(line, "yellow")
        if decision.reason:
            self._print(f"      {decision.reason}", "dim")

    def end(self, result: ToolResult[Any]) -> None:
        self._print(
            say(
                self._lang,
                "call_ok" if result.success else "call_failed",
                tool=result.tool_name,
                code=result.failure.code if result.failure else "",
                duration=_duration(result.duration_ms),
                sent=say(self._lang, "sent", count=result.sent),
            ),
            "green" if result.success else "red",
        )

    def summary(self, results: Sequence[ToolResult[Any]], file: str, journal: str) -> None:
        from rich.text import Text

        lang = self._lang
        if not results:
            self._print(say(lang, "nothing_to_call", file=file), "")
            return
        columns = ("tool", "call_id", "result", "effect", "requests", "duration", "next")
        shown = table(*(say(lang, column) for column in columns), right=(4, 5))
        for result in results:
            effect = result.effect
            shown.add_row(
                Text(clean(result.tool_name)),
                Text(clean(result.call_id)),
                Text(self._outcome(result), style="green" if result.success else "red"),
                effect.value if effect else "",
                str(result.sent),
                _duration(result.duration_ms),
                result.suggested_action.value if result.suggested_action else "",
            )
        self._out.print()
        self._out.print(shown)
        failed = [result for result in results if not result.success]
        if failed:
            self._print(say(lang, "for_user"), "bold")
        for result in failed:
            self._print(f"  {result.for_user(lang)}", "")
        self._print(
            say(
                lang,
                "summary",
                good=len(results) - len(failed),
                calls=len(results),
                sent=sum(result.sent for result in results),
                journal=journal,
            ),
            "dim",
        )

    def _outcome(self, result: ToolResult[Any]) -> str:
        if result.failure is not None:
            return result.failure.code
        if result.degraded_to:
            return say(self._lang, "result_degraded", name=result.degraded_to)
        if any(attempt.failure for attempt in result.attempts):
            return say(self._lang, "result_recovered")
        return say(self._lang, "result_repaired" if result.repairs else "result_done")

    def _print(self, text: str, style: str) -> None:
        from rich.text import Text

        self._out.print(Text(clean(text)), style=style, soft_wrap=True)


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
