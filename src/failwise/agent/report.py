"""What came of a task: `AgentResult`, and the report for the user, from records and not from words."""

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from failwise.agent.messages import Usage
from failwise.agent.transcript import Entry
from failwise.vocabulary.kinds import Category, Effect, FixBy
from failwise.vocabulary.plain import as_json
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language, ToolResult
from failwise.vocabulary.sentences import say, table
from failwise.vocabulary.words import meaning, remedy

Status = Literal["done", "partial", "refused", "stuck", "limit", "failed", "declined"]
_SHOWN = 20
_CHARACTERS = 80


@dataclass(slots=True)
class Made:
    """One call of the task: in which turn, what was asked (redacted, short), its result. `order` is alike
    for calls that ask for the same thing: tool and required arguments."""

    turn: int
    order: str
    asked: str
    result: ToolResult[Any]
    read_only: bool
    sent: bool = True

    @property
    def name(self) -> str:
        return f"{self.result.tool_name}({self.asked})" if self.asked else self.result.tool_name


def shown(arguments: Any) -> str:
    """Arguments for a person: redacted, then cut."""
    from failwise.redaction import default

    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {"": arguments}
    text = as_json(default().data(arguments)).replace('{"": ', "{")
    text = text.strip().removeprefix("{").removesuffix("}")
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def unresolved(made: Sequence[Made]) -> list[Made]:
    """Failed calls that nothing made good since.

    A failure is made good by a later call for the same thing that succeeds; one that only other
    arguments cure, or that was an answer, also by a later turn in which its tool succeeded; arguments
    that could not be read, by any later turn in which they could. What was not sent is none of its
    own; a tool that is not there could not be called.
    """
    good = {call.order: number for number, call in enumerate(made) if call.result.success}
    last_good: dict[str, int] = {}
    last_read: dict[str, int] = {}
    for call in made:
        name, failure = call.result.tool_name, call.result.failure
        if failure is None:
            last_good[name] = last_read[name] = call.turn
        elif call.sent and failure.category is not Category.MODEL_OUTPUT:
            last_read[name] = call.turn
    left: dict[str, Made] = {}
    for number, call in enumerate(made):
        failure = call.result.failure
        if failure is None or not call.sent or good.get(call.order, -1) > number:
            continue
        if failure.code == "model_output.unknown_tool":
            continue
        effect = call.result.effect or failure.effect
        may_have = not call.read_only and not effect.safe
        since = last_read if failure.category is Category.MODEL_OUTPUT else last_good
        corrected = failure.category in _ANSWERS and not may_have
        if corrected and since.get(call.result.tool_name, -1) > call.turn:
            continue
        left[call.order] = call
    return list(left.values())


_ANSWERS = (Category.MODEL_OUTPUT, Category.INVALID_REQUEST, Category.BUSINESS, Category.PARSING)


def _may_have_happened(call: Made) -> bool:
    effect = call.result.effect
    return not call.read_only and effect in (Effect.UNKNOWN, Effect.APPLIED)


