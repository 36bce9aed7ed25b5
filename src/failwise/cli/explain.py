"""``failwise explain``: a verdict with its trail, of a text, a pasted exception, an HTTP answer, or a
call that a journal holds."""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from failwise.cli import record, verdict
from failwise.cli.inputs import read_text
from failwise.cli.terminal import (
    add_common,
    console,
    facts,
    language,
    print_json,
    say,
    table,
)
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.evidence import Evidence
    from failwise.vocabulary.failure import Failure

_ANSWER = ("body", "headers")

_EPILOG = """\
examples:
  failwise explain "429 Too Many Requests: retry in 20s"
  failwise explain answer.json          an HTTP answer: {"status", "headers", "body", "method", "url"}
  failwise explain --result result.json what a tool returned
  failwise explain answer.json --profile stripe
  failwise explain "Widget 7 is in limbo" --rules rules.toml
  failwise explain call_7               a call that the journal holds, with the decision of each attempt
  failwise explain 1284 --journal records/journal.db

A word that is the id of a call in the journal (FAILWISE_JOURNAL, else .failwise/journal.db), or the
number of its record, is that call; everything else is a text. What is plainly the id of a call (call_7,
toolu_01, a UUID) and stands in no journal is a mistake, and so is said. The exit code is 0 whatever was
found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT|FILE|CALL_ID|-", help="what to read")
    parser.add_argument("--result", action="store_true", help="it is what a tool returned")
    parser.add_argument("--profile", metavar="ID", help="the provider that answered")
    parser.add_argument("--rules", action="append", metavar="FILE", help="rules of your own")
    parser.add_argument("--journal", metavar="FILE", help="look for the call there")
    parser.add_argument("--run", metavar="ID", help="the call of this run")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Show the evidence found, the rules that spoke, which one won and why."""
    from failwise.classify import Classifier

    lang = language(arguments.lang)
    found = record.find(arguments.text, arguments.journal, arguments.run)
    if found is not None:
        record.show(found, lang, as_json=arguments.json)
        return 0
    text = read_text(arguments.text)
    rules = None
    if arguments.rules:
        from failwise.classify.own import OwnRules

        rules = OwnRules.load(arguments.rules)
    classifier = Classifier(rules=rules)
    # Each reads evidence of its own: a verdict may take the evidence further apart.
    trail = classifier.explain(_evidence(text, arguments.result), profile=arguments.profile)
    failure = classifier.classify(_evidence(text, arguments.result), profile=arguments.profile)
    if arguments.json:
        print_json({"failure": failure.to_dict() if failure else None, **trail})
        return 0
    out = console()
    out.print(facts(verdict.rows(failure, lang)) if failure else say(lang, "no_failure"))
    out.print()
    out.print(say(lang, "evidence_found"), style="bold")
    out.print(facts(_found(trail["evidence"])))
    if trail["spoke"]:
        out.print()
        out.print(_spoke(trail, lang))
    out.print()
    out.print(facts(_ending(trail, failure, lang)))
    return 0


def _evidence(text: str, returned: bool) -> "Evidence":
    from failwise.classify.drafts import evidence_of_answer
    from failwise.evidence import from_text, from_value

    data = _object(text)
    if returned:
        return from_value(data if data is not None else text)
    if data is None or not isinstance(data.get("status"), int) or data.keys().isdisjoint(_ANSWER):
        return from_text(text)
    return evidence_of_answer(data)


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object that the whole text is, else None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _found(evidence: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in evidence.items():
        if isinstance(value, list | tuple):
            shown = ", ".join(
                f"{one.get('seconds'):g} s ({one.get('source')})"
                if isinstance(one, Mapping)
                else str(one)
                for one in value
            )
            yield name, shown
        else:
            yield name, value


def _spoke(trail: Mapping[str, Any], lang: Language) -> object:
    names = ("rule", "code", "strength", "rule_origin")
    shown = table(*(say(lang, name) for name in names), right=(2,), whole=(0, 1, 2))
    for row in trail["spoke"]:
        mark = "→ " if row["rule"] == trail["winner"] else "  "
        shown.add_row(mark + row["rule"], row["code"], str(row["strength"]), row["origin"])
    return shown


def _ending(
    trail: Mapping[str, Any], failure: "Failure | None", lang: Language
) -> Iterator[tuple[str, object]]:
    yield say(lang, "winner"), trail["winner"]
    yield say(lang, "why"), trail["why"]
    if failure is not None:
        told = verdict.confidence(failure, lang)
        measured = trail.get("measured") or {}
        if failure.samples and measured.get("basis") in ("rule", "family"):
            group = measured["family"]["name"] if measured["family"] else ""
            told = f"{told} ({say(lang, 'basis_' + measured['basis'], family=group)})"
        yield say(lang, "confidence"), told
