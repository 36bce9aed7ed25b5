"""How the providers' APIs refuse: status, headers and bodies as they send them; and what they
demand of a history, for which they refuse one themselves."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Refusal = tuple[int, dict[str, Any], dict[str, str]]
"""Status, body, headers."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def openai(kind: str, request: Mapping[str, Any], wait: float | None) -> Refusal:
    """A refusal of the OpenAI API (chat completions and responses alike)."""
    model = str(request.get("model"))
    status, message, kind_of, code = {
        "rate_limit": (
            429,
            f"Rate limit reached for {model} in organization org-test on requests per min (RPM): "
            f"Limit 3, Used 3, Requested 1. Please try again in {wait or 1:g}s.",
            "requests",
            "rate_limit_exceeded",
        ),
        "quota": (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "overloaded": (
            503,
            "The server is currently overloaded with other requests. Sorry about that! You can "
            "retry your request, or contact us if the error persists.",
            "server_error",
            "server_is_overloaded",
        ),
        "server_error": (
            500,
            "The server had an error while processing your request. Sorry about that!",
            "server_error",
            None,
        ),
        "context_too_long": (
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted "
            "in 9001 tokens. Please reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        "bad_request": (
            400,
            "Invalid value: 'verry_high'. Supported values are: 'low', 'medium', and 'high'.",
            "invalid_request_error",
            "invalid_value",
        ),
        "bad_key": (
            401,
            "Incorrect API key provided: test-***key. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            "invalid_request_error",
            "invalid_api_key",
        ),
        "forbidden": (
            403,
            "Country, region, or territory not supported",
            "request_forbidden",
            "unsupported_country_region_territory",
        ),
        "no_model": (
            404,
            f"The model `{model}` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
    }[kind]
    error = {"message": message, "type": kind_of, "param": None, "code": code}
    headers = {"x-request-id": "req_test"}
    if kind == "rate_limit":
        headers |= {"retry-after": f"{max(1, round(wait or 1))}"}
        headers |= {"retry-after-ms": f"{(wait or 1) * 1000:.0f}"}
    return status, {"error": error}, headers


def anthropic(kind: str, request: Mapping[str, Any], wait: float | None) -> Refusal:
    """A refusal of the Anthropic API."""
    status, kind_of, message = {
        "rate_limit": (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute.",
        ),
        "quota": (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
            "Billing to upgrade or purchase credits.",
        ),
        "overloaded": (529, "overloaded_error", "Overloaded"),
        "server_error": (500, "api_error", "Internal server error"),
        "context_too_long": (
            400,
            "invalid_request_error",
            "prompt is too long: 210051 tokens > 200000 maximum",
        ),
        "bad_request": (
            400,
            "invalid_request_error",
            "max_tokens: Input should be greater than or equal to 1",
        ),
        "bad_key": (401, "authentication_error", "invalid x-api-key"),
        "forbidden": (
            403,
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        "no_model": (404, "not_found_error", f"model: {request.get('model')}"),
    }[kind]
    body = {
        "type": "error",
        "error": {"type": kind_of, "message": message},
        "request_id": "req_test",
    }
    headers = {"request-id": "req_test"}
    if kind == "rate_limit":
        headers["retry-after"] = f"{max(1, round(wait or 1))}"
    return status, body, headers


# What they demand of a history


def openai_history(request: Mapping[str, Any]) -> str | None:
    """What is wrong with the messages of a chat completion, in the API's words."""
    tools = [tool.get("function", {}) for tool in request.get("tools") or ()]
    named = _bad_name(tools, "function.name")
    if named:
        return named
    open_ids: list[str] = []
    for number, message in enumerate(request.get("messages") or ()):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                return (
                    f"Invalid parameter: messages with role 'tool' must be a response to a "
                    f"preceeding message with 'tool_calls'. (messages[{number}])"
                )
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            break
        open_ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    if open_ids:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_ids)
        )
    return None


def responses_history(request: Mapping[str, Any]) -> str | None:
    """What is wrong with the input of a response."""
    named = _bad_name(request.get("tools") or (), "name")
    if named:
        return named
    given = request.get("input")
    items = given if isinstance(given, list) else []
    asked = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    told = {item.get("call_id") for item in items if item.get("type") == "function_call_output"}
    for call_id in sorted(asked - told):
        return f"No tool output found for function call {call_id}."
    for call_id in sorted(told - asked):
        return f"No tool call found for function call output with call_id {call_id}."
    return None


def anthropic_history(request: Mapping[str, Any]) -> str | None:
    """What is wrong with the messages of the messages API."""
    named = _bad_name(request.get("tools") or (), "custom.name")
    if named:
        return named
    messages = request.get("messages") or []
    if not messages or messages[0].get("role") != "user":
        return 'messages: first message must use the "user" role'
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant"):
            return f'messages: Unexpected role "{message.get("role")}".'
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if not content or any(b.get("type") == "text" and not b.get("text") for b in blocks):
            return f"messages.{number}: text content blocks must be non-empty"
        told = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        missing = [name for name in open_ids if name not in told]
        if missing:
            return (
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
                "corresponding `tool_result` block in the next message."
            )
        for name in told:
            if name not in open_ids:
                return (
                    f"messages.{number}.content.0: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {name}. Each `tool_result` block must have a "
                    "corresponding `tool_use` block in the previous message."
                )
        open_ids = [b["id"] for b in blocks if b.get("type") == "tool_use"]
    if open_ids:
        return (
            f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` "
            f"blocks immediately after: {', '.join(open_ids)}."
        )
    return None


def _bad_name(tools: Any, place: str) -> str | None:
    for number, name in enumerate(_names(tools)):
        if not _TOOL_NAME.fullmatch(name):
            return (
                f"Invalid 'tools[{number}].{place}': string does not match pattern. Expected a "
                "string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
    return None


def _names(tools: Any) -> Iterator[str]:
    for tool in tools:
        yield str(tool.get("name") or "")


Checks = Callable[[Mapping[str, Any]], str | None]
