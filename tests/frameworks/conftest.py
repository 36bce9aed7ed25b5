"""Agent frameworks, for real. `make frameworks` installs them and runs this folder; elsewhere the tests of
what is missing stay out of the way. ``FAILWISE_FRAMEWORK=NAME`` runs those of one alone."""

import importlib.util
import os
from collections.abc import Iterator

import pytest

from failwise.faults import FaultServer

pytest.register_assert_rewrite("tests.frameworks.driving", "tests.frameworks.serving")

_NEEDED = {
    "test_langchain.py": ("langchain", "langchain_openai"),
    "test_pydantic_ai.py": ("pydantic_ai", "openai"),
    "test_openai_agents.py": ("agents",),
    "test_google_adk.py": ("google.adk", "openai"),
    "test_fastmcp.py": ("fastmcp", "uvicorn"),
    "test_mcp_server.py": ("mcp.server.mcpserver", "uvicorn"),
    "test_mcp_tools.py": ("mcp.server.mcpserver", "uvicorn"),
    "test_strands.py": ("strands", "openai"),
    "test_smolagents.py": ("smolagents", "openai"),
    "test_llama_index.py": ("llama_index.core", "llama_index.llms.openai_like"),
    "test_agent_framework.py": ("agent_framework", "agent_framework_openai"),
    "test_litellm.py": ("litellm",),
}


def _there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


_ONLY = os.environ.get("FAILWISE_FRAMEWORK", "")
collect_ignore = [
    file
    for file, packages in _NEEDED.items()
    if not all(map(_there, packages)) or (_ONLY and _ONLY not in file)
]
if _ONLY:
    collect_ignore.append("test_pages.py")


def installed(framework: str) -> bool:
    """Everything that the tests and the page of a framework need is there."""
    return all(map(_there, _NEEDED.get(f"test_{framework}.py", ())))


@pytest.fixture
def shop() -> Iterator[FaultServer]:
    """An upstream that misbehaves as told, with a ledger of what it really did."""
    with FaultServer() as server:
        yield server
