"""The careful way: what strict reading or the schema refused, recovered where one reading is right."""

from collections.abc import Mapping
from typing import Any

from failwise.arguments import decode
from failwise.arguments.decode import Malformed
from failwise.arguments.extraction import MAXIMUM_RECOVERED, Found, envelope, find_calls
from failwise.arguments.failures import malformed, violated
from failwise.arguments.mending import Mender
from failwise.arguments.readings import Readings
from failwise.arguments.tolerant import parse
from failwise.arguments.validators import Validator, pointer
from failwise.arguments.violations import Redact, as_it_is
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair

Outcome = tuple[dict[str, Any] | None, tuple[Repair, ...], Failure | None]

_NESTED = 3
_INTEGER_BITS = 14_000
"""Larger integers have more digits than Python reads from text or writes."""


def recover(
    validator: Validator | None,
    tool: str,
    raw: str | bytes | Mapping[str, Any] | None,
    truncated: bool,
    redact: Redact | None = None,
) -> Outcome:
    """Arguments and repairs, or the failure. Never raises for what a model sent."""
    return _Recovery(validator, tool, truncated, redact or as_it_is).read(raw)


class _Recovery:
    """One reading. `validator` None: any object will do."""

    def __init__(
        self, validator: Validator | None, tool: str, truncated: bool, redact: Redact
    ) -> None:
        self._validator, self._tool, self._truncated = validator, tool, truncated
        self._redact = redact
        schema = validator.schema if validator else {}
        properties = schema.get("properties")
        self._names = list(properties) if isinstance(properties, Mapping) else []

    def read(self, raw: str | bytes | Mapping[str, Any] | None) -> Outcome:
        text = ""
        try:
            if isinstance(raw, Mapping):
                return self._decoded(_plain(raw), [], None)
            text = self._text(raw)
            return self._read(text, [], 0)
        except Malformed as error:
            if self._truncated:
                error = Malformed("truncated", error.position)
            return None, (), malformed(error, text, self._redact)
        except RecursionError:
            return None, (), malformed(Malformed("too_deep"), text, self._redact)

    def _text(self, raw: str | bytes | None) -> str:
        if raw is None:
            return ""
        if isinstance(raw, bytes | bytearray):
            try:
                return bytes(raw).decode("utf-8-sig")
            except UnicodeDecodeError as error:
                raise Malformed("encoding", error.start) from None
        if not isinstance(raw, str):
            raise Malformed("no_object")
        return raw

    def _read(self, text: str, repairs: list[Repair], depth: int) -> Outcome:
        if not text.strip() or text.strip() in ("null", "None"):
            return self._empty(text, repairs)
        try:
            value = decode.decode(text)
        except Malformed as error:
            if error.reason in ("too_long", "surrogate", "too_deep", "not_finite"):
                raise
            return self._written(text, repairs, depth)
        if isinstance(value, str) and depth < _NESTED:
            edit = Repair("double_encoding", "", text[:60], value[:60], Grade.LOSSLESS)
            return self._read(value, [*repairs, edit], depth + 1)
        if isinstance(value, list) and not self._truncated:
            return self._written(text, repairs, depth)
        return self._decoded(value, repairs, text)

    def _empty(self, text: str, repairs: list[Repair]) -> Outcome:
        if self._truncated:
            raise Malformed("truncated")
        if self._validator is not None and not self._validator.is_valid({}):
            raise Malformed("empty")
        return {}, (*repairs, Repair("empty", "", text.strip() or None, {}, Grade.LOSSLESS)), None

    def _decoded(self, value: Any, repairs: list[Repair], text: str | None) -> Outcome:
        """Valid JSON that the fast path did not take."""
        if not isinstance(value, dict):
            raise Malformed("no_object")
        if self._fits(value):
            return value, tuple(repairs), None
        spellings = _spellings(text) if text else {}
        calls = list(envelope(value, self._tool, self._names))
        if len(calls) == 1 and calls[0][3]:
            ours, inner, path, kind = calls[0]
            if ours is False:
                raise Malformed("other_tool")
            edit = Repair(kind, "", pointer(list(path)), "", Grade.LOSSLESS)
            return self._mend(Found(inner, ours, [*repairs, edit], (), spellings), text)
        return self._mend(Found(value, None, repairs, (), spellings), text)

    def _written(self, text: str, repairs: list[Repair], depth: int) -> Outcome:
        """No JSON: the one call that the text holds."""
        if len(text) > MAXIMUM_RECOVERED:
            raise Malformed("too_long")
        decode.check_text(text)
        if depth < _NESTED and text.lstrip().startswith(('{\\"', '[{\\"')):
            try:
                inner = decode.decode(f'"{text.strip()}"')
            except Malformed:
                inner = None
            if isinstance(inner, str):
                edit = Repair("double_encoding", "", text[:60], inner[:60], Grade.LOSSLESS)
                return self._read(inner, [*repairs, edit], depth + 1)
        calls = find_calls(text, self._tool, self._names, may_close=not self._truncated)
        if len(calls) > 1:
            raise Malformed("several")
        call = calls[0]
        call.repairs[:0] = repairs
        return self._mend(call, text)

    def _fits(self, value: Any) -> bool:
        try:
            return self._validator is None or bool(self._validator.is_valid(value))
        except ValueError:
            raise Malformed("too_deep") from None  # deeper than the validator follows

    def _mend(self, call: Found, text: str | None) -> Outcome:
        value = call.arguments
        if self._fits(value):
            return value, tuple(call.repairs), None
        assert self._validator is not None
        readings = Readings(parse, call.spellings)
        mended = Mender(self._validator, readings).mend(value)
        # A word without quotes may be a name for something else: it is a text, or it is refused.
        guessed = [repair for repair in mended.repairs if repair.path in call.bare]
        if mended.errors or guessed:
            refused = [
                Repair(repair.kind, repair.path, repair.before, repair.after, Grade.GUESS)
                for repair in guessed
            ]
            errors = mended.errors or self._validator.errors(value)
            return None, (), violated(errors, refused, text, self._redact)
        return mended.value, (*call.repairs, *mended.repairs), None


def _plain(value: Any, depth: int = 0) -> Any:
    """A copy of decoded arguments as plain JSON containers, so that the caller's stay as they are."""
    if depth > decode.MAXIMUM_DEPTH:
        raise Malformed("too_deep")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Malformed("syntax")
        return {key: _plain(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member, depth + 1) for member in value]
    if isinstance(value, float) and value - value != 0:
        raise Malformed("not_finite")
    if isinstance(value, str):
        decode.check_text(value)
        return value
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        raise Malformed("not_finite")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise Malformed("syntax")


def _spellings(text: str) -> dict[float, set[str]]:
    """The floats of a valid document, each as it was written."""
    import json

    found: dict[float, set[str]] = {}

    def note(written: str) -> float:
        value = float(written)
        found.setdefault(value, set()).add(written)
        return value

    if "." in text or "e" in text or "E" in text:
        try:
            json.loads(text, parse_float=note)
        except (ValueError, RecursionError):
            return {}
    return found
