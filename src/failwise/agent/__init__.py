"""The agent loop: a chat model and a runtime, put together.

With a loop of one's own nothing of this is needed: see `Runtime.answer_openai` and its siblings.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.agent.agent import Agent as Agent
    from failwise.agent.agent import Event as Event
    from failwise.agent.anthropic_messages import AnthropicMessages as AnthropicMessages
    from failwise.agent.budget import Budget as Budget
    from failwise.agent.budget import ToolBudget as ToolBudget
    from failwise.agent.messages import Completion as Completion
    from failwise.agent.messages import Limits as Limits
    from failwise.agent.messages import Prices as Prices
    from failwise.agent.messages import ToolCall as ToolCall
    from failwise.agent.messages import Usage as Usage
    from failwise.agent.models import ChatModel as ChatModel
    from failwise.agent.openai_chat import OpenAIChat as OpenAIChat
    from failwise.agent.openai_responses import OpenAIResponses as OpenAIResponses
    from failwise.agent.report import AgentResult as AgentResult

_WHERE = {
    "Agent": "agent",
    "AgentResult": "report",
    "AnthropicMessages": "anthropic_messages",
    "Budget": "budget",
    "ChatModel": "models",
    "Completion": "messages",
    "Event": "agent",
    "Limits": "messages",
    "OpenAIChat": "openai_chat",
    "OpenAIResponses": "openai_responses",
    "Prices": "messages",
    "ToolBudget": "budget",
    "ToolCall": "messages",
    "Usage": "messages",
}

__all__ = [
    "Agent",
    "AgentResult",
    "AnthropicMessages",
    "Budget",
    "ChatModel",
    "Completion",
    "Event",
    "Limits",
    "OpenAIChat",
    "OpenAIResponses",
    "Prices",
    "ToolBudget",
    "ToolCall",
    "Usage",
]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"failwise.agent.{where}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
