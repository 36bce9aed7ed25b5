"""``failwise simulate``: a fleet of agents on a virtual clock, and what other policies would do."""

import argparse
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.terminal import add_common, clean, console, language, print_json, table
from failwise.vocabulary import documents
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from failwise.simulation.fleet import Progress

_EPILOG: Final = """\
examples:
  failwise simulate --list
  failwise simulate outage
  failwise simulate second_fault --compare blanket,failwise --svg storm.svg
  failwise simulate brown_out --agents 10000 --json
  failwise simulate outage --show > mine.toml      begin a scenario of your own

docs/simulation.md explains scenarios, figures and what the simulation leaves out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a built-in name, or a TOML file"
    )
    parser.add_argument("--list", action="store_true", help="what scenarios and policies there are")
    parser.add_argument("--show", action="store_true", help="print the scenario's file")
    parser.add_argument("--compare", metavar="A,B", help="which policies (default: the scenario's)")
    parser.add_argument("--svg", metavar="FILE", help="write a chart")
    parser.add_argument("--seed", type=int, metavar="N", help="another seed")
    parser.add_argument(
        "--agents", type=int, metavar="N", help="another number of agents, everything in proportion"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="another length")
    parser.add_argument(
        "--policy", metavar="FILE|PRESET", help="the policy of Failwise: default, batch, a file"
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Play a scenario and print how each policy fared."""
    from failwise.simulation.scenario import load

    lang = language(arguments.lang)
    if arguments.list:
        return _list(lang, as_json=arguments.json)
    if arguments.scenario is None:
        raise UsageError("say which scenario: a name of `failwise simulate --list`, or a TOML file")
    scenario = load(arguments.scenario)
    if arguments.show:
        sys.stdout.write(clean(scenario.text))
        return 0
    if arguments.agents is not None:
        scenario = scenario.scaled(arguments.agents)
    if arguments.seconds is not None:
        scenario = scenario.lasting(arguments.seconds)
    if arguments.seed is not None:
        scenario = replace(scenario, seed=arguments.seed)
    if arguments.policy is not None:
        scenario = replace(scenario, policy=_policy(arguments.policy))
    names = [name.strip() for name in (arguments.compare or "").split(",") if name.strip()]
    from failwise.simulation.fleet import compare

    with _progress(quiet=arguments.json) as progress:
        outcomes = compare(scenario, names, progress=progress)
    if arguments.svg is not None:
        from failwise.simulation.chart import chart

        try:
            Path(arguments.svg).write_text(chart(scenario, outcomes, lang=lang), "utf-8")
        except OSError as error:
            raise UsageError(f"--svg {arguments.svg}: {error.strerror}") from error
    if arguments.json:
        print_json(
            {
                "schema": 1,
                "scenario": scenario.name,
                "title": scenario.title(lang),
                "seconds": scenario.seconds,
                "seed": scenario.seed,
                "agents": scenario.agents.count,
                "processes": scenario.agents.processes,
                "outcomes": [outcome.to_dict() for outcome in outcomes],
            }
        )
        return 0
    from failwise.simulation.render import render

    render(scenario, outcomes, console(), lang=lang)
    return 0


def _policy(given: str) -> Any:
    """A preset's name as it is; a file as its tables, checked with file and line."""
    from failwise.policy.table import PRESETS, load

    if given in PRESETS:
        return given
    load(given)
    data = documents.parsed(Path(given).read_text("utf-8"), str(given))
    return data.get("policy", data)


def _list(lang: Language, *, as_json: bool) -> int:
    from failwise.simulation.contenders import contender, names, title
    from failwise.simulation.scenario import built_in, load
    from failwise.simulation.wording import words

    scenarios = [load(name) for name in built_in()]
    contenders = [contender(name, scenarios[0]) for name in names()]
    if as_json:
        print_json(
            {
                "scenarios": {each.name: each.title(lang) for each in scenarios},
                "contenders": {each.name: title(each, lang) for each in contenders},
            }
        )
        return 0
    out, said = console(), words(lang)
    for heading, rows in (
        (said["list_title"], [(each.name, each.title(lang)) for each in scenarios]),
        (said["contenders_title"], [(each.name, title(each, lang)) for each in contenders]),
    ):
        shown = table(heading, "")
        for row in rows:
            shown.add_row(*row)
        out.print(shown)
    return 0


def _progress(*, quiet: bool) -> "AbstractContextManager[Progress | None]":
    """A bar on standard error, where a person watches."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return _Bar()


class _Bar:
    """One bar for each policy, as its virtual time passes."""

    def __enter__(self) -> "Progress":
        from rich.console import Console
        from rich.progress import Progress

        self._bars = Progress(console=Console(stderr=True), transient=True)
        self._of: dict[str, Any] = {}
        self._bars.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def _tell(self, name: str, share: float) -> None:
        if name not in self._of:
            self._of[name] = self._bars.add_task(name, total=1.0)
        self._bars.update(self._of[name], completed=share)
