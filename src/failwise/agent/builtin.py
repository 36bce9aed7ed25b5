"""The tools that the loop itself offers: reading on in a cut result, asking the user."""

import inspect
from collections.abc import Callable
from typing import Any

from failwise.agent.context import READ, Context
from failwise.agent.messages import ToolCall
from failwise.arguments import ArgumentReader
from failwise.vocabulary.result import Language
from failwise.vocabulary.sentences import say
from failwise.vocabulary.spec import ToolSpec

ASK = "ask_user"
AskUser = Callable[[str], Any]


def read_result(lang: Language) -> ToolSpec:
    """The description of `READ`."""
    return ToolSpec(
        READ,
        say(lang, "agent_read_result"),
        {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": say(lang, "agent_read_result_handle")},
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": say(lang, "agent_read_result_offset"),
                },
                "length": {
                    "type": "integer",
                    "minimum": 1,
                    "description": say(lang, "agent_read_result_length"),
                },
            },
            "required": ["handle"],
            "additionalProperties": False,
        },
        read_only=True,
    )


def ask_user(lang: Language) -> ToolSpec:
    """The description of `ASK`."""
    question = {"type": "string", "description": say(lang, "agent_ask_user_question")}
    return ToolSpec(
        ASK,
        say(lang, "agent_ask_user"),
        {
            "type": "object",
            "properties": {"question": question},
            "required": ["question"],
            "additionalProperties": False,
        },
    )


async def perform(
    spec: ToolSpec, call: ToolCall, context: Context, ask: AskUser | None, lang: Language
) -> tuple[str, bool]:
    """The text for the model, and whether it failed."""
    reading = ArgumentReader(spec.schema, spec.name).read(call.arguments)
    if reading.arguments is None:
        assert reading.failure is not None
        return f"FAILED: {reading.failure.message}", True
    arguments = reading.arguments
    if spec.name == READ:
        handle = str(arguments["handle"])
        length = arguments.get("length", context.result_limit)
        text = context.read_on(handle, arguments.get("offset", 0), length)
        if text is None:
            return say(lang, "agent_no_handle", handle=handle[:40]), True
        return text, False
    answer = await asked(ask, str(arguments["question"]))
    return (say(lang, "agent_no_answer"), True) if answer is None else (answer, False)


async def asked(ask: AskUser | None, question: str) -> str | None:
    """The user's answer; None where nobody answers. The callback may be sync (it gets a thread) or
    async; one that raises is logged."""
    import asyncio
    import logging

    if ask is None:
        return None
    try:
        if inspect.iscoroutinefunction(ask):
            answer = await ask(question)
        else:
            answer = await asyncio.to_thread(ask, question)
            if inspect.isawaitable(answer):
                answer = await answer
    except Exception as error:
        logging.getLogger("failwise").warning("ask_user failed: %s", type(error).__name__)
        return None
    return None if answer is None else str(answer)
