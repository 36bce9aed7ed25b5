"""One task: the model is asked, its calls are made, until it ends or somebody else must act."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from failwise.agent import builtin
from failwise.agent.budget import Spending, What
from failwise.agent.conduct import Conduct, Verdict, essence, fingerprint, harmless
from failwise.agent.context import Context
from failwise.agent.messages import Completion, ToolCall
from failwise.agent.models import Model
from failwise.agent.report import AgentResult, Made, Status, concluded, shown, unresolved
from failwise.agent.transcript import Answered, Entry, Transcript, Turn
from failwise.agent.transport import Emit, Transport, hopeless
from failwise.runtime.run import Run
from failwise.runtime.trouble import described
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, StopReason
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.sentences import say
from failwise.vocabulary.spec import ToolSpec, resolve_flag
from failwise.vocabulary.tokens import estimated

if TYPE_CHECKING:
    from failwise.agent.agent import Agent

_BUDGET_WINDOW = 10.0
"""Seconds until a retry budget that others have used up has room again (`guards/defaults.toml`)."""
_MUST_SHOW = 5
"""Failed calls that a reminder names."""


class Task:
    """The state of one task, from its first word to its result."""

    def __init__(
        self,
        agent: "Agent",
        run: Run,
        models: Sequence[Model],
        history: Sequence[Entry],
        emit: Emit,
    ) -> None:
        self.agent, self.run, self.runtime, self.emit = agent, run, run.runtime, emit
        self.lang = agent.lang
        self.spending = Spending(agent.budget)
        self.context = Context(agent.result_limit, agent.context_tokens, agent.lang)
        self.conduct = Conduct(agent.rounds)
        self.transcript = Transcript(agent.instructions, history)
        self.transport = Transport(models, run, self.spending, self.context, emit)
        self.made: list[Made] = []
        self._began = self.runtime.clock.monotonic()
        self._slots = asyncio.Semaphore(agent.parallel)
        self._ids: set[str] = set()
        self._text: list[str] = []
        self._reminded = not agent.remind
        self._continued = False
        self._finishing: What | None = None

    async def perform(self, task: str) -> AgentResult:
        """Work until there is a result."""
        self.transcript.say(task)
        while True:
            reached = self._reached()
            over = reached is not None and self._finishing is not None
            if reached is not None and (over or not await self._go_on(reached)):
                return self._end("limit", limit=self._finishing or reached)
            self.context.tidy(self.transcript)
            reply = await self.transport.ask(
                self.transcript, self._tools(), await self._described()
            )
            if reply.completion is None:
                return self._end("failed", cause=reply.result)
            ended = await self._turn(reply.completion, reply.model)
            if ended is not None:
                return ended
            if self._finishing is not None:
                return self._end("limit", limit=self._finishing)

    # One turn

    async def _turn(self, said: Completion, model: Model) -> AgentResult | None:
        turn = Turn(said, model.dialect, model.name)
        self.transcript.entries.append(turn)
        self.emit("answer", text=said.text, model=model.name)
        if said.stop == "refusal":
            self._text = [said.text]
            return self._end("declined")
        if said.stop == "pause" and not said.calls:
            return None
        if not self._continued:
            self._text.clear()
        self._text.append(said.text)
        if not said.calls:
            return self._finished(said)
        self._continued = False
        await self._answer(turn)
        return self._after_calls()

    def _finished(self, said: Completion) -> AgentResult | None:
        """The model asks for nothing more: is it done?"""
        if said.stop == "length" and not self._continued:
            self._continued = True
            self.transcript.say(say(self.lang, "agent_continue"))
            return None
        left = unresolved(self.made)
        if left and not self._reminded and self._finishing is None:
            self._reminded = True
            names = ", ".join(call.name for call in left[:_MUST_SHOW])
            self.transcript.say(say(self.lang, "agent_remind", calls=names))
            self.conduct.changed()  # each may be tried once more; the runtime knows what is safe
            self.emit("reminder", text=names)
            return None
        if self._finishing is not None:
            return self._end("limit", limit=self._finishing)
        return self._end("partial" if left or said.stop == "length" else "done")

    def _after_calls(self) -> AgentResult | None:
        if self.run.interrupted_by is not None and self.run.interrupted_by.interrupts == "run":
            return self._end("refused", cause=self.run.interrupted_by)
        turn = len(self.transcript.turns)
        for call in self.made:
            if call.turn == turn and hopeless(call.result, self.agent.ask_user is not None):
                return self._end("refused", cause=call.result)
        return self._end("stuck") if self.conduct.stuck else None

    # Calls

    async def _answer(self, turn: Turn) -> None:
        """Every call gets its answer, in order; at most so many run at once."""
        calls = turn.completion.calls
        cut = turn.completion.stop == "length"
        number = len(self.transcript.turns)
        work: list[Coroutine[Any, Any, Answered]] = [
            self._one(call, number, index, cut and call is calls[-1])
            for index, call in enumerate(calls)
        ]
        tasks = [asyncio.ensure_future(one) for one in work]
        try:
            turn.answers = list(await asyncio.gather(*tasks))
        except BaseException:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _one(self, call: ToolCall, turn: int, index: int, cut: bool) -> Answered:
        self.emit("call", call=call)
        own = self._builtin(call.name)
        if own is not None:
            text, failed = await builtin.perform(
                own, call, self.context, self.agent.ask_user, self.lang
            )
            if own.name == builtin.ASK and not failed:
                self.conduct.changed()  # the user may have put something right
            return Answered(call, text, failed, text[:200] if failed else "", text)
        name = self.runtime._named_on_the_wire(call.name)
        mark = fingerprint(name, call)
        refused = self._refused(name, mark, call, turn, index)
        if refused is None:
            async with self._slots:
                result = await self._call(name, call, turn, index, cut)
                wait = self._worth_waiting(result)
                if wait is not None:
                    self.emit("wait", call=call, result=result)
                    await self.runtime.clock.sleep_async(wait)
                    result = await self._call(name, call, turn, index, cut, result.call_id)
            text = self._learn(name, mark, call, turn, result)
        else:
            result, text = refused
        self.emit("result", call=call, result=result)
        self.spending.called(result, estimated(text))
        return Answered(call, text, not result.success, self.context.folded(call, result), text)

    def _worth_waiting(self, result: ToolResult[Any]) -> float | None:
        """Seconds until the call may be sent, where that is soon: a model that is told "not yet" gives
        up too easily."""
        if result.retriable and result.retry_at is not None:
            wait = max(0.0, result.retry_at - self.runtime.clock.time()) + 0.001
        elif result.stop_reason is StopReason.RETRY_BUDGET and harmless(result):
            wait = _BUDGET_WINDOW
        else:
            return None
        now = self.runtime.clock.monotonic()
        until = self.run.deadline
        if self.agent.budget.seconds is not None:
            own = self._began + self.agent.budget.seconds
            until = own if until is None else min(until, own)
        soon = wait <= self.agent.patience and (until is None or now + wait < until)
        return wait if soon else None

    async def _call(
        self, name: str, call: ToolCall, turn: int, index: int, cut: bool, again: str = ""
    ) -> ToolResult[Any]:
        if not self.agent.offers(name):
            return self._unknown(name, call, turn, index)
        call_id = again or self._call_id(call, turn, index)
        options: dict[str, Any] = {"call_id": call_id, "truncated": cut}
        execution = self.runtime._begin(name, (call.arguments,), options, self.run)
        return await self.runtime._driven(execution)

    def _call_id(self, call: ToolCall, turn: int, index: int) -> str:
        """The model's own id, which names the effect; another where it gave none, or one twice."""
        call_id = call.id or f"turn{turn}-{index}"
        if call_id in self._ids:
            call_id = f"{call_id}~{turn}-{index}"
        self._ids.add(call_id)
        return call_id

    def _learn(
        self, name: str, mark: str, call: ToolCall, turn: int, result: ToolResult[Any]
    ) -> str:
        """Keep the record, learn from it; the text for the model."""
        read_only = self._reads(name, call)
        sent = result.failure is None or result.failure.code != "runtime.chain_aborted"
        order = self._order(name, call)
        self.made.append(Made(turn, order, shown(call.arguments), result, read_only, sent))
        now = self.runtime.clock.time()
        count = self.conduct.learn(mark, order, result, now, read_only=read_only)
        text = self.context.text(result)
        if count:
            last = count >= self.agent.rounds
            facts = {"count": count, "limit": self.agent.rounds, "tool": name}
            text += "\n" + say(self.lang, "agent_round_last" if last else "agent_round", **facts)
        return text

    def _reads(self, name: str, call: ToolCall) -> bool:
        spec = self.runtime._tools.get(name)
        if spec is None:
            return False
        value: Any = call.arguments
        if callable(spec.read_only) and isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return False
        return resolve_flag(spec.read_only, dict(value) if isinstance(value, dict) else {}) is True

    def _order(self, name: str, call: ToolCall) -> str:
        spec = self.runtime._tools.get(name)
        required = (spec.schema or {}).get("required") if spec is not None else None
        return essence(name, call, required if isinstance(required, list) else ())

    # Calls that are not sent

    def _refused(
        self, name: str, mark: str, call: ToolCall, turn: int, index: int
    ) -> tuple[ToolResult[Any], str] | None:
        """A call that is answered without being sent, with the text for the model."""
        order = self._order(name, call)
        verdict = self.conduct.look(name, mark, order, self.runtime.clock.time())
        if verdict is not None:
            text = self._told(verdict, name)
            code, details = "runtime.repeated_call", verdict.result.failure
        elif self._finishing is not None:
            text = say(self.lang, "agent_limit", what=say(self.lang, f"what_{self._finishing}"))
            code, details = "runtime.iteration_limit", None
        else:
            what = self.spending.take_call(name)
            if what is None:
                return None
            own = what == "calls" and self.spending.reached(0) == "calls"
            sentence = "agent_limit" if own else "agent_tool_limit"
            text = say(self.lang, sentence, tool=name, what=say(self.lang, f"what_{what}"))
            code, details = "runtime.iteration_limit", None
        result = self._not_sent(name, code, self._call_id(call, turn, index), details)
        self.conduct.refused(name, mark)
        read_only = self._reads(name, call)
        self.made.append(Made(turn, order, shown(call.arguments), result, read_only, sent=False))
        return result, text

    def _told(self, verdict: Verdict, name: str) -> str:
        """Why it is not sent, and what the failure it repeats left to try."""
        lines = []
        if verdict.kind == "early":
            lines.append(say(self.lang, "agent_early", tool=name, seconds=round(verdict.seconds)))
        else:
            sentence = f"agent_{verdict.kind}"
            lines.append(say(self.lang, sentence, tool=name, limit=self.agent.rounds))
        if verdict.between:
            one, other = verdict.between
            lines.append(say(self.lang, "agent_between", one=one, other=other))
        before = verdict.result.for_model(self.lang)
        return "\n".join([*lines, say(self.lang, "agent_before"), before])

    def _not_sent(
        self, name: str, code: str, call_id: str, cause: Failure | None
    ) -> ToolResult[Any]:
        details: dict[str, Any] = {"read_only": True}
        if cause is not None:
            details["cause"] = {"tool": name, "code": cause.code}
        failure = Failure(
            Category.RUNTIME,
            code,
            "",
            Effect.NOT_SENT,
            False,
            FixBy.MODEL if code == "runtime.repeated_call" else FixBy.OPERATOR,
            rule="agent.not_sent",
            confidence=1.0,
            details=details,
        )
        return self._kept(name, failure, call_id, StopReason.DECLINED)

    def _unknown(self, name: str, call: ToolCall, turn: int, index: int) -> ToolResult[Any]:
        """A tool that this agent does not offer is none, whoever else has it."""
        from failwise.arguments.failures import unknown_tool

        known = {spec.name: spec.schema for spec in self._tools()}
        failure = unknown_tool(name, known, None)
        call_id = self._call_id(call, turn, index)
        return self._kept(name, failure, call_id, StopReason.INVALID_ARGUMENTS)

    def _kept(self, name: str, failure: Failure, call_id: str, stop: StopReason) -> ToolResult[Any]:
        return self.runtime._keep(
            ToolResult(
                name,
                False,
                None,
                failure,
                Action.ASK_MODEL,
                stop_reason=stop,
                timestamp=self.runtime.clock.time(),
                call_id=call_id,
                run_id=self.run.id,
                model=self.run.model,
            )
        )

    # Tools

    def _tools(self) -> list[ToolSpec]:
        own = [builtin.read_result(self.lang)] if self.context.store else []
        if self.agent.ask_user is not None:
            own.append(builtin.ask_user(self.lang))
        tools = self.runtime._chosen(self.agent.tools)
        names = {spec.name for spec in tools}
        return [*tools, *(spec for spec in own if spec.name not in names)]

    def _builtin(self, name: str) -> ToolSpec | None:
        if self.agent.offers(name):
            return None
        return next((spec for spec in self._tools() if spec.name == name), None)

    async def _described(self) -> Callable[[ToolSpec], str]:
        if not self.agent.trouble:
            return described(self.runtime, self.lang, trouble=False)
        return await asyncio.to_thread(described, self.runtime, self.lang, True)

    # Limits and the end

    def _reached(self) -> What | None:
        reached = self.spending.reached(self.runtime.clock.monotonic() - self._began)
        if reached is None and self.transport.all_spent:
            return "tokens"
        return reached

    async def _go_on(self, what: What) -> bool:
        """At a limit: whether there is another turn, and what kind."""
        budget = self.agent.budget
        self.emit("limit", text=what)
        if what == "seconds" or budget.on_limit == "stop":
            return False
        named = say(self.lang, f"what_{what}")
        if budget.on_limit == "ask" and self.agent.ask_user is not None:
            question = say(self.lang, "agent_more", what=named)
            answer = await builtin.asked(self.agent.ask_user, question)
            if (answer or "").strip().lower() in _YES:
                self.spending.extend()
                return True
        self._finishing = what
        self.spending.extend()  # for the one answer
        self.transcript.say(say(self.lang, "agent_finish", what=named))
        return True

    def _end(
        self, status: Status, *, cause: ToolResult[Any] | None = None, limit: str | None = None
    ) -> AgentResult:
        spending, transport = self.spending, self.transport
        result = concluded(
            status,
            "".join(self._text),
            self.made,
            cause=cause,
            limit=limit,
            lang=self.lang,
            usage=spending.usage,
            usage_estimated=spending.estimated,
            money=spending.money,
            turns=spending.turns,
            corrections=self.conduct.corrections,
            result_tokens=spending.result_tokens,
            degraded_to=transport.degraded_to,
            model_results=tuple(transport.results),
            history=tuple(self.transcript.entries),
            run_id=self.run.id,
        )
        self.emit("end", outcome=result)
        return result


_YES = frozenset({"yes", "y", "ok", "true", "是", "好", "可以", "允许", "同意"})
