"""Asking chat models: each request is a call of the runtime like any other, and where one model has
nothing left to give, the next takes over."""

from collections.abc import Callable, Sequence
from typing import Any

from failwise.agent.budget import Spending
from failwise.agent.context import Context
from failwise.agent.messages import Completion
from failwise.agent.models import Model
from failwise.agent.transcript import Transcript
from failwise.runtime.dialects import descriptions
from failwise.runtime.run import Run
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, StopReason
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

_NARROWINGS = 3
"""How often a history that is too long for a model is made shorter before the next one is asked."""
_FOR_THE_TASK = frozenset({Category.AUTH, Category.BUSINESS, Category.SECURITY})
"""Failures of a model that no later request of this task cures."""
_ANYWHERE = frozenset({"runtime.cancelled", "runtime.deadline", "model_output.content_filter"})
"""Failures that the next model would meet as well."""

Emit = Callable[..., None]


@record
class Reply:
    """What came of asking: a completion by `model`, or the failure of the last one asked (None: the
    tokens of all are spent)."""

    completion: Completion | None
    model: Model
    result: ToolResult[Any] | None


class Transport:
    """The models of one task, the first preferred. `degraded_to` names the one that took over."""

    def __init__(
        self,
        models: Sequence[Model],
        run: Run,
        spending: Spending,
        context: Context,
        emit: Emit,
    ) -> None:
        self.models, self._spending, self._context, self._emit = models, spending, context, emit
        self._run = run
        # Runs of their own: a credential of a tool that is dead stops the tools, not the model,
        # which still has to say so.
        self._runs = [Run(run.runtime, run.id, run.deadline, {}) for _ in models]
        self._gone: set[int] = set()
        self._count = 0
        self.current = 0
        self.degraded_to: str | None = None
        self.results: list[ToolResult[Any]] = []

    async def ask(self, transcript: Transcript, tools: Sequence[ToolSpec], describe: Any) -> Reply:
        """The next completion, from the first model that can give one."""
        last: ToolResult[Any] | None = None
        model = self.models[0]
        for number, model in enumerate(self.models):
            if number in self._gone or self._spending.spent(model):
                continue
            completion, last = await self._ask(number, transcript, tools, describe)
            if completion is not None:
                self._answered(number)
                return Reply(completion, model, last)
            failure = last.failure
            if failure is not None and failure.category in _FOR_THE_TASK:
                self._gone.add(number)
            if failure is None or failure.code in _ANYWHERE:
                break
        return Reply(None, model, last)

    def _answered(self, number: int) -> None:
        model = self.models[number]
        if number != self.current:
            self._emit("model", model=model.name)
        self.current = number
        self._run.model = model.name
        if number:
            self.degraded_to = model.name

    async def _ask(
        self, number: int, transcript: Transcript, tools: Sequence[ToolSpec], describe: Any
    ) -> tuple[Completion | None, ToolResult[Any]]:
        model = self.models[number]
        narrowed = 0
        while True:
            messages = transcript.render(model.dialect, model.name)
            schemas = descriptions(tools, model.dialect, describe)
            result = await self._call(number, model, messages, schemas)
            self.results.append(result)
            if result.success:
                completion: Completion = result.unwrap()
                said = completion.text + "".join(call.name + call.text for call in completion.calls)
                self._spending.result_tokens += transcript.result_tokens
                self._spending.asked(model, completion.usage, _Sent(messages, schemas), said)
                return completion, result
            self._spending.turns += 1
            if not _too_long(result.failure) or narrowed >= _NARROWINGS:
                return None, result
            narrowed += 1
            self._context.narrow(transcript)

    async def _call(
        self, number: int, model: Model, messages: list[Any], schemas: list[Any]
    ) -> ToolResult[Any]:
        """One request as a call: classified, guarded, repeated where that is safe, recorded."""
        self._count += 1
        heard = False

        def on_text(piece: str) -> None:
            nonlocal heard
            heard = True
            self._emit("text", text=piece, model=model.name)

        async def complete(_: Arguments, context: CallContext) -> Completion:
            nonlocal heard
            if heard:  # an attempt before broke off: what it said does not count
                heard = False
                self._emit("retracted", model=model.name)
            return await model.complete(messages, schemas, on_text)

        spec = ToolSpec(
            f"model:{model.name}",
            call_async=complete,
            read_only=True,  # asking again changes nothing in the world
            timeout=model.limits.whole,
            upstream=model.upstream,
            profile=model.profile,
            success=lambda value: isinstance(value, Completion),
            kind="model",
        )
        run = self._runs[number]
        options = {"call_id": f"model-{self._count}"}
        result = await run.runtime._call(spec, ({},), options, run)
        if number and result.success:
            result.degraded_to = model.name
        return result

    @property
    def all_spent(self) -> bool:
        """No model is left whose tokens are not used up."""
        left = [n for n in range(len(self.models)) if n not in self._gone]
        return bool(left) and all(self._spending.spent(self.models[n]) for n in left)


class _Sent(str):
    """The text of a request, made only where its tokens must be estimated."""

    __slots__ = ()

    def __new__(cls, messages: list[Any], schemas: list[Any]) -> "_Sent":
        import json

        return super().__new__(
            cls, json.dumps([messages, schemas], ensure_ascii=False, default=str)
        )


def _too_long(failure: Failure | None) -> bool:
    return failure is not None and failure.code == "invalid_request.too_large"


def hopeless(result: ToolResult[Any], can_ask: bool) -> bool:
    """Nobody in the loop can cure this: going on would only be wandering."""
    failure = result.failure
    if failure is None or result.stop_reason is StopReason.CANCELLED:
        return False
    if result.interrupts == "run":
        return True
    if failure.category is Category.RUNTIME:
        return False
    if result.suggested_action is Action.ABORT:
        return True
    return failure.code in _ONLY_THE_USER and not can_ask


_ONLY_THE_USER = frozenset(
    {
        "business.insufficient_balance",
        "business.billing",
        "business.payment_declined",
        "business.quota_exhausted",
    }
)
