"""Budgets of a task: what may be spent, what was, and which limit is reached."""

from collections.abc import Mapping
from typing import Any, Literal

from failwise.agent.messages import Usage
from failwise.agent.models import Model
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.tokens import estimated

OnLimit = Literal["finish", "stop", "ask"]
What = Literal["turns", "tokens", "money", "calls", "seconds"]


@record
class ToolBudget:
    """What one tool may use in one task: `calls`, `seconds` in it, `tokens` of its results
    (estimated), `money` at `price` a call (which also counts for the task). None: no limit."""

    calls: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    money: float | None = None
    price: float = 0.0


@record
class Budget:
    """What one task may use. None: no limit.

    `turns`: requests to models. `tokens`: in and out, for each model: when the first model's are
    spent, the next one takes over with as many of its own. `money`: over all models with prices and
    tools with a price. `calls`: tool calls. `seconds`: wall time. `tools`: by tool name, a `ToolBudget`
    or a number of calls. `on_limit`: ``finish`` lets the model answer once more, without tools, with
    what it has; ``stop`` ends at once; ``ask`` asks the user whether as much again may be used
    (without `ask_user`: as ``finish``). After `seconds`, and at a tool's own limit, nobody is asked.
    """

    turns: int | None = 100
    tokens: int | None = None
    money: float | None = None
    calls: int | None = None
    seconds: float | None = None
    tools: Mapping[str, ToolBudget | int] | None = None
    on_limit: OnLimit = "finish"


class Spending:
    """What one task has used so far."""

    def __init__(self, budget: Budget) -> None:
        for name in ("turns", "tokens", "money", "calls", "seconds"):
            given = getattr(budget, name)
            bad = isinstance(given, bool) or not isinstance(given, int | float | None)
            if bad or (given is not None and given <= 0):
                raise UsageError(f"Budget({name}={given!r}): say a number above 0, or None")
        if budget.on_limit not in ("finish", "stop", "ask"):
            raise UsageError(f"Budget(on_limit={budget.on_limit!r}): 'finish', 'stop' or 'ask'")
        self.budget = budget
        self.usage = Usage()
        self.by_model: dict[str, int] = {}
        self.money = 0.0
        self.turns = self.calls = 0
        self.result_tokens = 0
        """Tokens of tool results, summed over all requests: what was read again and again."""
        self.estimated = False
        """Some provider told no usage."""
        self._allowed = 1
        self._tools = {
            name: ToolBudget(calls=given) if isinstance(given, int) else given
            for name, given in (budget.tools or {}).items()
        }
        self._tool_use: dict[str, list[float]] = {}

    def asked(self, model: Model, usage: Usage | None, sent: str, got: str) -> None:
        """A model answered; where it told no usage it is estimated from the texts."""
        if usage is None:
            self.estimated = True
            usage = Usage(estimated(sent), estimated(got))
        self.turns += 1
        self.usage = self.usage + usage
        self.by_model[model.name] = self.by_model.get(model.name, 0) + usage.total
        if model.prices is not None:
            self.money += model.prices.of(usage)

    def spent(self, model: Model) -> bool:
        """This model's tokens are used up."""
        limit = self.budget.tokens
        return limit is not None and self.by_model.get(model.name, 0) >= limit * self._allowed

    def reached(self, seconds: float) -> What | None:
        """The limit of the task that is reached, tokens apart (those are each model's)."""
        budget, allowed = self.budget, self._allowed
        if budget.seconds is not None and seconds >= budget.seconds:
            return "seconds"
        if budget.turns is not None and self.turns >= budget.turns * allowed:
            return "turns"
        if budget.money is not None and self.money >= budget.money * allowed:
            return "money"
        if budget.calls is not None and self.calls >= budget.calls * allowed:
            return "calls"
        return None

    def extend(self) -> None:
        """As much again may be used."""
        self._allowed += 1

    def take_call(self, tool: str) -> What | None:
        """Count a call about to be made; or say which of its limits forbids it."""
        limit = self._tools.get(tool)
        used = self._tool_use.setdefault(tool, [0, 0.0, 0, 0.0])
        calls = self.budget.calls
        if calls is not None and self.calls >= calls * self._allowed:
            return "calls"
        if limit is not None:
            names: tuple[What, ...] = ("calls", "seconds", "tokens", "money")
            for name, amount in zip(names, used, strict=True):
                most = getattr(limit, name)
                if most is not None and amount >= most:
                    return name
            used[3] += limit.price
            self.money += limit.price
        used[0] += 1
        self.calls += 1
        return None

    def called(self, result: ToolResult[Any], tokens: int) -> None:
        """A tool call ended."""
        used = self._tool_use.setdefault(result.tool_name, [0, 0.0, 0, 0.0])
        used[1] += result.duration_ms / 1000
        used[2] += tokens
