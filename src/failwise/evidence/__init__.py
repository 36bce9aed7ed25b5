"""Everything that comes back from an invocation becomes `Evidence`: facts, no verdict.

`from_exception`, `from_response`, `from_value` and `from_text` never raise, take bounded time, and
import no HTTP library.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.evidence.exceptions import from_exception
    from failwise.evidence.facts import Evidence, ExceptionFact, ToldWait
    from failwise.evidence.responses import from_response, is_response
    from failwise.evidence.texts import from_text
    from failwise.evidence.values import from_value
    from failwise.evidence.waits import parse_retry_after, told_waits

_HOMES = {
    "Evidence": "facts",
    "ExceptionFact": "facts",
    "ToldWait": "facts",
    "from_exception": "exceptions",
    "from_response": "responses",
    "from_text": "texts",
    "from_value": "values",
    "is_response": "responses",
    "parse_retry_after": "waits",
    "told_waits": "waits",
}

__all__ = [
    "Evidence",
    "ExceptionFact",
    "ToldWait",
    "from_exception",
    "from_response",
    "from_text",
    "from_value",
    "is_response",
    "parse_retry_after",
    "told_waits",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
