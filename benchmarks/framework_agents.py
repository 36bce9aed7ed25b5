"""An agent of each framework in three settings, and its tool layer alone. Imports are where they are needed."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import failwise
from failwise.testing import ProviderServer, Says

Tools = Mapping[str, Callable[..., Any]]
HI = "hi"


class Agents:
    """One framework. `reaches`: what else than an object of arguments a model's call may be there."""

    title = ""
    reaches: tuple[str, ...] = ()
    last = Says("done")
    """The model's last turn."""

    def transport(self, own: Any) -> Any:
        """The HTTP client's transport at the best documented setting."""
        return own

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        """Ask an agent in this setting; what it says at the end."""
        raise NotImplementedError

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        """Lets the framework run so many calls of one turn, without a network."""
        raise NotImplementedError


class LangChain(Agents):
    """The best documented setting: `ToolRetryMiddleware`."""

    title = "LangChain"
    reaches = ("text", "unknown")

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from langchain.agents import create_agent
        from langchain.agents.middleware import ToolRetryMiddleware
        from langchain_core.tools import StructuredTool
        from langchain_openai import ChatOpenAI

        from failwise.connect.langchain import middleware

        used: dict[str, list[Any]] = {
            "default": [],
            "best setting": [ToolRetryMiddleware(max_retries=2, initial_delay=0.02, jitter=False)],
            "failwise": [middleware(rt)],
        }
        model = ChatOpenAI(model="m", base_url=provider.openai_url, api_key="test", max_retries=0)
        made = [StructuredTool.from_function(tool) for tool in tools.values()]
        agent = create_agent(model, made, middleware=used[setting])
        return str(agent.invoke({"messages": [("user", HI)]})["messages"][-1].content)

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from langchain_core.messages import AIMessage
        from langchain_core.tools import StructuredTool
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.prebuilt import ToolNode

        from failwise.connect.langchain import tool_node

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            return dict(tool(query, limit))

        options = {} if rt is None else tool_node(rt)
        graph = StateGraph(MessagesState)
        graph.add_node(
            "tools", ToolNode([StructuredTool.from_function(coroutine=search)], **options)
        )
        graph.add_edge(START, "tools")
        made = graph.compile()

        def perform(count: int) -> Any:
            calls = [
                {
                    "name": "search",
                    "args": {"query": "shoes", "limit": n},
                    "id": f"c{n}",
                    "type": "tool_call",
                }
                for n in range(count)
            ]
            given = {"messages": [("user", HI), AIMessage("", tool_calls=calls)]}
            return asyncio.run(made.ainvoke(given))

        return perform


class PydanticAI(Agents):
    """The best documented setting: a transport with tenacity, and a hook that hands on errors as texts."""

    title = "Pydantic AI"
    reaches = ("text",)

    def transport(self, own: Any) -> Any:
        import httpx
        from pydantic_ai.retries import RetryConfig, TenacityTransport, wait_retry_after
        from tenacity import retry_if_exception_type, stop_after_attempt, wait_exponential

        config = RetryConfig(
            retry=retry_if_exception_type((httpx.HTTPStatusError, httpx.TransportError)),
            wait=wait_retry_after(fallback_strategy=wait_exponential(0.02), max_wait=5),
            stop=stop_after_attempt(3),
            reraise=True,
        )
        return TenacityTransport(
            config, own, validate_response=lambda answer: answer.raise_for_status()
        )

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from pydantic_ai import Agent
        from pydantic_ai.capabilities import Hooks
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from failwise.connect.pydantic_ai import capability

        async def told(ctx: Any, *, error: Exception, **_: Any) -> str:
            return f"error: {error}"

        used: dict[str, list[Any]] = {
            "default": [],
            "best setting": [Hooks(tool_execute_error=told)],
            "failwise": [capability(rt)],
        }
        model = OpenAIChatModel(
            "m", provider=OpenAIProvider(base_url=provider.openai_url, api_key="test")
        )
        agent = Agent(model, tools=list(tools.values()), capabilities=used[setting])
        return str(asyncio.run(agent.run(HI)).output)

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        from failwise.connect.pydantic_ai import capability

        count = 1

        async def model(messages: Any, _: Any) -> ModelResponse:
            if len(messages) > 1:
                return ModelResponse(parts=[TextPart("done")])
            return ModelResponse(
                parts=[
                    ToolCallPart("search", json.dumps({"query": "shoes", "limit": n}), f"c{n}")
                    for n in range(count)
                ]
            )

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            return dict(tool(query, limit))

        agent = Agent(
            FunctionModel(model),
            tools=[search],
            capabilities=[] if rt is None else [capability(rt)],
        )

        def perform(calls: int) -> Any:
            nonlocal count
            count = calls
            return asyncio.run(agent.run(HI))

        return perform


