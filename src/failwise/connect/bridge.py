"""What every framework's adapter needs: a tool call of the framework, made through a runtime.

An adapter knows one framework: where its tool calls pass, what its control flow is, how it hands a
text to the model. All else is here. A `Bridge` keeps what is alike for many calls (the tools as the
runtime knows them, the run that a call belongs to); for one call it is given `attempt`, which lets the
framework run its own tool once, and `original`, which does what the framework would have done by itself:

    bridge = Bridge(runtime, passthrough=(Interrupt,))
    tool = bridge.tool("search", schema, source=framework_tool)
    outcome = await bridge.call(
        tool, arguments, attempt, original, run=bridge.run(job_id), call_id="call_7"
    )
    return outcome.given if outcome.as_it_is else outcome.text

The runtime's own tools are left alone: where one has the name of a framework's tool, what it declares
holds for both. What is declared by name or glob (`Runtime(declarations=)`, `[declare."pay_*"]` in
``failwise.toml``) holds for every framework's tools.
"""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from failwise.connect.attempts import Attempt, Cell, run_tool, run_tool_async
from failwise.connect.remarks import warn_once
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.tools.declarations import checked
from failwise.tools.declared import TOOL_OPTIONS, Declarations
from failwise.vocabulary.errors import ConfigurationError, ToolError, UsageError
from failwise.vocabulary.records import UNSET
from failwise.vocabulary.result import Language, ToolResult
from failwise.vocabulary.spec import ToolSpec

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution
    from failwise.runtime.runtime import Runtime

_RUNS: Final = 4_096
"""Runs that are remembered; the one that was used longest ago goes first."""


class Outcome:
    """What became of a call: the runtime's `result`, and what the framework's tool gave itself.

    `given` is what the last attempt gave (UNSET: none gave anything). `as_it_is`: the call succeeded
    and `given` is its value, to be handed on untouched; else `text` is what the model should read.
    """

    __slots__ = ("_lang", "given", "result")

    def __init__(self, result: "ToolResult[Any] | None", given: Any, lang: Language = "en") -> None:
        self.result, self.given, self._lang = result, given, lang

    @property
    def as_it_is(self) -> bool:
        result = self.result
        if result is None:
            return True
        if not result.success or self.given is UNSET:
            return False
        return result.degraded_to is None and not result.verified and "replayed" not in result.extra

    @property
    def failed(self) -> bool:
        """The model must be told of a failure."""
        return self.result is not None and not self.result.success

    @property
    def text(self) -> str:
        """What the model should read."""
        return "" if self.result is None else self.result.for_model(self._lang)

    @property
    def record(self) -> dict[str, Any]:
        """The result as plain JSON data, for a place that no model reads."""
        import json

        plain: dict[str, Any] = {} if self.result is None else json.loads(self.result.to_json())
        return plain


