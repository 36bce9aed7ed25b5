"""What a person sees while it runs: a scene at a time, a line an attempt."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from failwise.cli.demo.paragraphs import folded, paragraph
from failwise.cli.demo.scene import Goal, Outcome, Scene, Step
from failwise.cli.demo.wording import Wording
from failwise.cli.terminal import clean
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Attempt, Repair, ToolResult
from failwise.vocabulary.steps import Call

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 110
"""Columns from which a reason stands beside its attempt, and not below it."""
_INDENT = 5
_CODE = 33
_BEFORE_REASON = 2 + 3 + _CODE + 1 + 4 + 8
_REPAIRS_SHOWN = 3


class Screen:
    """Prints what happens, as it happens."""

    def __init__(self, console: "Console", wording: Wording) -> None:
        self._console, self._wording = console, wording

    def opening(self, scenes: int, *, fast: bool) -> None:
        """What is going to be seen."""
        from rich.text import Text

        say = self._wording.say
        self._console.rule(Text(say("title"), style="bold"))
        paragraph(self._console, say("intro", count=scenes), style="dim")
        if fast:
            paragraph(self._console, say("hurried"), style="dim")

    def scene(self, number: int, total: int, scene: Scene) -> None:
        from rich.text import Text

        title = self._wording.of("titles", scene.name)
        self._console.print()
        self._console.print(Text.assemble((f" {number:>2}  ", "cyan"), (title, "bold")))
        paragraph(self._console, self._wording.of("stories", scene.name), _INDENT, "dim")

    def call(self, step: Step, copies: int) -> None:
        from rich.text import Text

        line = Text.assemble(
            "     ", (step.tool, "cyan"), " ", (clean(" ".join(step.arguments.split())), "dim")
        )
        if copies > 1:
            line.append("  " + self._wording.say("copies", count=copies))
        self._console.print(line, no_wrap=True, overflow="ellipsis")

    def attempt(self, call: Call, attempt: Attempt, *, nested: bool) -> None:
        failure = attempt.failure
        if failure is None or attempt.decision is None:
            return
        name = f"{call.tool.name}: {failure.code}" if nested else failure.code
        status = str(failure.http_status or "")
        duration = _duration(attempt.duration_ms) if attempt.number else ""
        number = str(attempt.number) if attempt.number else "–"
        reason = self._wording.reason(call, attempt)
        mark = ("↳", "dim") if nested else ("✗", "red")
        self._row(mark, "" if nested else number, name, status, duration, reason)

    def result(self, result: ToolResult[Any], *, nested: bool) -> None:
        """Only what was not said yet: how a success came about."""
        if not result.success:
            return
        say = self._wording.say
        last = result.attempts[-1] if result.attempts else None
        number, duration = "1", result.duration_ms
        if last is not None and last.failure is None:
            number, duration = str(last.number), last.duration_ms
        note = self._repairs(result.repairs)
        if nested:
            name = f"{result.tool_name}: {say('done')}"
            self._row(("↳", "dim"), "", name, "", _duration(duration), note)
        elif result.degraded_to is not None:
            name = say("done_by", name=result.degraded_to)
            self._row(("✓", "green"), "", name, "", "", note)
        elif result.verified:
            self._row(("✓", "green"), "", say("confirmed"), "", "", note)
        else:
            self._row(("✓", "green"), number, say("done"), "", _duration(duration), note)

    def outcome(self, outcome: Outcome) -> None:
        """Whether the scene's goals are met."""
        from rich.text import Text

        say, count = self._wording.say, self._wording.count
        if outcome.scene.copies > 1:
            self._crowd(outcome)
        missed = outcome.missed
        parts = [say("verdict_missed" if missed else "verdict_met")]
        parts.append(count("requests", outcome.requests))
        if outcome.asked:
            parts.append(count("effects", outcome.effects))
        parts.append(_duration(outcome.seconds * 1000))
        mark = ("✗ ", "red") if missed else ("✓ ", "green")
        style = "bold red" if missed else "dim"
        self._console.print(Text.assemble("     ", mark, (" · ".join(parts), style)))
        for goal in missed:
            self._console.print(Text("       " + self.miss(outcome, goal), style="red"))

    def miss(self, outcome: Outcome | None, goal: Goal) -> str:
        """One missed goal as a sentence."""
        say, of = self._wording.say, self._wording.of
        return say(
            "miss",
            scene=of("titles", outcome.scene.name) if outcome else say("overall"),
            call=say("miss_call", number=goal.call) if goal.call else "",
            goal=of("goals", goal.name),
            got=_plain(goal.got),
            wanted=_plain(goal.wanted),
        )

    def _crowd(self, outcome: Outcome) -> None:
        """Many calls at once: what they met, counted."""
        say = self._wording.say
        codes = Counter(r.failure.code if r.failure else say("done") for r in outcome.results)
        for code, number in codes.most_common():
            text = say("counted", count=number, code=code)
            self._row(("✗", "red"), "", text, "", "", "")
        text = say("crowd", count=len(outcome.results), sent=outcome.sent, most=outcome.scene.most)
        self._row(("→", "dim"), "", text, "", "", "")

    def _repairs(self, repairs: tuple[Repair, ...]) -> str:
        say = self._wording.say
        shown = [_repair(repair) for repair in repairs[:_REPAIRS_SHOWN]]
        if len(repairs) > _REPAIRS_SHOWN:
            shown.append("…")
        return say("repaired", text=", ".join(shown)) if shown else ""

    def _row(
        self,
        mark: tuple[str, str],
        number: str,
        name: str,
        status: str,
        duration: str,
        reason: str,
    ) -> None:
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        wide = self._console.width >= WIDE
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=1)
        grid.add_column(width=2, justify="right")
        if not (status or duration or reason):
            grid.add_column()
            grid.add_row(Text(*mark), number, Text(name))
        else:
            grid.add_column(width=_CODE)
            grid.add_column(width=3, style="dim")
            grid.add_column(width=7, justify="right", style="dim")
            if wide:
                grid.add_column(ratio=1)
                grid.expand = True
            cells: list[Text | str] = [Text(*mark), number, Text(name), status, duration]
            if wide:
                room = self._console.width - _INDENT - _BEFORE_REASON - 1
                cells.append(Text(folded(clean(reason), room)))
            grid.add_row(*cells)
        self._console.print(Padding(grid, (0, 1, 0, _INDENT)))
        if reason and not wide:
            paragraph(self._console, clean(reason), _INDENT + 5)


def _duration(milliseconds: float) -> str:
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.2f} s"


def _repair(repair: Repair) -> str:
    """One edit: the source where only the syntax changed, else the values as JSON."""
    syntax = repair.grade is Grade.LOSSLESS
    before, after = (
        value if syntax and isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in (repair.before, repair.after)
    )
    path = repair.path.removeprefix("/")
    return f"{path + ': ' if path and not syntax else ''}{before} → {after or '∅'}"


def _plain(value: Any) -> str:
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