@record
class AgentResult:
    """What came of a task.

    `status`: ``done``: the model ended, and no call is left failed; ``partial``: it ended, and some
    are; ``refused``: something only the user or an operator can cure stopped it (`cause`);
    ``stuck``: the model tried the same again and again; ``limit``: `limit` says of what; ``failed``:
    no model could be asked (`cause`); ``declined``: the model declined. `text` is the model's last
    word. `results`: all tool calls in order, those not sent too. `done`, `not_done`, `open`: what was
    changed, what failed, what may have happened. `usage`, `money`, `turns` (requests to models),
    `corrections` (rounds), `result_tokens` (tokens of tool results over all requests, estimated).
    `degraded_to`: the model that took over. `history`: give it to the next `run(history=)` to go on.
    """

    status: Status
    text: str
    results: tuple[ToolResult[Any], ...]
    done: tuple[str, ...]
    not_done: tuple[str, ...]
    open: tuple[str, ...]
    cause: ToolResult[Any] | None
    limit: str | None
    remedies: tuple[str, ...]
    usage: Usage
    usage_estimated: bool
    money: float
    turns: int
    corrections: int
    result_tokens: int
    degraded_to: str | None
    model_results: tuple[ToolResult[Any], ...]
    history: tuple[Entry, ...]
    run_id: str
    lang: Language

    @property
    def ok(self) -> bool:
        """The task is done, as far as the records of its calls can tell."""
        return self.status == "done"

    def report(self, lang: Language | None = None) -> str:
        """For the user: what was done, what was not, what may have happened, what they can do."""
        return "\n".join(_report(self, lang or self.lang))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; results as in `ToolResult.to_dict`."""
        return {
            "status": self.status,
            "text": self.text,
            "report": self.report(),
            "done": list(self.done),
            "not_done": list(self.not_done),
            "open": list(self.open),
            "limit": self.limit,
            "remedies": list(self.remedies),
            "usage": {"input": self.usage.input, "output": self.usage.output},
            "usage_estimated": self.usage_estimated,
            "money": self.money,
            "turns": self.turns,
            "corrections": self.corrections,
            "degraded_to": self.degraded_to,
            "run_id": self.run_id,
            "results": [result.to_dict() for result in self.results],
        }


def _report(result: AgentResult, lang: Language) -> Iterator[str]:
    failure = result.cause.failure if result.cause is not None else None
    said = meaning(failure, lang).rstrip(".。") if failure is not None else "-"
    what = say(lang, f"what_{result.limit}") if result.limit else ""
    yield say(lang, f"report_{result.status}", meaning=said, what=what)
    if result.degraded_to:
        yield say(lang, "report_degraded", name=result.degraded_to)
    for kind in ("done", "not_done", "open"):
        names = getattr(result, kind)
        if names:
            more = [f"+{len(names) - _SHOWN}"] if len(names) > _SHOWN else []
            joined = table(lang)["separator"].join([*names[:_SHOWN], *more])
            yield say(lang, f"report_list_{kind}", names=joined)
    texts = _remedies([result.cause, *result.results], lang) if lang != result.lang else None
    for text in result.remedies if texts is None else texts:
        yield say(lang, "report_list_must", text=text)
    later = result.cause.retry_at if result.cause is not None else None
    if later is not None:
        moment = datetime.datetime.fromtimestamp(later, datetime.UTC)
        yield say(lang, "report_later", time=moment.strftime("%Y-%m-%d %H:%M:%S UTC"))


def _remedies(results: Sequence[ToolResult[Any] | None], lang: Language) -> tuple[str, ...]:
    """What the user or an operator can do, once each."""
    texts = [
        remedy(result.failure, lang)
        for result in results
        if result is not None
        and result.failure is not None
        and result.failure.fix_by in (FixBy.USER, FixBy.OPERATOR)
        and result.failure.code != "runtime.chain_aborted"
    ]
    return tuple(dict.fromkeys(texts))[:5]


def concluded(
    status: Status,
    text: str,
    made: Sequence[Made],
    *,
    cause: ToolResult[Any] | None,
    limit: str | None,
    lang: Language,
    **facts: Any,
) -> AgentResult:
    """The result of a task that ended."""
    left = unresolved(made)
    aborted = {c.order: c for c in made if not c.sent and not c.read_only}
    good = {c.order for c in made if c.result.success}
    not_done = [call for call in left if not _may_have_happened(call)]
    not_done += [c for order, c in aborted.items() if order not in good | {x.order for x in left}]
    causes = [cause, *(call.result for call in left)] if status != "done" else []
    return AgentResult(
        status,
        text,
        tuple(call.result for call in made),
        tuple(call.name for call in made if call.result.success and not call.read_only),
        tuple(call.name for call in not_done),
        tuple(call.name for call in left if _may_have_happened(call)),
        cause,
        limit,
        _remedies(causes, lang),
        lang=lang,
        **facts,
    )