class OpenAIAgents(Agents):
    """The best documented setting: a `failure_error_function` that says what happened."""

    title = "OpenAI Agents SDK"
    reaches = ("text",)

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        import openai
        from agents import Agent, Runner, function_tool, set_tracing_disabled
        from agents.models.openai_responses import OpenAIResponsesModel

        from failwise.connect.openai_agents import tools as through

        set_tracing_disabled(True)
        options: dict[str, Any] = {}
        if setting == "best setting":
            options["failure_error_function"] = lambda context, error: f"The tool failed: {error}"
        made: list[Any] = [function_tool(tool, **options) for tool in tools.values()]
        client = openai.AsyncOpenAI(base_url=provider.openai_url, api_key="test", max_retries=0)
        agent = Agent(
            name="a",
            model=OpenAIResponsesModel("m", client),
            tools=through(rt, made) if setting == "failwise" else made,
        )
        return str(asyncio.run(Runner.run(agent, HI)).final_output)

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from agents import (
            Agent,
            Model,
            ModelResponse,
            RunConfig,
            Runner,
            Usage,
            function_tool,
            set_tracing_disabled,
        )
        from openai.types.responses import (
            ResponseFunctionToolCall,
            ResponseOutputMessage,
            ResponseOutputText,
        )

        from failwise.connect.openai_agents import tools as through

        set_tracing_disabled(True)
        count = 1

        class Scripted(Model):
            async def get_response(self, *_: Any, input: Any, **__: Any) -> ModelResponse:
                output: list[Any]
                if isinstance(input, list) and len(input) > 1:
                    text = ResponseOutputText(annotations=[], text="done", type="output_text")
                    output = [
                        ResponseOutputMessage(
                            id="m",
                            content=[text],
                            role="assistant",
                            status="completed",
                            type="message",
                        )
                    ]
                else:
                    output = [
                        ResponseFunctionToolCall(
                            arguments=json.dumps({"query": "shoes", "limit": n}),
                            call_id=f"c{n}",
                            name="search",
                            type="function_call",
                        )
                        for n in range(count)
                    ]
                return ModelResponse(output=output, usage=Usage(), response_id=None)

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            return dict(tool(query, limit))

        made: list[Any] = [function_tool(search)]
        agent = Agent(name="a", model=Scripted(), tools=made if rt is None else through(rt, made))

        def perform(calls: int) -> Any:
            nonlocal count
            count = calls
            return asyncio.run(Runner.run(agent, HI, run_config=RunConfig(tracing_disabled=True)))

        return perform


class GoogleADK(Agents):
    """The best documented setting: `ReflectAndRetryToolPlugin`."""

    title = "Google ADK"
    reaches = ("unknown",)

    def play(
        self, setting: str, rt: failwise.Runtime, tools: Tools, provider: ProviderServer
    ) -> str:
        from google.adk.plugins import ReflectAndRetryToolPlugin
        from tests.frameworks.test_google_adk import HI as hello
        from tests.frameworks.test_google_adk import conversation, llm

        from failwise.connect.google_adk import plugin

        used: dict[str, list[Any]] = {
            "default": [],
            "best setting": [
                ReflectAndRetryToolPlugin(max_retries=2, throw_exception_if_retry_exceeded=False)
            ],
            "failwise": [plugin(rt)],
        }
        runner = self._runner(llm(provider), list(tools.values()), used[setting])
        _, contents = asyncio.run(conversation(runner, hello))
        return str(contents[-1].parts[0].text)  # type: ignore[index]

    def _runner(self, model: Any, tools: list[Any], plugins: list[Any]) -> Any:
        from google.adk.agents import LlmAgent
        from google.adk.runners import InMemoryRunner

        return InMemoryRunner(LlmAgent(name="a", model=model, tools=tools), plugins=plugins)

    def layer(self, tool: Callable[..., Any], rt: failwise.Runtime | None) -> Callable[[int], Any]:
        from google.adk.models.base_llm import BaseLlm
        from google.adk.models.llm_response import LlmResponse
        from google.genai import types

        from failwise.connect.google_adk import plugin

        count = 1

        class Scripted(BaseLlm):
            async def generate_content_async(
                self, llm_request: Any, stream: bool = False
            ) -> AsyncGenerator[LlmResponse, None]:
                if len(llm_request.contents) > 1:
                    parts = [types.Part(text="done")]
                else:
                    parts = [
                        types.Part(
                            function_call=types.FunctionCall(
                                id=f"c{n}", name="search", args={"query": "shoes", "limit": n}
                            )
                        )
                        for n in range(count)
                    ]
                yield LlmResponse(content=types.Content(role="model", parts=parts))

        async def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            return dict(tool(query, limit))

        runner = self._runner(Scripted(model="m"), [search], [] if rt is None else [plugin(rt)])
        hello = types.Content(role="user", parts=[types.Part(text=HI)])

        async def once() -> None:
            session = await runner.session_service.create_session(
                app_name=runner.app_name, user_id="u"
            )
            async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=hello):
                pass

        def perform(calls: int) -> Any:
            nonlocal count
            count = calls
            return asyncio.run(once())

        return perform


FRAMEWORKS: Mapping[str, type[Agents]] = {
    "langchain": LangChain,
    "pydantic_ai": PydanticAI,
    "openai_agents": OpenAIAgents,
    "google_adk": GoogleADK,
}
