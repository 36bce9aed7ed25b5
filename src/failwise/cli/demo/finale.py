"""The end of the demonstration: what the model saw, the report, effects and requests, the sum."""

import shlex
from typing import TYPE_CHECKING, Any

from failwise.cli.demo.paragraphs import folded, paragraph
from failwise.cli.demo.scene import Goal, Outcome, missed
from failwise.cli.demo.screen import Screen
from failwise.cli.demo.stage import Performance
from failwise.cli.demo.wording import Wording
from failwise.cli.terminal import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show(performance: Performance, console: "Console", wording: Wording) -> None:
    """Everything after the last scene but the sum: `summary` comes when this has been checked."""
    from failwise.insight.render import render

    _what_the_model_saw(performance, console, wording)
    console.print()
    render(performance.report, console, lang=wording.lang)
    _effects(performance, console, wording)
    _requests(performance, console, wording)


def secrets_goal(leaks: int) -> Goal:
    """No planted secret may come out."""
    return Goal("secrets", 0, leaks, leaks == 0)


def summary(
    performance: Performance,
    leaks: int,
    console: "Console",
    wording: Wording,
    journal: str,
) -> None:
    """The sum: requests, effects, secrets, goals. `journal`: where it is kept."""
    say = wording.say
    outcomes, blind = performance.outcomes, performance.blind.values()
    compared = say(
        "comparison",
        sent=sum(outcome.sent for outcome in outcomes),
        calls=sum(outcome.scene.calls for outcome in outcomes),
        blind=sum(one.sent for one in blind),
        blind_effects=sum(one.effects for one in blind),
        effects=sum(outcome.scene.effects for outcome in outcomes),
    )
    wrongly = sum(max(0, one.told_done - one.effects) for one in blind)
    if wrongly:
        compared += say("space") + say("wrongly", count=wrongly)
    console.print()
    console.rule(style="dim")
    paragraph(console, compared)
    planted = len(performance.planted)
    if leaks:
        paragraph(console, say("secrets_leaked", leaks=leaks, count=planted), style="red")
    else:
        paragraph(console, say("secrets_kept", count=planted))
    paragraph(console, say("journal_kept"))
    # On a line of its own, however long, so that it can be copied.
    console.print(f"   failwise dashboard {clean(shlex.quote(journal))}", soft_wrap=True)
    _verdict(performance, leaks, console, wording)


def _verdict(performance: Performance, leaks: int, console: "Console", wording: Wording) -> None:
    outcomes = performance.outcomes
    screen = Screen(console, wording)
    count = sum(len(outcome.goals) for outcome in outcomes) + 1
    seconds = f"{performance.seconds:.0f}"
    misses = [screen.miss(outcome, goal) for outcome, goal in missed(outcomes)]
    if not secrets_goal(leaks).met:
        misses.append(screen.miss(None, secrets_goal(leaks)))
    if not misses:
        text = wording.say("all_met", count=count, scenes=len(outcomes), seconds=seconds)
        paragraph(console, text, style="bold green")
        return
    text = wording.say("some_missed", missed=len(misses), count=count, seconds=seconds)
    paragraph(console, text, style="bold red")
    for miss in misses:
        paragraph(console, f"✗ {miss}", 3, "red")


def _what_the_model_saw(performance: Performance, console: "Console", wording: Wording) -> None:
    from rich.panel import Panel
    from rich.text import Text

    console.print()
    console.rule(Text(wording.say("saw_title"), style="bold"))
    for outcome in performance.outcomes:
        if not outcome.scene.told:
            continue
        result = outcome.results[0]
        title = Text(wording.of("titles", outcome.scene.name), style="cyan")
        seen = clean(result.for_model(wording.lang))
        body = Text(folded(seen, console.width - 4))
        console.print(
            Panel(body, title=title, title_align="left", border_style="dim", padding=(0, 1))
        )


def _table(console: "Console", title: str) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print()
    console.rule(Text(title, style="bold"))
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_footer=True)


def _effects(performance: Performance, console: "Console", wording: Wording) -> None:
    """Per scene: effects asked for, less the refused ones, on the ledger; and the blind loop's."""
    from rich.text import Text

    say = wording.say
    rows = [outcome for outcome in performance.outcomes if outcome.asked]
    if not rows:
        return
    table = _table(console, say("effects_title"))
    table.add_column(say("scene"), say("total"))
    blind = [performance.blind[outcome.scene.name].effects for outcome in rows]
    for name, numbers in (
        ("asked", [outcome.asked for outcome in rows]),
        ("refused", [outcome.refused for outcome in rows]),
        ("due", [outcome.due for outcome in rows]),
        ("ledger", [outcome.effects for outcome in rows]),
        ("repeated", [outcome.repeated for outcome in rows]),
        ("blind_ledger", blind),
    ):
        table.add_column(say(name), str(sum(numbers)), justify="right")
    for outcome, number in zip(rows, blind, strict=True):
        right = outcome.due == outcome.effects == outcome.scene.effects
        table.add_row(
            wording.of("titles", outcome.scene.name),
            str(outcome.asked),
            str(outcome.refused),
            str(outcome.due),
            Text(str(outcome.effects), style="green" if right else "bold red"),
            str(outcome.repeated),
            Text(str(number), style="" if number == outcome.scene.effects else "yellow"),
        )
    console.print(table)
    paragraph(console, say("effects_note"), style="dim")


def _requests(performance: Performance, console: "Console", wording: Wording) -> None:
    """Per scene: requests sent, per call, the goal, and what the blind loop sent."""
    from rich.text import Text

    say, outcomes = wording.say, performance.outcomes
    calls = sum(outcome.scene.calls for outcome in outcomes)
    sent = sum(outcome.sent for outcome in outcomes)
    table = _table(console, say("requests_title"))
    table.add_column(say("scene"), say("total"))
    for name, footer in (
        ("calls", str(calls)),
        ("sent", str(sent)),
        ("per_call", _share(sent, calls)),
        ("goal", ""),
        ("blind", str(sum(one.sent for one in performance.blind.values()))),
    ):
        table.add_column(say(name), footer, justify="right")
    for outcome in outcomes:
        scene = outcome.scene
        blind = performance.blind[scene.name].sent
        table.add_row(
            wording.of("titles", scene.name),
            str(scene.calls),
            str(outcome.sent),
            _per_call(outcome),
            f"{'≤ ' if scene.outage else ''}{_share(scene.most, scene.calls)}",
            Text(str(blind), style="yellow" if blind > outcome.sent else ""),
        )
    console.print(table)
    paragraph(console, say("blind_note"), style="dim")


def _per_call(outcome: Outcome) -> Any:
    from rich.text import Text

    due, got = outcome.scene.most, outcome.sent
    right = got <= due if outcome.scene.outage else got == due
    return Text(_share(got, outcome.scene.calls), style="green" if right else "bold red")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "0"
