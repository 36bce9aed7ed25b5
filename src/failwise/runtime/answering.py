"""For one's own loop: the tool calls of a model's message in, exactly the messages to append out."""

from collections.abc import Callable, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any

from failwise.runtime import dialects
from failwise.runtime.dialects import Asked, Reply
from failwise.vocabulary.result import Language, ToolResult

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution
    from failwise.runtime.run import Run
    from failwise.runtime.runtime import Runtime

Messages = list[dict[str, Any]]
_Read = Callable[[Any], list[Asked]]
_Write = Callable[[Sequence[Reply]], Messages]

_OPENAI = dialects.openai_calls, dialects.openai_replies
_RESPONSES = dialects.responses_calls, dialects.responses_replies
_ANTHROPIC = dialects.anthropic_calls, dialects.anthropic_replies


class Answering:
    """The part of `Runtime` and `Run` that speaks the providers' dialects.

    Each of the calls runs as with `call_many`: at once, order kept, every failure as data. Every
    tool call gets its answer, the aborted ones too, as the providers demand. `truncated`: the
    model's stop reason was its output limit, so that the last call may be cut. `into`: append
    the messages to this list too. Where the caller is cancelled nobody gets a return value: then
    the calls' records are closed, the messages stand in `into`, and the cancellation goes on, so
    that the history stays one that the provider takes.
    """

    def _where(self) -> "tuple[Runtime, Run | None]":
        raise NotImplementedError

    def schemas(
        self,
        dialect: dialects.Dialect,
        *,
        tools: Sequence[str] | None = None,
        lang: Language = "en",
        trouble: bool = True,
    ) -> Messages:
        """The tools as a model is told of them, in the shape of ``openai`` (chat completions),
        ``openai_responses``, ``anthropic`` or ``mcp``; `tools` names some of them (None: all).

        A tool that is failing now (its circuit is open, or nearly all of its last calls failed)
        says so in one line of its description, in `lang`; `trouble` false leaves it out. Raises
        `UsageError` for a name that is not registered, or an unknown dialect.
        """
        from failwise.runtime.trouble import described

        runtime, _ = self._where()
        return dialects.descriptions(
            runtime._chosen(tools), dialect, described(runtime, lang, trouble)
        )

    async def answer_openai(
        self,
        tool_calls: Any,
        *,
        lang: Language = "en",
        truncated: bool = False,
        into: MutableSequence[Any] | None = None,
    ) -> Messages:
        """Run ``message.tool_calls`` of a chat completion; one ``tool`` message for each.

        ``messages += await rt.answer_openai(message.tool_calls)``. Takes the list, the message, or
        None, as objects of the SDK or plain data.
        """
        return await self._answer(tool_calls, *_OPENAI, lang, truncated, into)

    async def answer_openai_responses(
        self,
        output: Any,
        *,
        lang: Language = "en",
        truncated: bool = False,
        into: MutableSequence[Any] | None = None,
    ) -> Messages:
        """Run the function calls of ``response.output``; one ``function_call_output`` for each."""
        return await self._answer(output, *_RESPONSES, lang, truncated, into)

    async def answer_anthropic(
        self,
        content: Any,
        *,
        lang: Language = "en",
        truncated: bool = False,
        into: MutableSequence[Any] | None = None,
    ) -> Messages:
        """Run the ``tool_use`` blocks of ``message.content``; one ``user`` message with all results
        (``is_error`` set on those that failed), or none where the model asked for nothing."""
        return await self._answer(content, *_ANTHROPIC, lang, truncated, into)

    def answer_openai_sync(
        self,
        tool_calls: Any,
        *,
        lang: Language = "en",
        truncated: bool = False,
        into: MutableSequence[Any] | None = None,
    ) -> Messages:
        """`answer_openai` without a loop of one's own."""
        return self._answer_sync(tool_calls, *_OPENAI, lang, truncated, into)

    def answer_openai_responses_sync(
        self,
        output: Any,
        *,
        lang: Language = "en",
        truncated: bool = False,
        into: MutableSequence[Any] | None = None,
    ) -> Messages:
        """`answer_openai_responses` without a loop of one's own."""
        return self._answer_sync(output, *_RESPONSES, lang, truncated, into)

    def answer_anthropic_sync(
        self,
        content: Any,
        *,
        lang: Language = "en",
        truncated: bool = False,
        into: MutableSequence[Any] | None = None,
    ) -> Messages:
        """`answer_anthropic` without a loop of one's own."""
        return self._answer_sync(content, *_ANTHROPIC, lang, truncated, into)

    async def _answer(
        self,
        given: Any,
        read: _Read,
        write: _Write,
        lang: Language,
        truncated: bool,
        into: MutableSequence[Any] | None,
    ) -> Messages:
        import asyncio

        runtime, run = self._where()
        asked = read(given)
        begun = begin(runtime, run, asked, truncated)
        tasks = [asyncio.ensure_future(runtime._driven(execution)) for execution in begun]
        try:
            if tasks:
                await asyncio.wait(tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if into is not None:
                ended = [
                    cancelled(execution) if task.cancelled() or task.exception() else task.result()
                    for execution, task in zip(begun, tasks, strict=True)
                ]
                into.extend(write(_replies(asked, ended, lang)))
            raise
        # A tool that was cancelled from within has failed; nobody cancelled us.
        results = [
            cancelled(execution) if task.cancelled() else task.result()
            for execution, task in zip(begun, tasks, strict=True)
        ]
        messages = write(_replies(asked, results, lang))
        if into is not None:
            into.extend(messages)
        return messages

    def _answer_sync(
        self,
        given: Any,
        read: _Read,
        write: _Write,
        lang: Language,
        truncated: bool,
        into: MutableSequence[Any] | None,
    ) -> Messages:
        runtime, run = self._where()
        asked = read(given)
        begun = begin(runtime, run, asked, truncated)
        try:
            results = runtime._drive_many_sync(begun)
        except KeyboardInterrupt:
            if into is not None:
                into.extend(write(_replies(asked, [cancelled(e) for e in begun], lang)))
            raise
        messages = write(_replies(asked, results, lang))
        if into is not None:
            into.extend(messages)
        return messages


def begin(
    runtime: "Runtime", run: "Run | None", asked: Sequence[Asked], truncated: bool
) -> "list[Execution]":
    """The calls as data, before any is sent."""
    begun = []
    for number, call in enumerate(asked, 1):
        options: dict[str, Any] = {"call_id": call.id} if call.id else {}
        if truncated and number == len(asked):
            options["truncated"] = True
        name = runtime._named_on_the_wire(call.name)
        raw = _custom(runtime, name, call) if call.custom else call.raw
        begun.append(runtime._begin(name, (raw,), options, run))
    return begun


def _custom(runtime: "Runtime", name: str, call: Asked) -> Any:
    """Free text for a tool with one parameter is that parameter."""
    spec = runtime._tools.get(name)
    properties = (spec.schema or {}).get("properties") if spec else None
    return {next(iter(properties)): call.raw} if properties and len(properties) == 1 else call.raw


def cancelled(execution: "Execution") -> ToolResult[Any]:
    """The record of a call that was cancelled; of one that had not begun, a new one."""
    from failwise.runtime.state import CallState

    return execution.result or CallState(execution.call).cancelled(None)


def _replies(
    asked: Sequence[Asked], results: Sequence[ToolResult[Any]], lang: Language
) -> list[Reply]:
    return [
        Reply(call, result.for_model(lang), not result.success)
        for call, result in zip(asked, results, strict=True)
    ]
