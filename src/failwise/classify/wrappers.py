"""What stands around an error in a body, taken off before a shape is looked for."""

from collections.abc import Mapping
from typing import Any, Final

from failwise.classify.shape import parsed
from failwise.vocabulary.records import MAPPING

WRAPPERS: Final = (
    "Response",
    "ResponseMetadata",
    "fault",
    "Fault",
    "ErrorResponse",
    "errorResponse",
    "error_response",
    "base_resp",
    "baseResp",
    "BaseResp",
    "respHeader",
)
"""Fields that hold the whole answer of a service."""
_WRAPPER_NAMES: Final = frozenset(WRAPPERS)
_AROUND: Final = ("response", "rsp", "msgheader")


def is_around(name: object) -> bool:
    """Is it the name of a field that, alone under its root, is put around a whole answer?"""
    return isinstance(name, str) and name.lower().endswith(_AROUND)


_DEPTH: Final = 4


def unwrap(body: Any, depth: int = 0) -> Any:
    """S14: the known wrappers off: one key, a one-element list, text that is JSON itself."""
    if depth >= _DEPTH:
        return body
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], MAPPING):
        marks = body[0].keys() & {"error", "errorCode", "Error"}
        return unwrap(body[0], depth + 1) if marks else body
    if isinstance(body, str):
        inner = parsed(body)
        return unwrap(inner, depth + 1) if inner is not None else body
    if not isinstance(body, MAPPING):
        return body
    for name in () if _WRAPPER_NAMES.isdisjoint(body) else WRAPPERS:
        inner = body.get(name)
        if isinstance(inner, MAPPING):
            error = inner.get("Error", inner.get("error"))
            if isinstance(error, list) and error:
                error = error[0]
            return error if isinstance(error, MAPPING) else unwrap(inner, depth + 1)
    if len(body) == 1 and isinstance(body.get("json"), MAPPING):
        return unwrap(body["json"], depth + 1)
    for name, inner in body.items():
        if not isinstance(name, str) or not isinstance(inner, MAPPING):
            continue
        if name.endswith("_response") or (len(body) == 1 and is_around(name)):
            return unwrap(inner, depth + 1)
    if len(body) == 2 and "error" in body and body.get("response"):
        inner = parsed(body["response"]) if isinstance(body["response"], str) else body["response"]
        return unwrap(inner, depth + 1) if isinstance(inner, (dict, list, Mapping)) else body
    return body
