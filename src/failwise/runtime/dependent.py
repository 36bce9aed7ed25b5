"""Plans: calls that need each other's results. What can be done is done; what cannot says why."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, StopReason
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult

if TYPE_CHECKING:
    from failwise.runtime.run import Run

STEPS = 1000
"""Steps of one plan, at most."""
_DEPTH = 50
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_KEYS = frozenset({"id", "tool", "arguments", "after", "policy", "extra"})


@record
class Step:
    """One call of a plan. `needs`: the steps whose results it refers to, or must come after."""

    id: str
    tool: Any
    arguments: Any
    needs: tuple[str, ...]
    options: Mapping[str, Any]


class _Missing(Exception):
    """A reference leads nowhere in what the step gave."""

    def __init__(self, step: str, reference: str) -> None:
        self.step, self.reference = step, reference


def read(steps: Sequence[Any]) -> list[Step]:
    """The steps as given, checked. Raises `UsageError` for what cannot work."""
    if isinstance(steps, str | bytes | Mapping) or not isinstance(steps, Sequence):
        raise UsageError("plan(steps): give a list of steps, each a mapping with id and tool")
    if len(steps) > STEPS:
        raise UsageError(f"plan: at most {STEPS} steps, not {len(steps)}")
    found: dict[str, Step] = {}
    for given in steps:
        step = _step(given)
        if step.id in found:
            raise UsageError(f"plan: two steps are called {step.id!r}")
        found[step.id] = step
    for step in found.values():
        for need in step.needs:
            if need not in found:
                raise UsageError(
                    f"plan: step {step.id!r} refers to {need!r}; steps are {', '.join(found)}"
                )
    _check_cycles(found)
    return list(found.values())


def _step(given: Any) -> Step:
    if not isinstance(given, Mapping) or "tool" not in given or not given.get("id"):
        raise UsageError(f"plan: {given!r} is no step: give a mapping with id, tool, arguments")
    unknown = given.keys() - _KEYS
    if unknown:
        raise UsageError(
            f"plan: step {given['id']!r} has an unknown key {min(unknown)!r}; "
            f"keys are {', '.join(sorted(_KEYS))}"
        )
    arguments = given.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise UsageError(f"plan: arguments of step {given['id']!r}: give a mapping")
    after = given.get("after") or ()
    after = (after,) if isinstance(after, str) else tuple(after)
    referred = [_parse(reference)[0] for reference in _references(arguments, 0)]
    options = {name: given[name] for name in ("policy", "extra") if name in given}
    needs = tuple(dict.fromkeys([*referred, *map(str, after)]))
    return Step(str(given["id"]), given["tool"], arguments, needs, options)


def _references(node: Any, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        raise UsageError(f"plan: arguments nest deeper than {_DEPTH} levels")
    if isinstance(node, Mapping):
        if node.keys() == {"$ref"}:
            yield str(node["$ref"])
            return
        for value in node.values():
            yield from _references(value, depth + 1)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _references(value, depth + 1)


def _parse(reference: str) -> tuple[str, list[str]]:
    """``#/order/items/0`` as step and path."""
    parts = reference.split("/")
    if parts[0] != "#" or len(parts) < 2 or not parts[1]:
        raise UsageError(
            f"plan: the reference {reference!r} is none: say '#/STEP' or '#/STEP/path/to/value'"
        )
    names = [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]
    return names[0], names[1:]


def _check_cycles(steps: Mapping[str, Step]) -> None:
    left = {step.id: set(step.needs) for step in steps.values()}
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        if not free:
            raise UsageError(f"plan: these steps wait for each other: {', '.join(sorted(left))}")
        for name in free:
            del left[name]


