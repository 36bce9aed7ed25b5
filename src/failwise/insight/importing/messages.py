"""Tool calls in recorded conversations: OpenAI chat and responses, Anthropic, LangChain.

A message says itself which form it has. A call and its answer find each other by id; where there are
none, by name and order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from failwise.insight.importing.calls import ImportedCall, digest, epoch_of, first
from failwise.vocabulary.records import record

_DEPTH: Final = 8
_LISTS: Final = 200_000
_ROLES: Final = frozenset(
    {"user", "assistant", "tool", "system", "developer", "function", "human", "ai", "model"}
)
_ITEMS: Final = frozenset({"function_call", "function_call_output"})
_LANGCHAIN: Final = {
    "AIMessage": "ai", "AIMessageChunk": "ai", "ToolMessage": "tool", "HumanMessage": "human",
    "SystemMessage": "system", "FunctionMessage": "function",
}  # fmt: skip
_NAMES: Final = ("conversation_id", "session_id", "thread_id", "run_id", "trace_id", "task_id")
_REPEATS: Final = ("trial", "attempt", "rollout", "sample", "epoch", "seed")
"""What tells several runs of one task apart."""
_ANSWER_IDS: Final = ("chatcmpl", "msg_", "resp_", "gen-")
"""Ids of single answers: the next request of the same conversation has another one."""


_AROUND: Final = (
    *_NAMES, *_REPEATS, "id", "uuid", "model", "model_name", "created_at", "created", "timestamp",
    "time", "start_time",
)  # fmt: skip


@record
class Conversation:
    """Messages in their order. `key` is the same for the same conversation."""

    key: str
    messages: Sequence[Mapping[str, Any]]
    at: float | None
    model: str
    source: str


@record
class _Asked:
    """A call that a model asked for."""

    call_id: str
    tool: str
    arguments: Any


@record
class _Answered:
    """What came back for it. `failed`: the message says so itself; None where it does not say."""

    call_id: str
    tool: str
    content: Any
    failed: bool | None


def conversations(data: Any, source: str) -> Iterator[Conversation]:
    """The conversations in a piece of JSON, wherever they stand in it."""
    yield from _within(data, source, {}, 0)


def is_message(value: Any) -> bool:
    """Whether this is a message of one of the known forms."""
    if not isinstance(value, Mapping):
        return False
    kind, role = value.get("type"), value.get("role")
    return (
        (isinstance(role, str) and role in _ROLES)
        or (isinstance(kind, str) and kind in _ITEMS)
        or _langchain(value) is not None
    )


def calls_of(conversation: Conversation) -> Iterator[ImportedCall]:
    """The tool calls of a conversation, each with its answer."""
    asked: dict[str, _Asked] = {}
    newest: dict[str, str] = {}
    """The key of the newest call of an id: some recordings use an id twice."""
    answers: dict[str, tuple[_Answered, Mapping[str, Any]]] = {}
    for message in conversation.messages:
        for event in _events(message):
            key = event.call_id or f"{event.tool}#{len(asked)}"
            if isinstance(event, _Asked):
                key = key if key not in asked else f"{key}#{len(asked)}"
                asked[key] = event
                newest[event.call_id] = key
                continue
            if event.call_id in newest:
                key = newest[event.call_id]
            else:
                waiting = (one for one in asked if one not in answers and _fits(asked[one], event))
                key = next(waiting, key)
            asked.setdefault(key, _Asked(event.call_id, event.tool or "tool", None))
            answers[key] = event, message
    for place, (key, call) in enumerate(asked.items()):
        answer, message = answers.get(key, (None, {}))
        moment = epoch_of(first(message, "created_at", "timestamp", "time", "created"))
        yield ImportedCall(
            call.tool,
            key if call.call_id else digest(conversation.key, place, call.tool),
            f"import:{conversation.key}",
            answer.content if answer is not None else None,
            failed=answer.failed if answer is not None else None,
            arguments=call.arguments,
            started=moment or conversation.at,
            model=conversation.model,
            answered=answer is not None,
            by_model=True,
            source=conversation.source,
        )


def _fits(call: _Asked, answer: _Answered) -> bool:
    """An answer without the id of its call belongs to the first open one of its tool."""
    return answer.tool in ("", call.tool) and not (answer.call_id and call.call_id)


def conversation_of(
    messages: Sequence[Mapping[str, Any]], around: Mapping[str, Any], source: str
) -> Conversation:
    """Messages as a conversation. `around` is the object they stood in: ids, moment and model."""
    opening = _opening(messages)
    named = [around[name] for name in _NAMES if name in around]
    own = first(around, "id", "uuid")
    if not named and own is not None and not str(own).startswith(_ANSWER_IDS):
        named = [own]
    named += [around[name] for name in _REPEATS if name in around and named]
    model = first(around, "model", "model_name")
    return Conversation(
        digest(*(named or opening)),
        messages,
        epoch_of(first(around, "created_at", "timestamp", "created", "time", "start_time")),
        model if isinstance(model, str) else "",
        source,
    )


def _opening(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a conversation began with, up to its first question: the same as it goes on."""
    begun: list[str] = []
    for message in messages[:5]:
        begun.append(str(message.get("content") or message.get("data") or message.get("kwargs")))
        if message.get("role") == "user" or message.get("type") == "human":
            break
    return begun if len(begun) < 5 else begun[:1]


