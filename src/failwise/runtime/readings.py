"""Arguments that are read otherwise than the schema's way: a client's own, those that are only observed,
those of a tool under another name, and those that must not be repaired."""

from collections.abc import Mapping
from typing import Any

from failwise.runtime.call import Reading
from failwise.runtime.discretion import discreet_repairs
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect, FixBy
from failwise.vocabulary.result import Repair
from failwise.vocabulary.steps import Call


class AsGiven:
    """Reads the arguments of a client's request: no model wrote them."""

    def read(self, raw: Any, *, truncated: bool = False) -> Reading:
        from failwise.arguments import Reading as Read

        return Read(raw)


def as_it_is(reader: Any, call: Call) -> Reading:
    """Observe mode: what the model sent goes to the tool unchanged, where it can be read at all."""
    from failwise.arguments import Reading as Read

    if isinstance(call.raw, Mapping):
        return Read(dict(call.raw))
    import json

    try:
        value = json.loads(call.raw or "{}")
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return Read(value)
    reading: Reading = reader.read(call.raw, truncated=call.truncated)
    return reading


def renamed(reading: Reading, call: Call) -> Reading:
    """The name as it was written, noted as a repair."""
    from failwise.arguments import Reading as Read
    from failwise.vocabulary.kinds import Grade

    edit = Repair("tool_name", "", call.written_name, call.tool.name, Grade.LOSSLESS)
    return Read(dict(reading.arguments or {}), (edit, *reading.repairs))


def unrepaired(reading: Reading) -> Reading:
    """``repair="off"``: what would have been repaired goes back to the model."""
    from failwise.arguments import Reading as Read
    from failwise.vocabulary.kinds import Grade

    syntax = any(repair.grade is Grade.LOSSLESS for repair in reading.repairs)
    code = "model_output.invalid_json" if syntax else "model_output.schema_violation"
    places = ", ".join(sorted({repair.path or "/" for repair in reading.repairs}))
    return Read(
        None,
        (),
        Failure(
            Category.MODEL_OUTPUT,
            code,
            f"the arguments would need repair at {places}, which this tool forbids",
            Effect.NOT_SENT,
            False,
            FixBy.MODEL,
            rule="arguments.repair_off",
            details={
                "repairs_refused": [
                    repair.to_dict() for repair in discreet_repairs(reading.repairs)
                ]
            },
        ),
    )
