"""``failwise classify``: a log line or a pasted error, taken apart and judged."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Final

from failwise.cli.inputs import answer_lines, lines, opened, read_text
from failwise.cli.terminal import (
    add_common,
    clean,
    console,
    facts,
    json_line,
    json_text,
    language,
    named,
    print_json,
    say,
    table,
)
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import MAPPING
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.classify.contract import Contract

_FORM: Final = '{"id": "1", "kind": "text" | "http" | "tool_result" | "arguments", "input": {...}}'
_KINDS: Final = ("text", "http", "tool_result", "arguments")
_SHOWN: Final = 100

_EPILOG: Final = """\
examples:
  failwise classify "502 Bad Gateway: <html>..."
  journalctl -u app -n 1 | failwise classify -
  failwise classify --lines app.log --json
  failwise classify --lines app.log --rules rules.toml

With --jsonl each line {"id", "kind", "input"} is answered by one line {"id", "category", "retry",
"effect", "retry_after_s", "fix_by", "code", "rule", "confidence"}; kind is text, http, tool_result or
arguments ("repaired" in place of the last three).
The exit code is 0 whatever was found; with --exit-code it is 1 when a failure was found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT|FILE|-", help="what to read")
    parser.add_argument("--lines", action="store_true", help="judge each line of the input alone")
    parser.add_argument(
        "--trail", action="store_true", help="show which rules spoke, and why one won"
    )
    parser.add_argument("--jsonl", metavar="FILE|-", help="answer JSON lines (see below)")
    parser.add_argument("--rules", action="append", metavar="FILE", help="rules of your own")
    parser.add_argument("--exit-code", action="store_true", help="1 when a failure was found")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Judge a text, each line of one, or JSON lines."""
    if arguments.jsonl is not None:
        return answer_lines(arguments.jsonl, answering(arguments.rules), _FORM)
    lang = language(arguments.lang)
    found = _each_line(arguments, lang) if arguments.lines else _one(arguments, lang)
    return 1 if found and arguments.exit_code else 0


def answering(rules: list[str] | None = None) -> Callable[[Mapping[str, Any]], str]:
    """The contract of ``--jsonl``: a case in, its verdict out, as a line of JSON. Raises `UsageError`
    for another kind, and `ConfigurationError` for a file of rules that is wrong."""
    from failwise.classify.contract import SUCCESS

    contract = _contract(rules)
    fine = json_line(SUCCESS)[1:]  # what nearly every line is: put in JSON once
    known: dict[tuple[Any, ...], str] = {}

    def reply(case: Mapping[str, Any]) -> str:
        verdict = _verdict(contract, case)
        rest = fine if verdict is SUCCESS else _rest(verdict, known)
        return f'{{"id": {json_text(case.get("id"))}, {rest}'

    return reply


_KNOWN_LIMIT: Final = 1_024


def _rest(verdict: Mapping[str, Any], known: dict[tuple[Any, ...], str]) -> str:
    """The line of a verdict behind its id; there are few, and those that came before are known."""
    if "repaired" in verdict:
        return json_line(verdict)[1:]
    values = tuple(verdict.values())
    rest = known.get(values)
    if rest is None:
        if len(known) >= _KNOWN_LIMIT:
            known.clear()
        rest = known[values] = json_line(verdict)[1:]
    return rest


def _contract(rules: list[str] | None) -> "Contract":
    from failwise.classify.contract import Contract
    from failwise.classify.own import OwnRules

    return Contract(OwnRules.load(rules) if rules else None)


def _verdict(contract: "Contract", case: Mapping[str, Any]) -> dict[str, Any]:
    kind = case["kind"]
    if kind not in _KINDS:
        raise UsageError(f"kind {kind!r}: write one of {', '.join(_KINDS)}")
    given = case["input"]
    if not isinstance(given, MAPPING):
        raise UsageError(f"input is a JSON {type(given).__name__}; write {_FORM}")
    if kind == "arguments":
        from failwise.arguments.contract import answer as read

        return {
            "category": "model_output",
            "retry": "after_fix",
            "effect": "not_sent",
            "repaired": read(given)["arguments"],
        }
    return contract.verdict(kind, given)


def _one(arguments: argparse.Namespace, lang: Language) -> bool:
    from failwise.cli import verdict
    from failwise.evidence import from_text

    contract = _contract(arguments.rules)
    failure = contract.classifier.classify(
        from_text(read_text(arguments.text)), trail=arguments.trail
    )
    if arguments.json:
        print_json(_data(failure))
        return failure is not None
    out = console()
    if failure is None:
        out.print(say(lang, "no_failure"))
        return False
    out.print(facts(verdict.rows(failure, lang)))
    if arguments.trail:
        out.print()
        out.print(say(lang, "trail"), style="bold")
        out.print(facts(_trail(failure, lang)))
    return True


def _data(failure: Failure | None) -> dict[str, Any]:
    """The failure as data, with the retry verdict beside it; a success says so."""
    from failwise.classify.contract import retry_verdict

    if failure is None:
        return {"failed": False, "category": "success", "code": None, "retry": "no"}
    return {"failed": True, "retry": retry_verdict(failure), **failure.to_dict()}


def _trail(failure: Failure, lang: Language) -> Iterator[tuple[str, object]]:
    trail = failure.detail("trail") or {}
    evidence = trail.get("evidence") or {}
    yield "", ", ".join(f"{name}={value}" for name, value in evidence.items())
    for row in trail.get("spoke") or ():
        yield (
            say(lang, "spoke"),
            f"{row.get('rule')} → {row.get('code')} ({say(lang, 'strength')} {row.get('strength')})",
        )
    yield say(lang, "winner"), trail.get("winner")
    yield say(lang, "why"), trail.get("why")


def _each_line(arguments: argparse.Namespace, lang: Language) -> bool:
    from rich.text import Text

    from failwise.classify.contract import retry_verdict

    name = arguments.text or "-"
    columns = ("line", "code", "effect", "retry", "message")
    shown = table(*(say(lang, column) for column in columns), right=(0,), whole=(0, 1, 2, 3))
    seen = found = 0
    with opened(name) as file:
        for number, failure in _failures(file, _contract(arguments.rules)):
            seen = number
            if failure is None:
                continue
            found += 1
            if arguments.json:
                print_json({"line": number, **_data(failure)})
            else:
                shown.add_row(
                    str(number),
                    failure.code,
                    named(lang, "effect", failure.effect.value)
                    .partition(":")[0]
                    .partition("：")[0],
                    named(lang, "retry", retry_verdict(failure)),
                    Text(clean(failure.message[:_SHOWN])),
                )
    if not arguments.json:
        console().print(shown if found else say(lang, "no_failures", lines=seen))
    return found > 0


def _failures(file: IO[bytes], contract: "Contract") -> Iterator[tuple[int, Failure | None]]:
    for number, line in lines(file):
        yield number, contract.failure(line) if line and not line.isspace() else None