def fill(node: Any, values: Mapping[str, Any]) -> Any:
    """Arguments with each reference replaced by what the step gave."""
    if isinstance(node, Mapping):
        if node.keys() == {"$ref"}:
            return _follow(str(node["$ref"]), values)
        return {key: fill(value, values) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [fill(value, values) for value in node]
    return node


def _follow(reference: str, values: Mapping[str, Any]) -> Any:
    step, path = _parse(reference)
    value = values[step]
    for name in path:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        elif not isinstance(value, Mapping | list | tuple | str) and hasattr(value, name):
            value = getattr(value, name)
        else:
            raise _Missing(step, reference)
    return value


def prepared(
    run: "Run", step: Step, results: Mapping[str, ToolResult[Any]]
) -> "ToolResult[Any] | dict[str, Any]":
    """The step as a call of `call_many`; or its result, where it cannot be made any more."""
    for need in step.needs:
        if not results[need].success:
            return _skipped(run, step, results[need], need)
    values = {need: results[need].value for need in step.needs}
    try:
        arguments = fill(step.arguments, values)
    except _Missing as missing:
        return _skipped(run, step, results[missing.step], missing.step, missing.reference)
    return {"tool": step.tool, "arguments": arguments, "call_id": step.id, **step.options}


def _skipped(
    run: "Run", step: Step, culprit: ToolResult[Any], need: str, reference: str = ""
) -> ToolResult[Any]:
    """The record of a step that was not sent, and why."""
    runtime = run.runtime
    name = step.tool if isinstance(step.tool, str) else runtime._name_of(step.tool)
    failure = culprit.failure
    code = failure.code if failure else "parsing.schema_mismatch"
    if failure is None:
        why = f"not sent: the answer of step {need!r} has nothing at {reference}"
    else:
        may = ", and may have taken effect" if failure.effect is Effect.UNKNOWN else ""
        why = f"not sent: step {need!r} ({culprit.tool_name}) failed with {code}{may}"
    said: dict[str, Any] = {"step": need, "tool": culprit.tool_name, "code": code}
    cause = failure.detail("cause") if failure else None
    if isinstance(cause, Mapping) and code == "runtime.step_skipped":
        said = dict(cause)  # the first failure of the chain, not the last link
    return runtime._keep(
        ToolResult(
            name or str(step.tool),
            False,
            None,
            Failure(
                Category.RUNTIME,
                "runtime.step_skipped",
                why,
                Effect.NOT_SENT,
                False,
                FixBy.NOBODY,
                rule="plan.step_skipped",
                confidence=1.0,
                details={"cause": said},
            ),
            Action.ABORT,
            stop_reason=StopReason.DECLINED,
            timestamp=runtime.clock.time(),
            call_id=step.id,
            run_id=run.id,
        )
    )


async def perform(run: "Run", given: Sequence[Any], limit: int) -> list[ToolResult[Any]]:
    """Each step as soon as what it needs is there."""
    import asyncio

    steps, slots = read(given), asyncio.Semaphore(_checked(limit))
    results: dict[str, ToolResult[Any]] = {}
    ended = {step.id: asyncio.Event() for step in steps}

    async def one(step: Step) -> None:
        for need in step.needs:
            await ended[need].wait()
        call = prepared(run, step, results)
        if isinstance(call, ToolResult):
            results[step.id] = call
        else:
            async with slots:
                results[step.id] = (await run.call_many([call]))[0]
        ended[step.id].set()

    tasks = [asyncio.ensure_future(one(step)) for step in steps]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return [results[step.id] for step in steps]


def perform_sync(run: "Run", given: Sequence[Any], limit: int) -> list[ToolResult[Any]]:
    """Level by level: all that can go now, then what they made possible."""
    steps = read(given)
    limit = _checked(limit)
    results: dict[str, ToolResult[Any]] = {}
    left = list(steps)
    while left:
        ready = [step for step in left if all(need in results for need in step.needs)][:limit]
        calls = []
        for step in ready:
            call = prepared(run, step, results)
            if isinstance(call, ToolResult):
                results[step.id] = call
            else:
                calls.append((step.id, call))
        done = run.call_many_sync([call for _, call in calls])
        results.update(zip((name for name, _ in calls), done, strict=True))
        left = [step for step in left if step.id not in results]
    return [results[step.id] for step in steps]


def _checked(limit: int) -> int:
    if isinstance(limit, bool) or limit < 1:
        raise UsageError(f"plan(limit={limit!r}): say a whole number above 0")
    return limit
