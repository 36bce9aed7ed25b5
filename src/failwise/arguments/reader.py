"""`ArgumentReader`: what a model sent for one tool, read as arguments.

Strict first. Only where strict reading or the schema refuses, recoveries are tried, and each edit
is recorded.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from failwise.arguments import decode
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.result import Repair

if TYPE_CHECKING:
    from failwise.arguments.validators import Validator


class Reading:
    """What came of reading: `arguments` with `repairs`, or the `failure`. Exactly one is there."""

    __slots__ = ("arguments", "failure", "repairs")

    def __init__(
        self,
        arguments: dict[str, Any] | None,
        repairs: tuple[Repair, ...] = (),
        failure: Failure | None = None,
    ) -> None:
        self.arguments = arguments
        self.repairs = repairs
        self.failure = failure

    def __repr__(self) -> str:
        if self.failure is not None:
            return f"<Reading failure={self.failure.code}>"
        return f"<Reading arguments repairs={len(self.repairs)}>"


def _anything(value: Any) -> bool:
    return True


_WORDS = frozenset({bool, type(None)})
_LARGEST = 2**63


def _flat(arguments: Any) -> bool:
    """Decoded arguments that need no look within: a flat object whose texts are ASCII and whose
    numbers are of the usual size.

    False means only that they must be looked at.
    """
    for name, value in arguments.items():
        kind = value.__class__
        if kind is str:
            if not value.isascii():
                return False
        elif kind is int:
            if not -_LARGEST < value < _LARGEST:
                return False
        elif kind is float:
            if value - value != 0:
                return False
        elif kind not in _WORDS:
            return False
        if name.__class__ is not str:
            return False
    return True


class ArgumentReader:
    """Reads what a model sent for one tool. Make one for each tool, keep it, share it.

    `schema` is the tool's JSON Schema (None: any object will do), `tool` its name, by which a call
    that stands inside a longer text is known. The schema is compiled at the first reading. `redact`
    takes the secrets out of what a failure shows: (name, value) → value.
    """

    __slots__ = ("_is_valid", "_redact", "_validator", "schema", "tool")

    def __init__(
        self,
        schema: Mapping[str, Any] | None,
        tool: str = "",
        *,
        redact: Callable[[str, Any], Any] | None = None,
    ) -> None:
        self.schema, self.tool = schema, tool
        self._redact = redact
        self._is_valid: Any = _anything if schema is None else None
        self._validator: Validator | None = None

    def read(
        self, raw: str | bytes | Mapping[str, Any] | None, *, truncated: bool = False
    ) -> Reading:
        """The arguments, or why there are none.

        `raw` is the text the model sent, or its decoded object. `truncated`: the model's stop
        reason says the text was cut off, so nothing may be closed. Never raises for what a model
        sent; `UsageError` when the tool's schema itself is wrong.
        """
        if raw.__class__ is str and self._is_valid is not None:
            try:
                value, end = decode.scan_object(raw)
                if end == len(raw) and value.__class__ is dict and self._is_valid(value):
                    if raw.isascii() and "\\u" not in raw:
                        return Reading(value)
                    decode.check_text(raw)
                    if "\\u" in raw:
                        decode.check_texts(value)
                    return Reading(value)
            except Exception:  # noqa: S110 - the careful way says what is wrong
                pass
        elif raw.__class__ is dict and self._is_valid is not None and _flat(raw):
            try:
                if self._is_valid(raw):
                    return Reading(raw.copy())
            except Exception:  # noqa: S110 - the careful way says what is wrong
                pass
        return self._carefully(raw, truncated)

    def _carefully(self, raw: str | bytes | Mapping[str, Any] | None, truncated: bool) -> Reading:
        from failwise.arguments.recovery import recover

        if self._is_valid is None and self.schema is not None:
            from failwise.arguments.validators import validator

            self._validator = validator(self.schema)
            self._is_valid = self._validator.is_valid
        return Reading(*recover(self._validator, self.tool, raw, truncated, self._redact))
