"""`Agent`: a chat model and a runtime, put together into the loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal

from failwise.agent.budget import Budget, Spending
from failwise.agent.builtin import AskUser
from failwise.agent.loop import Task
from failwise.agent.messages import ToolCall
from failwise.agent.models import Model
from failwise.agent.report import AgentResult
from failwise.agent.transcript import Entry
from failwise.runtime.run import Run
from failwise.runtime.runtime import Runtime
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Attempt, Language, ToolResult
from failwise.vocabulary.steps import Call
from failwise.vocabulary.words import VALUE_LIMIT

Kind = Literal[
    "text",
    "retracted",
    "answer",
    "call",
    "retry",
    "wait",
    "result",
    "model",
    "reminder",
    "limit",
    "end",
]


@record
class Event:
    """Something that happened in a task.

    ``text``: a piece of the model's text as it streams; ``retracted``: the pieces so far do not
    count, the request is made anew; ``answer``: the model's whole turn; ``call`` and ``result``: a
    tool call begins, ends; ``retry``: an attempt of a tool or a model failed (`attempt`, `tool`) and what was
    decided; ``wait``: a call that cannot be sent yet (an open circuit) is waited for; ``model``: another model took over; ``reminder``: the model was told what is left
    failed; ``limit``: a limit was reached (`text`); ``end``: the `outcome`.
    """

    kind: Kind
    text: str = ""
    model: str | None = None
    call: ToolCall | None = None
    result: ToolResult[Any] | None = None
    tool: str | None = None
    attempt: Attempt | None = None
    outcome: AgentResult | None = None


class Agent:
    """A chat model that works with the tools of a runtime until its task is done.

    `model`: an adapter (`OpenAIChat`, `OpenAIResponses`, `AnthropicMessages` of
    ``failwise.agent``) or any object with one `complete` method (`ChatModel`). `models` instead:
    several, the first preferred; the next one takes over where one has no quota, no credit or no tokens
    left, or does not answer.

    `instructions`: the system prompt. `tools`: names of the runtime's tools that it may use (None:
    all). `budget`: what a task may use. `rounds`: corrections of one kind of mistake, and calls in a
    row that are not sent, before an end is made of it. `parallel`: calls at once. `result_limit`:
    characters of one tool result (at most 4000), `context_tokens`: of the whole history, estimated.
    `patience`: seconds that a call which may be sent again so soon is waited for (once), before the
    model is told.
    `ask_user`: a function, sync or async, of a question, which the model may then ask; it gives the
    answer, or None. `trouble`: descriptions say which tools fail just now. `remind`: a model that ends
    while calls are left failed is told so once. `lang`: of all texts that the loop itself says.

    Tool calls are the runtime's: repaired, repeated, claimed and recorded as any other. A call that
    failed and is asked for again unchanged is answered without being sent. Raises `UsageError` for
    options that cannot work.
    """

    def __init__(
        self,
        model: Any = None,
        runtime: Runtime | None = None,
        *,
        models: Sequence[Any] = (),
        instructions: str = "",
        tools: Sequence[str] | None = None,
        budget: Budget | None = None,
        rounds: int = 3,
        parallel: int = 8,
        result_limit: int = VALUE_LIMIT,
        context_tokens: int = 64_000,
        patience: float = 60.0,
        ask_user: AskUser | None = None,
        trouble: bool = True,
        remind: bool = True,
        lang: Language = "en",
    ) -> None:
        if (model is None) == (not models):
            raise UsageError("Agent(...): give one model, or models=[first, second, ...]")
        if runtime is None:
            raise UsageError("Agent(model, runtime): give the failwise.Runtime with the tools")
        self.models = [Model(given) for given in ([model] if model is not None else models)]
        for name, value, most in (
            ("rounds", rounds, 1000),
            ("parallel", parallel, 1000),
            ("result_limit", result_limit, VALUE_LIMIT),
            ("context_tokens", context_tokens, 100_000_000),
        ):
            least = 400 if name == "result_limit" else 1
            if isinstance(value, bool) or not least <= value <= most:
                raise UsageError(f"Agent({name}={value!r}): say {least} to {most}")
        if lang not in ("en", "zh"):
            raise UsageError(f"Agent(lang={lang!r}): say 'en' or 'zh'")
        if ask_user is not None and not callable(ask_user):
            raise UsageError(f"Agent(ask_user={ask_user!r}): give a function of a question")
        self.budget = budget or Budget()
        Spending(self.budget)
        self.runtime, self.instructions, self.lang = runtime, instructions, lang
        runtime._chosen(tools)
        self.tools = None if tools is None else tuple(tools)
        if isinstance(patience, bool) or not 0 <= patience <= 86_400:
            raise UsageError(f"Agent(patience={patience!r}): say seconds from 0 to 86400")
        self.rounds, self.parallel, self.patience = rounds, parallel, patience
        self.result_limit, self.context_tokens = result_limit - 200, context_tokens
        self.ask_user, self.trouble, self.remind = ask_user, trouble, remind

    def offers(self, name: str) -> bool:
        """This tool of the runtime is one of the agent's."""
        return name in (self.runtime._tools if self.tools is None else self.tools)

    async def run(
        self,
        task: str,
        *,
        id: str | None = None,
        deadline: Any = None,
        credentials: Mapping[str, Any] | None = None,
        confirm: Callable[..., Any] | None = None,
        history: Sequence[Entry] = (),
    ) -> AgentResult:
        """Work on a task to its end. Never raises because a tool or a model failed.

        `id`, `deadline`, `credentials` and `confirm` are those of `Runtime.run`; `history` is that
        of an earlier result, to go on from. Cancellation passes through, after the calls under way
        are recorded.
        """
        return await self._perform(task, history, _silent, id, deadline, credentials, confirm)

    def run_sync(self, task: str, **options: Any) -> AgentResult:
        """`run` without a loop of one's own, on the background loop of the process."""
        from failwise.runtime import background

        result: AgentResult = background.submit(self.run(task, **options)).result()
        return result

    async def stream(
        self,
        task: str,
        *,
        id: str | None = None,
        deadline: Any = None,
        credentials: Mapping[str, Any] | None = None,
        confirm: Callable[..., Any] | None = None,
        history: Sequence[Entry] = (),
    ) -> AsyncIterator[Event]:
        """`run` as events, the last of which has the outcome. Leaving it early cancels the task."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def emit(kind: Kind, **facts: Any) -> None:
            queue.put_nowait(Event(kind, **facts))

        async def work() -> AgentResult:
            try:
                return await self._perform(
                    task, history, emit, id, deadline, credentials, confirm, watch=True
                )
            finally:
                queue.put_nowait(None)

        working = asyncio.ensure_future(work())
        try:
            while (event := await queue.get()) is not None:
                yield event
            await working
        finally:
            if not working.done():
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working

    async def _perform(
        self,
        task: str,
        history: Sequence[Entry],
        emit: Callable[..., None],
        id: str | None,
        deadline: Any,
        credentials: Mapping[str, Any] | None,
        confirm: Callable[..., Any] | None,
        *,
        watch: bool = False,
    ) -> AgentResult:
        async with self.runtime.run(
            id, deadline=deadline, credentials=credentials, confirm=confirm
        ) as run:
            working = Task(self, run, self.models, history, emit)
            with _watched(self.runtime, run, emit) if watch else contextlib.nullcontext():
                return await working.perform(task)


def _silent(*_: Any, **__: Any) -> None:
    """Nobody listens."""


@contextlib.contextmanager
def _watched(runtime: Runtime, run: Run, emit: Callable[..., None]) -> Any:
    """Failed attempts of this run as events."""
    loop = asyncio.get_running_loop()

    def heard(call: Call, attempt: Attempt) -> None:
        if call.run_id == run.id:
            name = call.tool.name
            loop.call_soon_threadsafe(lambda: emit("retry", tool=name, attempt=attempt))

    runtime.on_attempt(heard)
    try:
        yield
    finally:
        runtime._attempt_callbacks.remove(heard)