class Bridge:
    """One adapter's way through a runtime. Serves any number of agents, threads and loops.

    `runtime`: a `Runtime`, which makes a run for each job of the framework, or a `Run` that all calls
    belong to. `lang`: the language of what models read. `passthrough`: the framework's exceptions that
    are control flow. `judged`: what of a tool's answer is evidence, where the framework wraps it (an
    answer's text, say); by default the answer itself. Raises `UsageError` for options that cannot work.
    """

    def __init__(
        self,
        runtime: "Runtime | Run",
        *,
        lang: Language = "en",
        passthrough: tuple[type[BaseException], ...] = (),
        judged: Callable[[Any], Any] | None = None,
    ) -> None:
        if not hasattr(runtime, "_where"):
            raise UsageError(f"runtime={runtime!r}: give a Runtime or a Run")
        if lang not in ("en", "zh"):
            raise UsageError(f"lang={lang!r}: say 'en' or 'zh'")
        self.runtime, self._run = runtime._where()
        self.lang: Language = lang
        self._passthrough = passthrough
        self._judged = judged
        self._lock = threading.Lock()
        self._tools: dict[str, tuple[Any, Any, Plan]] = {}
        self._runs: OrderedDict[Any, Run] = OrderedDict()
        self._last: tuple[Any, Run] | None = None

    # Tools

    def tool(
        self,
        name: str,
        schema: "Mapping[str, Any] | Callable[[], Mapping[str, Any] | None] | None",
        *,
        source: Any,
        description: str = "",
        said: Any = None,
        timeout: float | None = None,
    ) -> Plan:
        """A tool of the framework as the runtime knows it; the same for the same `source`: the
        framework's object, or plain data that is equal where it makes a new one each time.

        `schema`: JSON Schema of its arguments, or a function that gives it, asked once. `said`: what the
        tool says of itself in a place of the framework's for such things, as a mapping of declarations.
        `timeout`: the framework's own limit for one attempt, in seconds. A schema that cannot be read is
        done without, and said once. Raises `ConfigurationError` for declarations that cannot be meant.
        """
        known = self._tools.get(name)
        declared = self.runtime._declarations
        if known is not None and known[1] is declared:
            same = known[0] is source or (isinstance(source, dict) and known[0] == source)
            if same:
                return known[2]
        given = schema() if callable(schema) else schema
        plan = self.runtime._plan(self._spec(name, given, description, said, timeout))
        with self._lock:
            self._tools[name] = (source, declared, plan)
        return plan

    def _spec(
        self,
        name: str,
        schema: Mapping[str, Any] | None,
        description: str,
        said: Any,
        timeout: float | None,
    ) -> ToolSpec:
        runtime = self.runtime
        bridged = _bridged.setdefault(runtime, set())
        own = None if name in bridged else runtime._tools.get(name)
        spec = ToolSpec(
            name,
            description,
            schema,
            call=run_tool,
            call_async=run_tool_async,
            timeout=timeout,
            passthrough=self._passthrough,
        )
        if own is not None:
            spec = _like(spec, own)
        if said is not None:
            spec = Declarations({name: said}).applied(spec)
        if runtime._declarations is not None:
            spec = runtime._declarations.applied(spec)
        try:
            spec = checked(spec)
        except UsageError as error:
            if isinstance(error, ConfigurationError) or schema is None:
                raise
            warn_once(("schema", name), "%s: its arguments are not checked: %s", name, error)
            spec = checked(replace(spec, schema=None))
        if own is not None:
            return spec
        # Agents may share a name: what the runtime lists is the one that was seen last.
        bridged.add(name)
        runtime.replace(spec)
        return runtime._tools[name]

    # Runs

    def run(self, key: Any, id: str | None = None) -> Run:
        """The run of a job of the framework's: the one of this `key`, made with `id` at its first call.

        `id` should be the same after a restart; None makes one. Where the bridge was made for a `Run`,
        it is that one. A `key` that is no text or tuple is told by identity.
        """
        if self._run is not None:
            return self._run
        last = self._last
        plain = isinstance(key, str | tuple)
        if last is not None and (last[0] == key if plain else last[0] is key):
            return last[1]
        given = key
        if not plain:
            key = _Same(key)
        with self._lock:
            run = self._runs.get(key)
            if run is None:
                run = self._runs[key] = self.runtime.run(id=id)
                if len(self._runs) > _RUNS:
                    self._runs.popitem(last=False)
            else:
                self._runs.move_to_end(key)
            self._last = (given, run)
            return run

    # Calls

    async def call(
        self,
        tool: Plan,
        raw: Any,
        attempt: Attempt,
        original: Callable[[], Awaitable[Any]],
        *,
        run: Run,
        call_id: str | None,
        policy: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Make a call of the framework's through the runtime. Control flow and cancellation pass.

        `raw`: the arguments as the model wrote them, text or object. `call_id`: the model's id of this
        call. `policy`: rows for this call, over all others. With `FAILWISE=off` it is `original`, and in observe mode the outcome is as it would be.
        """
        runtime = self.runtime
        if runtime.mode == "off":
            return Outcome(None, await original())
        execution = self._begin(tool, raw, run, call_id, policy)
        cell = execution.performer = Cell(self._judged, tool.tool.name, attempt)
        result = await runtime._driven(execution)
        if runtime.mode == "observe":
            if cell.error is not None:
                raise cell.error
            return Outcome(None, await original() if cell.given is UNSET else cell.given)
        return Outcome(result, cell.given, self.lang)

    def call_sync(
        self,
        tool: Plan,
        raw: Any,
        attempt: Attempt,
        original: Callable[[], Any],
        *,
        run: Run,
        call_id: str | None,
    ) -> Outcome:
        """`call` in the caller's thread."""
        runtime = self.runtime
        if runtime.mode == "off":
            return Outcome(None, original())
        execution = self._begin(tool, raw, run, call_id, None)
        cell = execution.performer = Cell(self._judged, tool.tool.name, attempt)
        result = runtime._driven_sync(execution)
        if runtime.mode == "observe":
            if cell.error is not None:
                raise cell.error
            return Outcome(None, original() if cell.given is UNSET else cell.given)
        return Outcome(result, cell.given, self.lang)

    def _begin(
        self,
        tool: Plan,
        raw: Any,
        run: Run,
        call_id: str | None,
        policy: Mapping[str, Any] | None,
    ) -> "Execution":
        options: dict[str, Any] = {"call_id": call_id} if call_id else {}
        if policy is not None:
            options["policy"] = policy
        return self.runtime._begin(tool.tool, (raw,), options, run, plan=tool)

    def unknown(self, name: str) -> Plan:
        """A tool that the agent does not have: a call of it ends as ``model_output.unknown_tool``,
        also where the runtime has one of that name."""
        return self.runtime._plan(ToolSpec(name))


class _Same:
    """An object as a key: itself, whatever it is equal to. Held, so that no other takes its place."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __hash__(self) -> int:
        return id(self._of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._of is self._of


def answered(text: str, *, failed: bool = False) -> Any:
    """What of an answer's text is evidence: the data where it is JSON, and a failed result of a tool
    where the framework says that it `failed`."""
    if failed:
        return {"isError": True, "content": [{"type": "text", "text": text}]}
    if text[:1] in ("{", "["):
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def wrong_arguments(error: BaseException, name: str) -> ToolError:
    """The framework's own validation refused arguments that fit the schema: nothing was sent.

    `error` is pydantic's ``ValidationError``, or anything else that can only say what is wrong.
    """
    details: dict[str, Any] = {}
    errors = getattr(error, "errors", None)
    if callable(errors):
        rows = errors(include_url=False, include_context=False, include_input=False)
        details["violations"] = [
            {"path": "/" + "/".join(map(str, row["loc"])), "message": str(row["msg"])[:200]}
            for row in rows[:20]
        ]
    return ToolError(
        f"the arguments of {name} were refused: {str(error)[:500]}",
        code="model_output.schema_violation",
        effect="not_sent",
        transient=False,
        details=details,
    )


def _like(spec: ToolSpec, own: ToolSpec) -> ToolSpec:
    """The framework's tool with what the runtime's own tool of that name declares. How a key or a
    credential is sent is no part of it: the framework's tool does not see them."""
    options = {option: getattr(own, option) for option in TOOL_OPTIONS}
    if options["timeout"] is None:
        options["timeout"] = spec.timeout
    if _parameters(own.schema) == _parameters(spec.schema):
        options["schema"] = own.schema
    return replace(
        spec,
        description=spec.description or own.description,
        errors=own.errors,
        passthrough=(*spec.passthrough, *own.passthrough),
        **options,
    )


def _parameters(schema: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset((schema or {}).get("properties") or ())


_bridged: "WeakKeyDictionary[Runtime, set[str]]" = WeakKeyDictionary()
"""The names under which a runtime has tools of frameworks, and none of its own."""
