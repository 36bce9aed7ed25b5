"""Agents of further frameworks, which `make frameworks` gives an environment of their own. As `framework_agents`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import failwise
from benchmarks.framework_agents import HI, Agents, Tools
from failwise.testing import ProviderServer, Says


class Strands(Agents):
    """The best documented setting: a hook that repeats what failed (`AfterToolCallEvent.retry`)."""

    title = "Strands Agents"
    reaches = ("unknown",)

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from strands import tool
        from strands.hooks import AfterToolCallEvent
        from tests.frameworks.test_strands import agent

        from failwise.connect.strands import plugin

        tries: dict[str, int] = {}

        def again(event: AfterToolCallEvent) -> None:
            call_id = event.tool_use["toolUseId"]
            tries[call_id] = tries.get(call_id, 0) + 1
            event.retry = event.result["status"] == "error" and tries[call_id] < 3

        used: dict[str, dict[str, Any]] = {
            "default": {},
            "best setting": {"hooks": [again]},
            "failwise": {"plugins": [plugin(rt)]},
        }
        made = agent(provider, [tool(one) for one in tools.values()], **used[setting])
        return str(made(HI)).strip()

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from strands import Agent
        from strands import tool as made
        from strands.models import Model

        from failwise.connect.strands import plugin

        count = 1

        class Scripted(Model):
            def update_config(self, **_: Any) -> None: ...
            def get_config(self) -> Any:
                return {}

            def structured_output(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
                yield {"messageStart": {"role": "assistant"}}
                calls = [] if len(messages) > 1 else range(count)
                for n in calls:
                    use = {"toolUse": {"name": "search", "toolUseId": f"c{n}"}}
                    yield {"contentBlockStart": {"start": use}}
                    given = f'{{"query": "shoes", "limit": {n}}}'
                    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
                    yield {"contentBlockStop": {}}
                if not calls:
                    yield {"contentBlockDelta": {"delta": {"text": "done"}}}
                    yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            return dict(tool(query, limit))

        options = {} if rt is None else {"plugins": [plugin(rt)]}
        agent = Agent(Scripted(), tools=[made(search)], callback_handler=None, **options)

        def perform(calls: int) -> Any:
            nonlocal count
            count = calls
            agent.messages.clear()
            return asyncio.run(agent.invoke_async(HI))

        return perform


class Smolagents(Agents):
    """The best documented setting is the default: errors come with "Now let's retry"."""

    title = "smolagents"
    reaches = ("text", "unknown")
    last = Says(calls=[("final_answer", {"answer": "done"})])

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from tests.frameworks.test_smolagents import agent, made

        from failwise.connect.smolagents import attach

        ours = agent(provider, [made(one) for one in tools.values()])
        return str((attach(ours, rt) if setting == "failwise" else ours).run(HI))

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from smolagents import LogLevel, Model, ToolCallingAgent
        from smolagents.memory import ActionStep
        from smolagents.models import (
            ChatMessage,
            ChatMessageToolCall,
            ChatMessageToolCallFunction,
            MessageRole,
        )
        from smolagents.monitoring import Timing
        from tests.frameworks.test_smolagents import made

        from failwise.connect.smolagents import attach

        def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            return dict(tool(query, limit))

        agent = ToolCallingAgent([made(search)], Model(), verbosity_level=LogLevel.OFF)
        if rt is not None:
            attach(agent, rt)

        def perform(calls: int) -> Any:
            # One call a message: several would run in threads of their own, out of sight.
            step = ActionStep(step_number=1, timing=Timing(0.0))
            for n in range(calls):
                function = ChatMessageToolCallFunction({"query": "shoes", "limit": n}, "search")
                call = ChatMessageToolCall(function, f"c{n}", "function")
                message = ChatMessage(MessageRole.ASSISTANT, None, [call])
                list(agent.process_tool_calls(message, step))

        return perform


class LlamaIndex(Agents):
    """The best documented setting is the default: the exception's text is what the model reads."""

    title = "LlamaIndex"

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from tests.frameworks.test_llama_index import agent, run

        from failwise.connect.llama_index import tools as through

        given = list(tools.values())
        made = through(rt, given) if setting == "failwise" else given
        return str(run(agent(provider, list(made))))

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from llama_index.core.agent.workflow import FunctionAgent
        from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
        from llama_index.core.llms.function_calling import FunctionCallingLLM
        from llama_index.core.llms.llm import ToolSelection

        from failwise.connect.llama_index import tools as through

        count = 1

        class Scripted(FunctionCallingLLM):
            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

            def _prepare_chat_with_tools(self, *_: Any, **options: Any) -> Any:
                return {"messages": options.get("chat_history") or []}

            async def achat_with_tools(self, *_: Any, chat_history: Any = (), **__: Any) -> Any:
                done = len(chat_history or ()) > 1
                said = ChatMessage("done" if done else "", role="assistant")
                return ChatResponse(message=said, raw={"calls": 0 if done else count})

            def get_tool_calls_from_response(self, response: Any, *_: Any, **__: Any) -> Any:
                return [
                    ToolSelection(
                        tool_id=f"c{n}",
                        tool_name="search",
                        tool_kwargs={"query": "shoes", "limit": n},
                    )
                    for n in range(response.raw["calls"])
                ]

            def chat(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            complete = stream_chat = stream_complete = chat
            achat = acomplete = astream_chat = astream_complete = chat

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            return dict(tool(query, limit))

        given = [search] if rt is None else list(through(rt, [search]))

        def perform(calls: int) -> Any:
            nonlocal count
            count = calls

            async def main() -> Any:
                return await FunctionAgent(tools=given, llm=Scripted(), streaming=False).run(HI)

            return asyncio.run(main())

        return perform


class AgentFramework(Agents):
    """The best documented setting: a middleware with tenacity, and detailed errors."""

    title = "Microsoft Agent Framework"

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from agent_framework import FunctionMiddleware, tool
        from tenacity import AsyncRetrying, stop_after_attempt, wait_exponential
        from tests.frameworks.test_agent_framework import agent, run

        from failwise.connect.agent_framework import middleware

        class Retry(FunctionMiddleware):
            async def process(self, context: Any, call_next: Any) -> None:
                patient = AsyncRetrying(
                    stop=stop_after_attempt(3), wait=wait_exponential(0.02), reraise=True
                )
                await patient(call_next)

        used: dict[str, list[Any]] = {
            "default": [],
            "best setting": [Retry()],
            "failwise": [middleware(rt)],
        }
        made = agent(provider, [tool(one) for one in tools.values()], *used[setting])
        if setting == "best setting":
            made.client.function_invocation_configuration["include_detailed_errors"] = True
        return str(asyncio.run(run(made, HI)))

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from agent_framework import (
            Agent,
            BaseChatClient,
            ChatResponse,
            Content,
            FunctionInvocationLayer,
            Message,
        )
        from agent_framework import tool as made

        from failwise.connect.agent_framework import middleware

        count = 1

        class Scripted(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc, unused-ignore]
            async def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
                if len(messages) > 1:
                    return ChatResponse(messages=[Message("assistant", ["done"])])
                calls = [
                    Content.from_function_call(
                        f"c{n}", "search", arguments={"query": "shoes", "limit": n}
                    )
                    for n in range(count)
                ]
                return ChatResponse(messages=[Message("assistant", calls)])

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            return dict(tool(query, limit))

        layers = [] if rt is None else [middleware(rt)]
        agent = Agent(Scripted(), tools=[made(search)], middleware=layers)

        def perform(calls: int) -> Any:
            nonlocal count
            count = calls

            async def main() -> Any:
                return await agent.run(HI)

            return asyncio.run(main())

        return perform


MORE: Mapping[str, type[Agents]] = {
    "strands": Strands,
    "smolagents": Smolagents,
    "llama_index": LlamaIndex,
    "agent_framework": AgentFramework,
}
