"""``failwise demo``: an agent's tool calls meet real faults over real sockets, and come back as data."""

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.cli.demo.scene import Scene
    from failwise.cli.demo.stage import Performance

MET = 0
MISSED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    from failwise.cli.terminal import add_common

    add_common(parser, json_help="print one JSON object with every scene's outcome")
    parser.add_argument(
        "--fast", action="store_true", help="short delays of our own; told waits are kept"
    )


def main(arguments: argparse.Namespace, scenes: "Sequence[Scene] | None" = None) -> int:
    """Run the scenes; 0 when every goal is met, 1 when one is missed.

    The journal is where ``FAILWISE_JOURNAL`` says, else in a temporary folder: for whoever looks on it
    is left there, to be looked at with the dashboard.
    """
    from failwise.cli.demo.programme import SCENES
    from failwise.cli.terminal import language

    played = SCENES if scenes is None else tuple(scenes)
    with _journal(left=not arguments.json) as (path, kept), _direct():
        if arguments.json:
            return _as_json(played, path, fast=arguments.fast, kept=kept)
        return _on_screen(played, path, fast=arguments.fast, lang=language(arguments.lang))


def _on_screen(scenes: "Sequence[Scene]", journal: str, *, fast: bool, lang: Any) -> int:
    from failwise.cli.demo import finale
    from failwise.cli.demo.screen import Screen
    from failwise.cli.demo.stage import leaked, perform
    from failwise.cli.demo.wording import Wording
    from failwise.cli.terminal import console as make_console

    console, wording = make_console(), Wording(lang)
    console.record = True
    screen = Screen(console, wording)
    screen.opening(len(scenes), fast=fast)
    performance = perform(scenes, journal=journal, fast=fast, audience=screen)
    finale.show(performance, console, wording)
    printed = console.export_text()
    leaks = max(performance.leaks, leaked(performance.planted, printed))
    finale.summary(performance, leaks, console, wording, journal)
    return _code(performance, leaks)


def _as_json(scenes: "Sequence[Scene]", journal: str, *, fast: bool, kept: bool) -> int:
    import json

    from failwise.cli.demo.stage import leaked, perform
    from failwise.cli.terminal import print_json

    performance = perform(scenes, journal=journal, fast=fast, audience=None)
    told = _scenes(performance)
    printed = json.dumps(told, default=str)
    leaks = max(performance.leaks, leaked(performance.planted, printed))
    code = _code(performance, leaks)
    print_json(
        {
            "schema": 1,
            "success": code == MET,
            "seconds": round(performance.seconds, 3),
            "journal": journal if kept else None,
            "secrets": {"planted": len(performance.planted), "leaked": leaks},
            "requests": sum(outcome.sent for outcome in performance.outcomes),
            "calls": sum(outcome.scene.calls for outcome in performance.outcomes),
            "effects": sum(outcome.effects for outcome in performance.outcomes),
            "blind": {
                "requests": sum(one.sent for one in performance.blind.values()),
                "effects": sum(one.effects for one in performance.blind.values()),
            },
            "scenes": told,
            "report": performance.report.to_dict(),
        }
    )
    return code


def _scenes(performance: "Performance") -> list[dict[str, Any]]:
    return [
        {
            "name": outcome.scene.name,
            "success": not outcome.missed,
            "calls": outcome.scene.calls,
            "requests": outcome.requests,
            "unreached": outcome.unreached,
            "effects": {
                "asked": outcome.asked,
                "refused": outcome.refused,
                "told_done": outcome.told_done,
                "done": outcome.effects,
                "repeated": outcome.repeated,
            },
            "seconds": round(outcome.seconds, 3),
            "blind": {
                "requests": performance.blind[outcome.scene.name].sent,
                "effects": performance.blind[outcome.scene.name].effects,
            },
            "goals": [goal.to_dict() for goal in outcome.goals],
            "results": [result.to_dict() for result in outcome.results],
        }
        for outcome in performance.outcomes
    ]


def _code(performance: "Performance", leaks: int) -> int:
    met = leaks == 0 and not any(outcome.missed for outcome in performance.outcomes)
    return MET if met else MISSED


@contextmanager
def _journal(*, left: bool) -> Iterator[tuple[str, bool]]:
    """The journal's path, and whether it is kept. `left`: a temporary one is not taken away."""
    from failwise.journal.place import VARIABLE, locate

    if os.environ.get(VARIABLE):
        yield locate(None).address, True
        return
    if left:
        yield str(Path(tempfile.mkdtemp(prefix="failwise-demo-")) / "journal.db"), True
        return
    with tempfile.TemporaryDirectory(prefix="failwise-demo-") as directory:
        yield str(Path(directory) / "journal.db"), False


_SURROUNDINGS: dict[str, str | None] = {
    "no_proxy": "127.0.0.1,localhost",
    "NO_PROXY": "127.0.0.1,localhost",
    "FAILWISE": None,
}


@contextmanager
def _direct() -> Iterator[None]:
    """Loopback is reached directly and Failwise is switched on, whatever the environment says."""
    before = {name: os.environ.get(name) for name in _SURROUNDINGS}
    _set(_SURROUNDINGS)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
