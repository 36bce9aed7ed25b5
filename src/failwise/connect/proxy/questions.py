"""Questions of upstreams to the host's user (elicitation), between both eras of the protocol.

An upstream of the handshake era pushes its question while the call waits. A host of that era is asked in
the same way; a modern one can only be asked by an answer, so its call is held open here until it comes
back with the user's word. A pushed question does not name its call: where calls of more than one host are
under way at that upstream, nobody is asked.
"""

import asyncio
import hashlib
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp import MCPError

from failwise.connect.proxy.calling import FrontCall, ask_host

if TYPE_CHECKING:
    from failwise.connect.proxy.upstream import Upstream

logger = logging.getLogger("failwise")

_KEY: Final = "failwise_question"
HELD_SECONDS: Final = 300.0
"""How long a call waits for its host's user."""


class _Held:
    __slots__ = ("alarm", "answer", "digest", "entry", "front", "task")

    def __init__(
        self,
        task: "asyncio.Task[Any]",
        front: FrontCall,
        entry: Any,
        digest: str,
        answer: "asyncio.Future[types.ElicitResult]",
    ) -> None:
        self.task, self.front, self.entry = task, front, entry
        self.digest, self.answer = digest, answer
        self.alarm: asyncio.TimerHandle | None = None


class Questions:
    """Who is asked, and the calls that wait for an answer."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def asked(self, upstream: "Upstream", params: types.ElicitRequestParams) -> Any:
        """An upstream of the handshake era asks."""
        async with self._turns.setdefault(upstream.name, asyncio.Lock()):
            fronts = [front for front in upstream.under_way if front is not None]
            if len({id(front.host) for front in fronts}) != 1:
                logger.warning(
                    "MCP server %s asks for input, and it cannot be told for which call: declined",
                    upstream.name,
                )
                return types.ElicitResult(action="cancel")
            front = fronts[0]
            capabilities = front.context.session.client_capabilities
            if capabilities is None or capabilities.elicitation is None:
                return types.ErrorData(
                    code=types.INVALID_REQUEST, message="Elicitation not supported"
                )
            if not front.modern:
                try:
                    return await ask_host(front, params)
                except MCPError as error:
                    return error.error
            if len(fronts) > 1 or front.question is None or front.question.done():
                logger.warning(
                    "MCP server %s asks for input while several calls wait: declined", upstream.name
                )
                return types.ElicitResult(action="cancel")
            answer = front.asked = asyncio.get_running_loop().create_future()
            front.question.set_result(params)
            try:
                return await answer
            except asyncio.CancelledError:
                if answer.cancelled():
                    return types.ElicitResult(action="cancel")
                raise

    def hold(
        self,
        task: "asyncio.Task[Any]",
        front: FrontCall,
        entry: Any,
        question: types.ElicitRequestParams,
    ) -> types.InputRequiredResult:
        """Keep the call; what the host is told to ask. The state is a secret that only it knows."""
        assert front.asked is not None
        state = secrets.token_urlsafe(24)
        held = _Held(task, front, entry, _digest(front.params), front.asked)
        self._held[state] = held
        held.alarm = asyncio.get_running_loop().call_later(HELD_SECONDS, self._drop, state)
        return types.InputRequiredResult(
            input_requests={_KEY: types.ElicitRequest(params=question)}, request_state=state
        )

    def held(
        self, params: types.CallToolRequestParams
    ) -> "tuple[asyncio.Task[Any], FrontCall, Any] | None":
        """The call that this request goes on with. Another tool or other arguments go on with none:
        an approval of one set of arguments covers no other."""
        state = params.request_state
        held = self._held.get(state) if state is not None else None
        if held is None or held.digest != _digest(params):
            return None
        assert state is not None
        del self._held[state]
        if held.alarm is not None:
            held.alarm.cancel()
        answer = (params.input_responses or {}).get(_KEY)
        if not isinstance(answer, types.ElicitResult):
            answer = types.ElicitResult(action="cancel")
        held.front.question = asyncio.get_running_loop().create_future()
        if not held.answer.done():
            held.answer.set_result(answer)
        return held.task, held.front, held.entry

    def _drop(self, state: str) -> None:
        """Nobody came back: the upstream is told that its question was not answered."""
        held = self._held.pop(state, None)
        if held is not None and not held.answer.done():
            held.answer.set_result(types.ElicitResult(action="cancel"))

    async def close(self) -> None:
        """Withdraw every question."""
        for state in list(self._held):
            held = self._held[state]
            self._drop(state)
            held.task.cancel()


def _digest(params: types.CallToolRequestParams) -> str:
    from failwise.vocabulary.plain import as_json

    asked = as_json([params.name, params.arguments])
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
