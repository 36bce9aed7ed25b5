"""A simulated chat model: it works through a chain of tools, and after an error it does what recorded
models did (`model_behaviour.toml`): wanders to another tool, changes arguments, repeats, or stops."""

import json
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RECORDED: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("model_behaviour.toml").read_text("utf-8")
)
_FAILED = ("FAILED", "NOT SENT", "Error", "Before you finish")
_KINDS = (
    ("not found", ("not_found", "404")),
    ("value refused", ("invalid_request", "400", "422", "model_output")),
    ("precondition", ("auth", "401", "403", "business")),
)


class SimulatedModel:
    """Works through `chain`: tool names, each of which gives the ticket that the next one needs.

    Its `complete` has the shape that `failwise.Agent` takes, and any loop can call. `asides` are
    tools it wanders to. At the end it claims what it believes. `thinks` is called in each turn: there
    a stepped clock can move.
    """

    def __init__(
        self,
        chain: Sequence[str],
        start: str,
        asides: Sequence[str],
        random: random.Random,
        thinks: Callable[[], object] | None = None,
    ) -> None:
        self._chain, self._asides, self._random = list(chain), list(asides), random
        self._ticket = start
        self._step = 0
        self._number = 0
        self._wandering = False
        self._returns = False
        self._notes = 0
        self._thinks = thinks
        self.turns = 0

    @property
    def believes_done(self) -> bool:
        """Every step of the chain gave it a ticket."""
        return self._step >= len(self._chain)

    def complete(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The next message of the assistant."""
        self.turns += 1
        if self._thinks is not None:
            self._thinks()
        last = messages[-1]
        text = last.get("content") or ""
        if last["role"] == "user" and not text.startswith(_FAILED):
            return self._call() if self.turns == 1 else self._end()
        if text.startswith(_FAILED):
            return self._after_error(text)
        if self._wandering:
            self._wandering = False
            return self._call() if self._returns else self._end()
        ticket = _ticket(text)
        if ticket is None and self._step < len(self._chain) - 1:
            return self._after_error(text)  # nothing to go on with, whatever it says
        self._ticket = ticket or self._ticket
        self._step += 1
        return self._end() if self.believes_done else self._call()

    def _after_error(self, text: str) -> dict[str, Any]:
        if self.believes_done:
            return self._end()
        kind = next((k for k, marks in _KINDS if any(m in text for m in marks)), "not executed")
        rates = RECORDED["next"][kind]
        ways = ("another_tool", "other_arguments", "identical", "stopped")
        way = self._random.choices(ways, [rates[name] for name in ways])[0]
        if self._wandering and way == "another_tool":
            way = "stopped"
        self._wandering = False
        if way == "stopped":
            return self._end()
        if way == "identical":
            return self._call(broken=False)
        if way == "other_arguments":
            self._notes += 1
            return self._call(broken=False, note=f"attempt {self._notes}")
        back, of = rates["came_back"]
        self._wandering, self._returns = True, self._random.random() < back / of
        return self._message(self._random.choice(self._asides), "{}")

    def _call(self, *, broken: bool | None = None, note: str | None = None) -> dict[str, Any]:
        arguments: dict[str, Any] = {"ticket": self._ticket}
        if note is not None:
            arguments["note"] = note
        text = json.dumps(arguments)
        recorded = RECORDED["arguments"]
        if broken is None and self._random.random() < recorded["not_json"] / recorded["calls"]:
            text = text.replace('"', "'")
        elif broken is None:
            wrong = recorded["against_schema"] / recorded["calls"]
            if self._random.random() < wrong:
                text = json.dumps({**arguments, "priority": "2"})
        return self._message(self._chain[self._step], text)

    def _message(self, name: str, arguments: str) -> dict[str, Any]:
        self._number += 1
        function = {"name": name, "arguments": arguments}
        call = {"id": f"call_{self._number}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _end(self) -> dict[str, Any]:
        text = "Everything is done." if self.believes_done else "I could not finish this."
        return {"role": "assistant", "content": text}


def _ticket(text: str) -> str | None:
    """The ticket in a tool's answer, notes before it left aside."""
    for line in reversed(text.splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("ticket"), str):
            return str(value["ticket"])
    return None
