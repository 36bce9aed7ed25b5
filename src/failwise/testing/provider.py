"""`ProviderServer`: the APIs of chat providers on loopback, scripted turn by turn."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from failwise.faults.replies import Fault, Reply
from failwise.faults.requests import Request
from failwise.faults.server import FaultServer
from failwise.testing import answers, refusals
from failwise.testing.answers import Event, Turned
from failwise.testing.turns import Says, Trouble, Turn
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

_SSE = "text/event-stream; charset=utf-8"
_CUT = ("broken_stream", "stream_error", "stream_end")


@record
class _Dialect:
    """One API: where it is, how it says things, how it refuses, what it demands of a history."""

    path: str
    prefix: str
    whole: Callable[[Turned], dict[str, Any]]
    stream: Callable[[Turned], Iterator[Event]]
    refuse: Callable[[str, Mapping[str, Any], float | None], refusals.Refusal]
    check: refusals.Checks
    broken: Callable[[], Event]


def _openai_error() -> Event:
    text = "The server had an error while processing your request. Sorry about that!"
    error = {"message": text, "type": "server_error", "param": None, "code": "server_error"}
    return None, {"error": error}


def _responses_error() -> Event:
    text = "The model is currently overloaded."
    return "error", {
        "type": "error",
        "code": "server_is_overloaded",
        "message": text,
        "param": None,
        "sequence_number": 99,
    }


def _anthropic_error() -> Event:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    return "error", {"type": "error", "error": error}


_DIALECTS = (
    _Dialect(
        "/v1/chat/completions",
        "call",
        answers.chat,
        answers.chat_stream,
        refusals.openai,
        refusals.openai_history,
        _openai_error,
    ),
    _Dialect(
        "/v1/responses",
        "call",
        answers.response,
        answers.response_stream,
        refusals.openai,
        refusals.responses_history,
        _responses_error,
    ),
    _Dialect(
        "/v1/messages",
        "toolu",
        answers.message,
        answers.message_stream,
        refusals.anthropic,
        refusals.anthropic_history,
        _anthropic_error,
    ),
)


class ProviderServer:
    """OpenAI chat completions, OpenAI responses and Anthropic messages over real sockets, scripted.

    ```python
    with ProviderServer([Says(calls=[("search", {"query": "shoes"})]), Says("Found them.")]) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test")
    ```

    Each request takes the next turn of the script, whatever API it comes to, streamed or not as it
    asks; the last turn repeats. A turn is a `Says`, a `Trouble`, or a function that is given the
    request's JSON and says one of them: a simulated model. A history that the real API would refuse
    is refused here too, in its words, without a turn being taken. `requests` are the bodies that
    came. Listens on 127.0.0.1 only; also ``async with``.
    """

    def __init__(self, turns: Sequence[Turn] | Turn = ()) -> None:
        self._server = FaultServer()
        self._lock = threading.Lock()
        self._number = 0
        self._taken = 0
        self.requests: list[dict[str, Any]] = []
        """The JSON bodies of the requests, oldest first."""
        self.script(turns)

    def script(self, turns: Sequence[Turn] | Turn) -> None:
        """Begin a new script."""
        given = list(turns) if isinstance(turns, Sequence) else [turns]
        for turn in given:
            if not isinstance(turn, Says | Trouble) and not callable(turn):
                raise UsageError(f"{turn!r} is no turn: give Says(...), Trouble(...) or a function")
        with self._lock:
            self._turns = given
            self._taken = 0

    @property
    def openai_url(self) -> str:
        """``base_url`` for the OpenAI SDK."""
        return self._server.url("/v1")

    @property
    def anthropic_url(self) -> str:
        """``base_url`` for the Anthropic SDK."""
        return self._server.url()

    def __enter__(self) -> "ProviderServer":
        self._server.__enter__()
        for dialect in _DIALECTS:
            self._server.route("POST", dialect.path, self._answers(dialect))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    async def __aenter__(self) -> "ProviderServer":
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    def _answers(self, dialect: _Dialect) -> Callable[[Request, int], Reply]:
        def answer(request: Request, _: int) -> Reply:
            body = request.json
            if not isinstance(body, dict):
                return _refused(dialect.refuse("bad_request", {}, None))
            with self._lock:
                self.requests.append(body)
                self._number += 1
                number = self._number
            wrong = dialect.check(body)
            if wrong is not None:
                status, refusal, headers = dialect.refuse("bad_request", body, None)
                refusal["error"]["message"] = wrong
                return _refused((status, refusal, headers))
            return self._turn(dialect, body, number)

        return answer

    def _turn(self, dialect: _Dialect, body: dict[str, Any], number: int) -> Reply:
        with self._lock:
            if not self._turns:
                raise UsageError("the provider has no script: give turns")
            turn = self._turns[min(self._taken, len(self._turns) - 1)]
            self._taken += 1
        entry = turn if isinstance(turn, Says | Trouble) else turn(body)
        if isinstance(entry, Trouble):
            return _troubled(dialect, entry, body, number)
        said = Turned(entry, body, number, dialect.prefix)
        if not body.get("stream"):
            return Fault.json(dialect.whole(said), delay=entry.delay)
        return _streamed(answers.encoded(dialect.stream(said)), entry)


def _refused(refusal: refusals.Refusal) -> Reply:
    status, body, headers = refusal
    return Fault.json(body, status, headers=headers)


def _streamed(lines: list[bytes], says: Says) -> Reply:
    body = b"".join(lines)
    size = max(1, -(-len(body) // max(1, len(lines))))
    return Reply(
        200,
        {"Content-Type": _SSE},
        body,
        delay=says.delay,
        pace=(size, says.pace) if says.pace else None,
        chunked=not says.pace,
    )


def _troubled(dialect: _Dialect, trouble: Trouble, body: dict[str, Any], number: int) -> Reply:
    """The reply of a turn that fails."""
    match trouble.kind:
        case "gateway":
            return Fault.status(502)
        case "silent":
            return Fault.silent()
        case "reset":
            return Fault.reset()
        case kind if kind in _CUT:
            return _cut(dialect, kind, body, number)
        case kind:
            return _refused(dialect.refuse(kind, body, trouble.retry_after))


def _cut(dialect: _Dialect, kind: str, body: dict[str, Any], number: int) -> Reply:
    """An answer that ends in the middle."""
    said = Turned(Says("This answer breaks off in the middle."), body, number, dialect.prefix)
    if not body.get("stream"):
        return Fault.truncated(json.loads(json.dumps(dialect.whole(said))))
    lines = answers.encoded(dialect.stream(said))
    half = b"".join(lines[: len(lines) // 2])
    headers = {"Content-Type": _SSE}
    if kind == "broken_stream":
        return Reply(200, headers, half, promised=len(half) + 500, ending="close")
    if kind == "stream_error":
        half += answers.encoded(iter([dialect.broken()]))[0]
    return Reply(200, headers, half, chunked=True)
