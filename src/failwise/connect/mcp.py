"""MCP: the user behind a client is asked whether a guessed repair may be sent (extra: ``mcp``).

`confirm` makes the callback of one request, for ``rt.run(confirm=...)`` inside of a tool handler.
"""

import asyncio
import functools
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from failwise.runtime.discretion import discreet_repairs
from failwise.vocabulary import documents
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language, Repair

if TYPE_CHECKING:
    from mcp_types import ElicitResult, InputRequiredResult

__all__ = ["Confirmation", "confirm"]

logger = logging.getLogger("failwise")

_KEY: Final = "failwise_confirm"
_FIELD: Final = "confirm"
_MOST_REPAIRS: Final = 10
_LONGEST_VALUE, _LONGEST_NAME = 200, 100


def confirm(context: Any, params: Any = None, *, lang: Language = "en") -> "Confirmation":
    """The `confirm` of one request: ``async with rt.run(confirm=confirm(ctx)) as run: ...``.

    `context`: what the handler was given, an `MCPServer` tool's `Context` or a low-level server's
    `ServerRequestContext`; the latter's handler gives its `params` too. Call it in the handler, which
    is async: raises `UsageError` where no loop runs. The runtime's `callback_timeout` (s) is how long
    the user has.
    """
    return Confirmation(context, params, lang)


class Confirmation:
    """Asks the user of an MCP client by elicitation, with the difference and one box to tick.

    Only an accepted form with the box ticked is a yes. Declined, cancelled, no answer in time, a
    client that cannot ask and an error are a no, and so is a difference that cannot be shown: more
    than 10 edits, or one that redaction or the length (200 characters a value) hides.

    Clients that shook hands (protocol 2025-11-25 and before) are asked while the call waits. Later
    ones can only be asked by the answer: the first round is a no and sets `question`, which the
    handler returns instead of its result; the client asks and repeats the request. So what the
    handler did before runs again: name the run (``run(id=)``) and the calls (``call_id=``) where it
    does more than one call that has an effect. One question is asked per request.
    """

    question: "InputRequiredResult | None" = None
    """What to return from the handler, where the client can only be asked so."""

    def __init__(self, context: Any, params: Any = None, lang: Language = "en") -> None:
        if lang not in ("en", "zh"):
            raise UsageError(f"lang={lang!r}: say 'en' or 'zh'")
        try:
            self._home = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError("confirm(context): call it in an async handler") from None
        self._lang = lang
        self._request = getattr(context, "request_context", context)
        given = context if params is None else params
        self._answers: Mapping[str, Any] = getattr(given, "input_responses", None) or {}
        self._state: str | None = getattr(given, "request_state", None)

    async def __call__(self, tool: str, repairs: tuple[Repair, ...]) -> bool:
        """True where the user said yes to just these repairs. Never raises."""
        try:
            asked = self._ask(tool, repairs)
            if asyncio.get_running_loop() is self._home:
                return await asked
            # The session belongs to the loop of its server.
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, self._home))
        except Exception as error:
            logger.warning(
                "asking about %s failed and counts as a no: %s", tool, type(error).__name__
            )
            return False

    async def _ask(self, tool: str, repairs: tuple[Repair, ...]) -> bool:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        session = self._request.session
        if not _can_ask(session.client_capabilities):
            return False
        message = _message(tool, repairs, self._lang)
        if message is None:
            return False
        if self._request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._by_answer(message, _digest(tool, repairs, self._request.params))
        answer = await session.elicit_form(
            message, _form(self._lang), related_request_id=self._request.request_id
        )
        return _is_yes(answer)

    def _by_answer(self, message: str, state: str) -> bool:
        """Read the answer that came with the request; without one, keep the question for it."""
        from mcp_types import (
            ElicitRequest,
            ElicitRequestFormParams,
            ElicitResult,
            InputRequiredResult,
        )

        answer = self._answers.get(_KEY)
        if isinstance(answer, ElicitResult):
            # A yes to other repairs, or to other arguments, is none to these.
            return self._state == state and _is_yes(answer)
        if self.question is None:
            form = ElicitRequestFormParams(message=message, requested_schema=_form(self._lang))
            self.question = InputRequiredResult(
                input_requests={_KEY: ElicitRequest(params=form)}, request_state=state
            )
        return False


def _can_ask(capabilities: Any) -> bool:
    """The client shows forms. One that names no mode means forms (2025-06-18)."""
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _is_yes(answer: "ElicitResult") -> bool:
    return answer.action == "accept" and (answer.content or {}).get(_FIELD) is True


def _form(lang: Language) -> dict[str, Any]:
    """One box, empty until the user ticks it."""
    box = {"type": "boolean", "title": _words()[lang]["confirm_field"], "default": False}
    return {"type": "object", "properties": {_FIELD: box}, "required": [_FIELD]}


def _message(tool: str, repairs: Sequence[Repair], lang: Language) -> str | None:
    """The question with every edit: where, what stood there, what would. None: it cannot be shown."""
    from failwise.redaction.cut import cut

    if not 0 < len(repairs) <= _MOST_REPAIRS:
        return None
    lines = [_words()[lang]["confirm_guess"].format(tool=_clean(cut(tool, _LONGEST_NAME)))]
    for repair in discreet_repairs(tuple(repairs)):
        before, after = _excerpt(repair.before), _excerpt(repair.after)
        if before == after:
            return None
        if repair.after is None and repair.kind == "unknown_key":
            after = _words()[lang]["left_out"]
        lines.append(f"{_clean(cut(repair.path or '/', _LONGEST_NAME))}: {before} → {after}")
    return "\n".join(lines)


def _excerpt(value: Any) -> str:
    from failwise.redaction.cut import shorten
    from failwise.vocabulary.plain import as_json

    return _clean(shorten(as_json(value), _LONGEST_VALUE))


def _clean(text: str) -> str:
    """No character that a reader does not see, or that turns the direction of what follows."""
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)


def _digest(tool: str, repairs: Sequence[Repair], params: Mapping[str, Any] | None) -> str:
    """What the user is asked about: these repairs of this request's arguments, and nothing else."""
    from failwise.vocabulary.plain import as_json

    asked = [tool, (params or {}).get("arguments"), [repair.to_dict() for repair in repairs]]
    return hashlib.sha256(as_json(asked).encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return documents.read("failwise.connect", "words.toml")[1]
