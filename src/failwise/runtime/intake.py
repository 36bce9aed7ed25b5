"""How a call is spelled: by name with a model's text, or from code with a function's arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.spec import ToolSpec

OPTIONS = frozenset({"call_id", "deadline", "extra", "policy", "truncated", "raw"})
"""Options of a call; everything else is an argument of the tool."""

Spelled = tuple[Any, Mapping[str, Any]]
"""What the model wrote (or the arguments), and the options of the call."""


def raw_of_name(
    tool: str,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Spelled:
    """``call("search", raw, ...)``, or ``call("search", query="shoes")``."""
    if len(args) > 1:
        raise UsageError(f"call({tool!r}, ...): give one text or mapping of arguments")
    chosen = {key: value for key, value in options.items() if key in OPTIONS}
    rest = {key: value for key, value in options.items() if key not in OPTIONS}
    if args and rest:
        raise UsageError(
            f"call({tool!r}, raw, ...): unknown option {next(iter(rest))!r}; "
            f"options are {', '.join(sorted(OPTIONS))}"
        )
    if args:
        return args[0], chosen
    return chosen.get("raw", _data(rest)), chosen


def raw_of_function(
    tool: Any,
    spec: ToolSpec,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Spelled:
    """``call(search, query="shoes")``; a positional value belongs to the function's own parameter."""
    own: Any = ()
    if not isinstance(tool, ToolSpec):
        own = (spec.schema or {}).get("properties") or ()
    # A parameter of the function's own is meant as such, whatever our options are called.
    chosen = {key: options[key] for key in options if key in OPTIONS and key not in own}
    rest = {key: options[key] for key in options if key not in chosen}
    if "raw" in chosen:
        return chosen["raw"], chosen
    if args:
        if isinstance(tool, ToolSpec) or (
            len(args) == 1 and isinstance(args[0], Mapping) and not rest
        ):
            return args[0], chosen
        from failwise.tools.signature import positional_names

        names = positional_names(tool)
        if len(args) > len(names):
            raise UsageError(f"{spec.name} takes at most {len(names)} positional arguments")
        rest = {**dict(zip(names, args, strict=False)), **rest}
    return _data(rest), chosen


def one_of_many(item: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """One entry of `call_many` as (tool, positional, options)."""
    if isinstance(item, Mapping):
        options = dict(item)
        tool = options.pop("tool", options.pop("name", None))
        if tool is None:
            raise UsageError("call_many: each mapping needs 'tool' and 'arguments'")
        arguments = options.pop("arguments", options.pop("raw", None))
        if not isinstance(tool, str):
            return tool, (), {**options, "raw": {} if arguments is None else arguments}
        return tool, () if arguments is None else (arguments,), options
    if isinstance(item, str) or callable(item):
        return item, (), {}
    if isinstance(item, Sequence) and 1 <= len(item) <= 3:
        options = {"call_id": item[2]} if len(item) == 3 else {}
        if len(item) > 1 and not isinstance(item[0], str):
            return item[0], (), {**options, "raw": item[1]}
        return item[0], tuple(item[1:2]), options
    raise UsageError(f"call_many: {item!r} is not (tool, arguments[, call_id]) or a mapping")


def _data(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments given from code as the JSON a model would write."""
    return {name: _plain(value, 0) for name, value in arguments.items()}


def _plain(value: Any, depth: int) -> Any:
    """A Python value as JSON data; what is not JSON becomes its text."""
    kind = value.__class__
    if kind in (str, int, float, bool) or value is None:
        return value
    if depth > 50:
        raise UsageError("arguments nest deeper than 50 levels")
    import dataclasses
    import enum

    if isinstance(value, enum.Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value), depth + 1)
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="json"), depth + 1)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value if isinstance(value, str | int | float) else str(value)
