"""Failwise: a tool runtime for AI agents in which a failure is data, not an exception.

The public names; each is imported when it is first used, so that `import failwise` stays light.
"""

from typing import TYPE_CHECKING, Any

from failwise._version import __version__

if TYPE_CHECKING:
    from failwise.agent.agent import Agent as Agent
    from failwise.classify import classify_exception as classify_exception
    from failwise.classify import classify_text as classify_text
    from failwise.classify.advisor import Advisor as Advisor
    from failwise.evidence.tls_probe import TlsDiagnosis as TlsDiagnosis
    from failwise.evidence.tls_probe import diagnose_tls as diagnose_tls
    from failwise.evidence.waits import parse_retry_after as parse_retry_after
    from failwise.runtime.meanings import as_failure as as_failure
    from failwise.runtime.run import Run as Run
    from failwise.runtime.runtime import Runtime as Runtime
    from failwise.tools import HttpTool as HttpTool
    from failwise.vocabulary.errors import ConfigurationError as ConfigurationError
    from failwise.vocabulary.errors import FailwiseError as FailwiseError
    from failwise.vocabulary.errors import ToolCallFailed as ToolCallFailed
    from failwise.vocabulary.errors import ToolError as ToolError
    from failwise.vocabulary.errors import UsageError as UsageError
    from failwise.vocabulary.failure import Excerpt as Excerpt
    from failwise.vocabulary.failure import Failure as Failure
    from failwise.vocabulary.failure import Spoke as Spoke
    from failwise.vocabulary.kinds import Action as Action
    from failwise.vocabulary.kinds import Category as Category
    from failwise.vocabulary.kinds import Effect as Effect
    from failwise.vocabulary.kinds import FixBy as FixBy
    from failwise.vocabulary.kinds import Grade as Grade
    from failwise.vocabulary.kinds import Layer as Layer
    from failwise.vocabulary.kinds import StopReason as StopReason
    from failwise.vocabulary.result import Attempt as Attempt
    from failwise.vocabulary.result import Decision as Decision
    from failwise.vocabulary.result import Repair as Repair
    from failwise.vocabulary.result import ToolResult as ToolResult
    from failwise.vocabulary.spec import CallContext as CallContext
    from failwise.vocabulary.spec import ToolSpec as ToolSpec

_WHERE = {
    "Action": "failwise.vocabulary.kinds",
    "Advisor": "failwise.classify.advisor",
    "Agent": "failwise.agent.agent",
    "Attempt": "failwise.vocabulary.result",
    "CallContext": "failwise.vocabulary.spec",
    "Category": "failwise.vocabulary.kinds",
    "ConfigurationError": "failwise.vocabulary.errors",
    "Decision": "failwise.vocabulary.result",
    "Effect": "failwise.vocabulary.kinds",
    "Excerpt": "failwise.vocabulary.failure",
    "FailwiseError": "failwise.vocabulary.errors",
    "Failure": "failwise.vocabulary.failure",
    "FixBy": "failwise.vocabulary.kinds",
    "Grade": "failwise.vocabulary.kinds",
    "HttpTool": "failwise.tools",
    "Layer": "failwise.vocabulary.kinds",
    "Repair": "failwise.vocabulary.result",
    "Run": "failwise.runtime.run",
    "Runtime": "failwise.runtime.runtime",
    "Spoke": "failwise.vocabulary.failure",
    "StopReason": "failwise.vocabulary.kinds",
    "TlsDiagnosis": "failwise.evidence.tls_probe",
    "ToolCallFailed": "failwise.vocabulary.errors",
    "ToolError": "failwise.vocabulary.errors",
    "ToolResult": "failwise.vocabulary.result",
    "ToolSpec": "failwise.vocabulary.spec",
    "UsageError": "failwise.vocabulary.errors",
    "as_failure": "failwise.runtime.meanings",
    "classify_exception": "failwise.classify",
    "classify_text": "failwise.classify",
    "diagnose_tls": "failwise.evidence.tls_probe",
    "parse_retry_after": "failwise.evidence.waits",
}

__all__ = [
    "Action",
    "Advisor",
    "Agent",
    "Attempt",
    "CallContext",
    "Category",
    "ConfigurationError",
    "Decision",
    "Effect",
    "Excerpt",
    "Failure",
    "FailwiseError",
    "FixBy",
    "Grade",
    "HttpTool",
    "Layer",
    "Repair",
    "Run",
    "Runtime",
    "Spoke",
    "StopReason",
    "TlsDiagnosis",
    "ToolCallFailed",
    "ToolError",
    "ToolResult",
    "ToolSpec",
    "UsageError",
    "__version__",
    "as_failure",
    "classify_exception",
    "classify_text",
    "diagnose_tls",
    "parse_retry_after",
]


_ROOMS = ("agent", "connect", "dashboard", "faults", "testing")
"""Public packages below this one: ``failwise.connect.httpx`` needs no import of its own."""


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None and name in _ROOMS:
        import importlib

        return importlib.import_module(f"failwise.{name}")
    if where is None:
        raise AttributeError(f"module 'failwise' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
