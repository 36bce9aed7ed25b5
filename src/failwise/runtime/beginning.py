"""How a call begins: which tool is meant, what it is given, how long it may take, which effect it is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failwise.policy.table import checked_overrides
from failwise.runtime.execution import Execution, Plan
from failwise.runtime.intake import OPTIONS, raw_of_function, raw_of_name
from failwise.runtime.run import Run, checked_deadline, surroundings
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Call, Delegate

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

_CALL_ID = {"call_id"}


def begin(
    runtime: "Runtime",
    tool: Any,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    run: Run | None,
    *,
    parent: Call | None = None,
    plan: Plan | None = None,
) -> Execution:
    """A call as data, with what belongs to it: `Runtime._begin`. Raises `UsageError` for misuse."""
    raw: Any
    if tool.__class__ is str:
        known = runtime._tools.get(tool) or runtime._judgement.without_debris(tool)
        spec = known or runtime._judgement.unknown(tool)
        if len(args) == 1 and (options.keys() == _CALL_ID or options.keys() <= OPTIONS):
            raw = args[0]
        else:
            raw, options = raw_of_name(tool, args, options)
    elif plan is not None:
        # Another's tool, or a client's requests: all that is to be known of it is in its plan.
        spec, raw = plan.tool, args[0]
    else:
        name = runtime._name_of(tool)
        if name is not None:
            spec = runtime._tools[name]
        elif isinstance(tool, ToolSpec) and tool.kind != "tool":
            spec = tool  # a chat model, or a client's requests: none that a model may call
        else:
            raise UsageError(
                f"{getattr(tool, '__qualname__', tool)!r} is not a tool of this runtime: "
                "decorate it with @rt.tool or say rt.add(...)"
            )
        raw, options = raw_of_function(tool, spec, args, options)
    clock = runtime.clock
    now = clock.monotonic()
    outer = surroundings.get()
    deadline = None
    if outer is not None:
        run = run or outer.run
        deadline = outer.call.deadline
    if run is None:
        run = runtime._loose
    elif run.deadline is not None:
        deadline = run.deadline if deadline is None else min(deadline, run.deadline)
    if options and "deadline" in options:
        seconds = checked_deadline(options["deadline"])
        if seconds is not None:
            deadline = now + seconds if deadline is None else min(deadline, now + seconds)
    given = options.get("call_id") if options else None
    call_id = str(given) if given else runtime._new_id("call")
    call = Call(
        spec,
        raw,
        call_id,
        run.id,
        # A read has no effect to tell apart: its key only makes chance repeatable.
        call_id if spec.read_only is True else _key(runtime, run, call_id, bool(given)),
        now,
        clock.time() - now,
    )
    if deadline is not None:
        call.deadline = deadline
    if run.model is not None:
        call.model = run.model
    if tool.__class__ is str and tool != spec.name:
        call.written_name = tool
    if runtime.mode == "observe":
        call.observe = True
    if parent is not None or outer is not None:
        call.parent_id = parent.call_id if parent else outer.call.call_id  # type: ignore[union-attr]
    if options and (len(options) > 1 or not given):
        call.truncated = bool(options.get("truncated", False))
        call.policy = checked_overrides(options.get("policy"))
        call.extra = options.get("extra")
    plan = plan or runtime._plans.get(spec.name) or runtime._plan(spec)
    execution = Execution(runtime, call, run, plan)
    if outer is not None and outer.runtime is runtime:
        # A tool that calls another of its agent's: who runs the one can run the other.
        execution.performer = outer.performer
    return execution


def child_of(runtime: "Runtime", execution: Execution, step: Delegate) -> Execution:
    """A fallback: a call of its own in the same run, with its own key; `Runtime._child`."""
    parent = execution.call
    options = {"call_id": f"{parent.call_id}:{step.tool}"}
    child = begin(
        runtime, step.tool, (dict(step.arguments),), options, execution.run, parent=parent
    )
    child.performer = execution.performer
    child.call.parent_id = parent.call_id
    child.call.delegated = (*parent.delegated, parent.tool.name)
    child.call.deadline = parent.deadline
    return child


def _key(runtime: "Runtime", run: Run, call_id: str, given: bool) -> str:
    """Which effect this is: the same for a run's call id in every process, else its own."""
    if not (given and run.chain):
        return runtime._new_id(call_id)
    from failwise.effects.identity import effect_key

    return effect_key(run.id, call_id)