def _within(
    data: Any, source: str, around: Mapping[str, Any], depth: int
) -> Iterator[Conversation]:
    if depth > _DEPTH:
        return
    if isinstance(data, list):
        messages = [one for one in data[:_LISTS] if is_message(one)]
        if messages and 2 * len(messages) >= len(data):
            yield conversation_of(messages, around, source)
            return
        for one in data[:_LISTS]:
            yield from _within(one, source, around, depth + 1)
    elif isinstance(data, Mapping):
        near = {**around, **{name: data[name] for name in _AROUND if _is_plain(data.get(name))}}
        for value in data.values():
            if isinstance(value, list | dict):
                yield from _within(value, source, near, depth + 1)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _events(message: Mapping[str, Any]) -> Iterator[_Asked | _Answered]:
    chained = _langchain(message)
    if chained is not None:
        yield from _of_langchain(*chained)
        return
    kind = message.get("type")
    if kind == "function_call":
        yield _Asked(_text(first(message, "call_id", "id")), _text(message.get("name")), message.get("arguments"))  # fmt: skip
    elif kind == "function_call_output":
        yield _Answered(_text(message.get("call_id")), _text(message.get("name")), message.get("output"), None)  # fmt: skip
    else:
        yield from _of_chat(message)
        content = message.get("content")
        if isinstance(content, list):
            yield from _of_blocks(content)


def _of_chat(message: Mapping[str, Any]) -> Iterator[_Asked | _Answered]:
    for call in _objects(message.get("tool_calls")):
        function = call.get("function") if isinstance(call.get("function"), Mapping) else call
        yield _Asked(
            _text(call.get("id")),
            _text(function.get("name")),  # type: ignore[union-attr]
            first(function, "arguments", "args", "input"),  # type: ignore[arg-type]
        )
    old = message.get("function_call")
    if isinstance(old, Mapping):
        yield _Asked("", _text(old.get("name")), old.get("arguments"))
    if message.get("role") in ("tool", "function"):
        flag = first(message, "is_error", "isError")
        status = message.get("status")
        failed = flag if isinstance(flag, bool) else True if status == "error" else None
        yield _Answered(
            _text(message.get("tool_call_id")),
            _text(message.get("name")),
            _content(message.get("content")),
            failed,
        )


def _of_blocks(blocks: Iterable[Any]) -> Iterator[_Asked | _Answered]:
    """Anthropic's content blocks."""
    for block in _objects(blocks):
        kind = block.get("type")
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            yield _Asked(_text(block.get("id")), _text(block.get("name")), block.get("input"))
        elif kind in ("tool_result", "mcp_tool_result"):
            flag = block.get("is_error")
            yield _Answered(
                _text(block.get("tool_use_id")),
                "",
                _content(block.get("content")),
                flag if isinstance(flag, bool) else None,
            )


def _langchain(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The kind and the fields of a LangChain message, dumped by itself or by its serialiser."""
    if message.get("lc") and isinstance(message.get("kwargs"), Mapping):
        names = message.get("id")
        name = names[-1] if isinstance(names, list) and names else ""
        kind = _LANGCHAIN.get(name) if isinstance(name, str) else None
        return (kind, message["kwargs"]) if kind else None
    kind = message.get("type")
    if kind in ("ai", "tool", "human", "system", "function", "AIMessageChunk"):
        data = message.get("data")
        return (_LANGCHAIN.get(kind, kind), data if isinstance(data, Mapping) else message)
    return None


def _of_langchain(kind: str, data: Mapping[str, Any]) -> Iterator[_Asked | _Answered]:
    if kind == "ai":
        for call in _objects(data.get("tool_calls")):
            yield _Asked(_text(call.get("id")), _text(call.get("name")), call.get("args"))
        for call in _objects(data.get("invalid_tool_calls")):
            yield _Asked(_text(call.get("id")), _text(call.get("name")), call.get("args"))
    elif kind in ("tool", "function"):
        status = data.get("status")
        yield _Answered(
            _text(data.get("tool_call_id")),
            _text(data.get("name")),
            _content(data.get("content")),
            True if status == "error" else None,
        )


def _content(content: Any) -> Any:
    """What a tool said: the text of text blocks joined, anything else as it is."""
    if isinstance(content, list) and content:
        texts = [
            block if isinstance(block, str) else block.get("text")
            for block in content
            if isinstance(block, str)
            or (isinstance(block, Mapping) and block.get("type") == "text")
        ]
        if texts and all(isinstance(text, str) for text in texts):
            return "\n".join(str(text) for text in texts)
    return content


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list | tuple):
        yield from (one for one in value if isinstance(one, Mapping))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
