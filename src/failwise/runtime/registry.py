"""What a runtime knows: its tools, credentials, meanings of exceptions, and who listens."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from failwise.policy.table import checked_overrides
from failwise.runtime.credentials import Credential, credential
from failwise.runtime.dialects import wire_name
from failwise.runtime.meanings import as_tool_error
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Attempt, ToolResult
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Call

if TYPE_CHECKING:
    import os

    from failwise.tools.declared import Declarations

F = TypeVar("F", bound=Callable[..., Any])


class Registry:
    """The part of `Runtime` with which everything is registered. Nothing is called here."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._declared: dict[str, ToolSpec] = {}
        self._declarations: Declarations | None = None
        self._functions: dict[Any, str] = {}
        self._wire_names: dict[str, str] = {}
        self._credentials: dict[str, Credential] = {}
        self._errors: dict[type[BaseException], Any] = {}
        self._callbacks: list[Callable[[ToolResult[Any]], Any]] = []
        self._attempt_callbacks: list[Callable[[Call, Attempt], Any]] = []

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Any) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool; it comes back unchanged.

        Use as ``@rt.tool`` or ``@rt.tool(read_only=True, timeout=10, ...)``; the options are those
        of `failwise.tools.function_tool`. Raises `UsageError` for what cannot work.
        """
        if function is not None:
            self.add(function, **options)
            return function

        def register(inner: F) -> F:
            self.add(inner, **options)
            return inner

        return register

    def add(self, tool: Any, **options: Any) -> ToolSpec:
        """Register a tool: a function, an `HttpTool`, or a `ToolSpec`. Returns its `ToolSpec`."""
        if isinstance(tool, ToolSpec) or (hasattr(tool, "spec") and callable(tool.spec)):
            if options:
                raise UsageError(
                    f"add(..., {next(iter(options))}=...): declare it where the tool is made"
                )
            spec = tool if isinstance(tool, ToolSpec) else tool.spec()
        elif callable(tool):
            from failwise.tools import function_tool

            try:
                spec = function_tool(tool, **options)
            except TypeError as error:
                if unknown := options.keys() - _keywords(function_tool):
                    raise UsageError(
                        f"tool(): unknown option {min(unknown)!r}; "
                        f"options are {', '.join(sorted(_keywords(function_tool)))}"
                    ) from error
                raise
        else:
            raise UsageError(f"add({tool!r}): give a function, an HttpTool or a ToolSpec")
        known = self._declared.get(spec.name)
        if known is not None and known is not spec:
            raise UsageError(
                f"a tool named {spec.name!r} is registered already: choose another name="
            )
        self._declared[spec.name] = spec
        try:
            if self._declarations is not None:
                spec = self._declarations.applied(spec)
            self._check_cycles(spec)
            checked_overrides(spec.policy)
        except UsageError:
            if known is None:
                del self._declared[spec.name]
            raise
        spec = self._tools[spec.name] = self._equipped(spec)
        wire = wire_name(spec.name)
        if wire != spec.name:
            self._wire_names[wire] = spec.name
        with contextlib.suppress(TypeError):  # what cannot be hashed is called by its name
            self._functions[tool] = spec.name
        return spec

    def add_openapi(
        self,
        spec: "str | os.PathLike[str] | Mapping[str, Any]",
        *,
        base_url: str | None = None,
        include: "str | Sequence[str] | None" = None,
        exclude: "str | Sequence[str]" = (),
        prefix: str = "",
        credentials: Mapping[str, str | None] | None = None,
        **options: Any,
    ) -> list[ToolSpec]:
        """Register the operations of an OpenAPI 3.0 or 3.1 document as tools; gives them.

        `spec`: a path, the document's text (JSON or YAML), or its parsed content. `base_url` takes the
        place of its servers. `include` and `exclude` are globs over tool names, paths, ``METHOD /path``
        and ``tag:NAME``. `prefix` goes before each name. `credentials`: security scheme → the name of the
        credential you register (by default the scheme's own; None: nothing is sent). The other `options`
        are those of `HttpTool`, for all of them: `timeout`, `idempotency_key`, `upstream`, ...

        GET, HEAD and OPTIONS are reads, PUT and DELETE idempotent (RFC 9110 §9.2); ``x-failwise`` in an
        operation says otherwise. Error schemas tell where refusals hold code and message. What cannot be
        a tool is left out, with a warning. Raises `ConfigurationError` for a document that cannot be
        read, `UsageError` for options that cannot work; then nothing is registered.
        """
        from failwise.tools.openapi import tools_from_openapi

        found = tools_from_openapi(
            spec,
            base_url=base_url,
            include=include,
            exclude=exclude,
            prefix=prefix,
            credentials=credentials,
            **options,
        )
        for tool in found.tools:
            if tool.name in self._tools:
                raise UsageError(
                    f"a tool named {tool.name!r} is registered already: give prefix=, or exclude it"
                )
        if found.profile is not None:
            self._profiled(found.profile)
        return [self.add(tool) for tool in found.tools]

    def _profiled(self, profile: Mapping[str, Any]) -> None:
        """A profile that came with tools."""

    def declare(self, declarations: "Mapping[str, Mapping[str, Any]] | Declarations") -> None:
        """Say what you know of tools that others make, by name or glob; before they are registered.

        ``rt.declare({"pay_*": {"read_only": False, "timeout": 20}})``; of requests too, see
        `failwise.connect.httpx`. It takes the place of what was declared so before. Raises
        `ConfigurationError` for what cannot be meant.
        """
        from failwise.tools.declared import Declarations

        given = isinstance(declarations, Declarations)
        self._declarations = declarations if given else Declarations(declarations)  # type: ignore[assignment,arg-type]

    def _equipped(self, spec: ToolSpec) -> ToolSpec:
        """The tool as this runtime calls it."""
        return spec

    def _check_cycles(self, spec: ToolSpec) -> None:
        """A fallback that leads back to its own start would never end."""
        seen: set[str] = set()
        waiting = list(spec.fallback)
        while waiting:
            name = waiting.pop()
            if name == spec.name:
                raise UsageError(
                    f"{spec.name!r} falls back to itself (through {sorted(seen) or name})"
                )
            if name not in seen and name in self._tools:
                seen.add(name)
                waiting.extend(self._tools[name].fallback)

    def credential(
        self, name: str, get: Any = None, *, refresh: Callable[..., Any] | None = None
    ) -> None:
        """Register a credential. `get`: its value, or a function (sync or async) that gets it.

        `refresh`: renews it after it expired and returns the new value (None: `get` is asked
        again). It is single-flight: a thousand concurrent 401s make one refresh.
        """
        made = credential(name, get, refresh, own=False)
        if not callable(get):
            self._hide(get)
        self._credentials[name] = made

    def errors(self, mapping: Mapping[type[BaseException], Any]) -> None:
        """Say what others' exceptions mean: ``{StockError: as_failure("business.conflict", ...)}``."""
        for kind, meaning in mapping.items():
            if not isinstance(kind, type):
                raise UsageError(f"errors({kind!r}): the keys are exception types")
            as_tool_error(meaning, None)
            self._errors[kind] = meaning

    def on_result(
        self, callback: Callable[[ToolResult[Any]], Any]
    ) -> Callable[[ToolResult[Any]], Any]:
        """Call back with every finished result. What it raises is logged and goes no further.

        Raises `UsageError` for an async function: there may be no loop to run it on.
        """
        import inspect

        if inspect.iscoroutinefunction(callback):
            raise UsageError(
                f"on_result({callback!r}): give a plain function; it may hand the result to a loop"
            )
        self._callbacks.append(callback)
        return callback

    def on_attempt(
        self, callback: Callable[[Call, Attempt], Any]
    ) -> Callable[[Call, Attempt], Any]:
        """Call back with every failed attempt as soon as it is decided what follows.

        With (call, attempt): the call as it was asked for, and the attempt with its failure and
        decision; number 0 was not sent. A decision that leads nowhere (nobody could verify) is
        followed by another one for the same attempt. What the callback raises is logged and goes
        no further.
        """
        self._attempt_callbacks.append(callback)
        return callback

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The registered tools by name."""
        return dict(self._tools)

    def _named_on_the_wire(self, name: str) -> str:
        """The tool's own name, where providers were given another one for it."""
        return name if name in self._tools else self._wire_names.get(name, name)

    def _chosen(self, names: Sequence[str] | None) -> list[ToolSpec]:
        """The tools of these names, in this order; None: all."""
        if names is None:
            return list(self._tools.values())
        for name in names:
            if name not in self._tools:
                raise UsageError(
                    f"tools={names!r}: {name!r} is not registered; there are "
                    f"{', '.join(sorted(self._tools)) or 'none'}"
                )
        return [self._tools[name] for name in names]

    def _name_of(self, tool: Any) -> str | None:
        """The name under which a function or a `ToolSpec` is registered here."""
        if isinstance(tool, ToolSpec):
            return tool.name if tool.name in self._tools else None
        try:
            return self._functions.get(tool)
        except TypeError:
            return None  # unhashable

    def _hide(self, value: Any) -> None:
        """Keep a credential's value out of everything that is stored or shown."""
        from failwise.redaction import default

        redactor = default()
        values = value.values() if isinstance(value, Mapping) else (value,)
        for secret in values:
            if isinstance(secret, str) and len(secret) >= 6:
                redactor.add_secret(secret)


def _keywords(function: Callable[..., Any]) -> set[str]:
    """The keyword options of a function."""
    return set(getattr(function, "__kwdefaults__", None) or ())
