"""Shapes that one standard, or one kind of product, defines: OAuth, problem details, Kubernetes, mini programs.

The numbers are those of the shape list; each function gives the shape, or None where the body is another.
"""

import re
from typing import Any, Final

from failwise.classify.shape import Body, Shape, as_status, first_text, is_bad, message_of, plain
from failwise.vocabulary.records import MAPPING


def oauth(root: Body, status: int | None) -> Shape | None:
    """S3: ``error`` is a word, with a description."""
    error = root.get("error")
    if (
        isinstance(error, str)
        and re.fullmatch(r"[A-Za-z][\w.]{2,60}", error)
        and ("error_description" in root or "error_uri" in root)
    ):
        return Shape("S3", True, error, first_text(root, ("error_description",)) or error)
    return None


def problem(root: Body, status: int | None) -> Shape | None:
    """S9: RFC 9457 problem details."""
    if (
        "title" in root
        and isinstance(root.get("status"), int)
        and ({"type", "detail", "instance"} & root.keys())
    ):
        if not is_bad(root["status"]):
            return None
        kind = plain(root.get("type"))
        code = plain(root.get("code")) or (kind if kind != "about:blank" else None)
        return Shape("S9", True, code, first_text(root, ("detail", "title")), status=root["status"])
    return None


def tool_result(root: Body, status: int | None) -> Shape | None:
    """S18: a tool result inside JSON-RPC that says of itself that it is an error."""
    result = root.get("result")
    if (
        "jsonrpc" not in root
        or not isinstance(result, MAPPING)
        or result.get("isError") is not True
    ):
        return None
    content = result.get("content")
    items = content[:8] if isinstance(content, list) else []
    texts = [plain(item.get("text")) for item in items if isinstance(item, MAPPING)]
    return Shape("S18", True, None, "\n".join(text for text in texts if text) or None)


def kubernetes(root: Body, status: int | None) -> Shape | None:
    """S19: a Kubernetes Status object."""
    if root.get("kind") == "Status" and root.get("status") == "Failure":
        own = root.get("code")
        return Shape(
            "S19",
            True,
            plain(root.get("reason")),
            plain(root.get("message")),
            status=own if isinstance(own, int) else None,
        )
    return None


STREAMS: Final = frozenset({"stdout", "stderr"})
"""Beside these a `return_code` is a program's own."""


def pay_levels(root: Body, status: int | None) -> Shape | None:
    """S16: two levels, of which either may fail."""
    if "return_code" in root and STREAMS.isdisjoint(root):
        levels = (root.get("return_code"), root.get("result_code", "SUCCESS"))
        if any(str(level) != "SUCCESS" for level in levels):
            return Shape(
                "S16",
                True,
                first_text(root, ("err_code",)),
                first_text(root, ("err_code_des", "return_msg")),
            )
    return None


_FUNCTION_FAILED: Final = frozenset(
    {"errorMessage", "errorType", "stackTrace", "trace", "requestId", "cause"}
)


def named_error(root: Body, status: int | None) -> Shape | None:
    """S7: the object calls itself an error (``"object": "error"``), and says which; or it is the
    exception of a function in a cloud (``errorType``, ``errorMessage`` and a trace)."""
    message = message_of(root)
    held = root.get("content")
    if isinstance(held, MAPPING) and "error_code" in held and _is_result(root.get("type")):
        code = plain(held["error_code"])
        return Shape("S7", True, code, message_of(held) or f"service {code}")
    if message is not None and root.keys() <= _FUNCTION_FAILED and "errorType" in root:
        return Shape("S7", True, plain(root["errorType"]), message)
    if message is None or root.get("object") != "error":
        return None
    own = as_status(root.get("status")) or as_status(root.get("code"))
    return Shape("S7", True, first_text(root, ("code", "error_code")), message, status=own)


def _is_result(kind: Any) -> bool:
    """The result of a tool that a model's server runs, by its type."""
    return isinstance(kind, str) and kind.endswith("tool_result")


_MODEL_OBJECTS: Final = frozenset({"response", "thread.run"})


_NOT_ENDED: Final = frozenset({"failed", "incomplete", "expired"})


def model_ended(root: Body, status: int | None) -> Shape | None:
    """S7: a model's response, or its run, that came to no good end: why stands in `last_error`,
    `error` or `incomplete_details`."""
    kind, state = root.get("object"), root.get("status")
    if not isinstance(kind, str) or kind not in _MODEL_OBJECTS or state not in _NOT_ENDED:
        return None
    why = root.get("last_error") or root.get("error") or root.get("incomplete_details")
    if not isinstance(why, MAPPING):
        return None
    message = message_of(why)
    if state == "incomplete" and message is not None:
        message = f"the output is incomplete due to {message}"
    return Shape("S7", True, first_text(why, ("code",)), message)


_CALLED: Final = re.compile(r"\w{2,40}(?:[.:]\w{1,40}){0,3}:fail(?![a-z])", re.ASCII)


def called(root: Body, status: int | None) -> Shape | None:
    """S5, as mini programs have it: ``errMsg`` is ``request:fail timeout``; it is ``request:ok`` else."""
    told = root.get("errMsg")
    if isinstance(told, str) and _CALLED.match(told):
        return Shape("S5", True, first_text(root, ("errCode", "errno")), told[:2_000])
    return None


def coded_texts(root: Body, status: int | None) -> Shape | None:
    """S5: ``ret`` is a list of texts ``CODE::message``."""
    listed = root.get("ret")
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, str) or "::" not in first:
        return None
    code, _, message = first.partition("::")
    return (
        None
        if code.upper().startswith(("SUCCESS", "OK"))
        else Shape("S5", True, code[:120], message[:2_000])
    )
