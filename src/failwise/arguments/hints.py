"""What an upstream's refusal names, fixed where the refusal and the schema leave one way.

Unlike a repair of what the model wrote, this changes values that the schema accepted. So each
violation must name a parameter that was sent, and each fix says how sure it is: zero padding,
clamping and leaving out are guesses, and for the caller to confirm.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from failwise.arguments.dates import READINGS
from failwise.arguments.decode import same
from failwise.arguments.reader import ArgumentReader
from failwise.arguments.readings import Readings, fold
from failwise.arguments.tolerant import parse
from failwise.arguments.validators import pointer, validator
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair

Fix = tuple[str, Any, Grade]
"""Kind, the value to send instead, and how sure it is."""

_DROPPED = object()
_TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "numeric": "number",
    "str": "string",
    "string": "string",
    "text": "string",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "dict": "object",
    "object": "object",
}
_DATES: dict[str, tuple[str, ...]] = {
    "date": ("date",),
    "日期": ("date",),
    "yyyy-mm-dd": ("date",),
    "datetime": ("date-time",),
    "date-time": ("date-time",),
    "rfc 3339": ("date-time",),
    "rfc3339": ("date-time",),
    "iso 8601": ("date", "date-time"),
    "iso8601": ("date", "date-time"),
    "time": ("time",),
    "hh:mm": ("time",),
    "hh:mm:ss": ("time",),
    "时间": ("time", "date-time"),
}
"""What an upstream calls a format → the forms it may mean."""
_UNKNOWN = frozenset({"unknown", "extra_forbidden", "unexpected", "additional_properties"})
_LONGEST = 64


def fix_from_violations(
    source: ArgumentReader | Mapping[str, Any] | None,
    arguments: Mapping[str, Any],
    violations: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], tuple[Repair, ...]] | None:
    """The arguments as the upstream wants them, and the edits; None where no fix follows.

    `source` is the tool's reader or schema. Each violation has ``parameter`` and ``rule``, with
    ``allowed``, ``length``, ``minimum``, ``maximum``, ``type`` or ``format`` as the rule needs,
    and ``got`` (what the upstream says it received). All must have a fix, and the result must fit
    the schema. `arguments` stay as they are.
    """
    schema = source.schema if isinstance(source, ArgumentReader) else source
    fixed: dict[str, Any] = dict(arguments)
    repairs: list[Repair] = []
    for violation in violations:
        path = _path(arguments, str(violation.get("parameter") or ""))
        if path is None:
            return None
        value = _get(fixed, path)
        if "got" in violation and not _alike(violation["got"], value):
            return None
        fix = _fix(schema, path, value, violation)
        if fix is None:
            return None
        kind, new, grade = fix
        fixed = _put(fixed, path, new)
        shown = None if new is _DROPPED else new
        repairs.append(Repair(kind, pointer(path), value, shown, grade))
    if not repairs or same(fixed, dict(arguments)):
        return None
    if schema is not None and not validator(schema).is_valid(fixed):
        return None
    return fixed, tuple(repairs)


def differences(
    sent: Mapping[str, Any], given: Mapping[str, Any], kind: str = "fixer"
) -> tuple[Repair, ...]:
    """What somebody changed in arguments, argument by argument: each change is a guess."""
    changed = [
        key
        for key in dict.fromkeys((*sent, *given))
        if key not in sent or key not in given or not same(sent[key], given[key])
    ]
    return tuple(
        Repair(kind, pointer((key,)), sent.get(key), given.get(key), Grade.GUESS) for key in changed
    )


def _fix(
    schema: Mapping[str, Any] | None,
    path: tuple[str | int, ...],
    value: Any,
    violation: Mapping[str, Any],
) -> Fix | None:
    """The one fix of one violation, or None."""
    rule = str(violation.get("rule") or "").casefold()
    readings = Readings(parse)
    found: list[tuple[str, Any]] = []
    if violation.get("allowed"):
        found = list(readings.as_option(value, list(violation["allowed"])))
    elif rule in _UNKNOWN:
        required = (schema or {}).get("required", ())
        # The tool's own schema knows it: what becomes of the call without it is a guess.
        return ("unknown_key", _DROPPED, Grade.GUESS) if path[0] not in required else None
    elif rule in ("digits", "length", "min_length") and violation.get("length"):
        return _padded(value, violation["length"])
    elif any(isinstance(violation.get(bound), int | float) for bound in ("minimum", "maximum")):
        return _clamped(value, violation.get("minimum"), violation.get("maximum"))
    else:
        due = str(violation.get("type") or violation.get("expected") or rule).casefold()
        moments = _DATES.get(str(violation.get("format") or due).casefold(), ())
        if moments and isinstance(value, str):
            found = [("date", text) for moment in moments for text in READINGS[moment](value)]
        elif due in _TYPES:
            found = list(readings.as_type(value, _TYPES[due]))
    distinct = [reading for reading in found if not same(reading[1], value)]
    if len(distinct) != 1:
        return None
    return (*distinct[0], Grade.UNIQUE)


def _padded(value: Any, length: Any) -> Fix | None:
    """``"12"`` where three digits are due: ``"012"`` fits, and is a guess."""
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        return None
    if not isinstance(length, int) or not len(value) < length <= _LONGEST:
        return None
    return "zero_padding", value.zfill(length), Grade.GUESS


def _clamped(value: Any, minimum: Any, maximum: Any) -> Fix | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(minimum, int | float) and value < minimum:
        return "clamped", minimum, Grade.GUESS
    if isinstance(maximum, int | float) and value > maximum:
        return "clamped", maximum, Grade.GUESS
    return None


def _path(arguments: Mapping[str, Any], parameter: str) -> tuple[str | int, ...] | None:
    """Where the parameter stands in what was sent; None when it was not sent."""
    if parameter in arguments:
        return (parameter,)
    alike = [key for key in arguments if fold(key) == fold(parameter)]
    if len(alike) == 1:
        return (alike[0],)
    separated = parameter.replace("[", ".").replace("]", "").replace("/", ".").strip(".")
    tokens = separated.split(".")
    if len(tokens) > 1 and tokens[0] in ("body", "query", "path", "json", "$", "params"):
        tokens = tokens[1:]
    value: Any = arguments
    path: list[str | int] = []
    for token in tokens[:32]:
        if isinstance(value, Mapping) and token in value:
            path.append(token)
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            path.append(int(token))
            value = value[int(token)]
        else:
            return None
    return tuple(path) if path and len(tokens) <= 32 else None


def _alike(got: Any, value: Any) -> bool:
    return got is None or str(got).strip("'\"") == (value if isinstance(value, str) else str(value))


def _get(value: Any, path: tuple[str | int, ...]) -> Any:
    for token in path:
        value = value[token]
    return value


def _put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    copy = value.copy()
    if len(path) > 1:
        copy[path[0]] = _put(value[path[0]], path[1:], new)
    elif new is _DROPPED:
        del copy[path[0]]
    else:
        copy[path[0]] = new
    return copy
