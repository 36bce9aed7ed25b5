"""Compiled validators: one for each schema, shared by all readers in the process.

Draft 2020-12 unless the schema names another or can only be read as draft 7. Formats are checked.
References are followed inside the schema only: nothing is ever fetched.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

from failwise.vocabulary.errors import UsageError

_OLD_DRAFT = re.compile(r"https?://json-schema\.org/draft-0[467]/schema#?\Z")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DURATION = re.compile(
    r"P(?:\d+W|(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)",
    re.ASCII,
)
_LATER_FORMATS: dict[str, Callable[[str], bool]] = {
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "duration": lambda text: len(text) <= 64 and _DURATION.fullmatch(text) is not None,
}
"""Formats of newer drafts that tools' draft 7 schemas use all the same (RFC 9562, ISO 8601-1)."""
_LIMIT = 1024
_ROOT = "urn:failwise:schema"
_cache: dict[str, "Validator"] = {}
_lock = threading.Lock()


class Validator:
    """A schema, compiled: `is_valid(value)`, `errors(value)`, and the library's own `compiled`.

    Values nested deeper than the validator follows, and things that are no JSON, are not valid.
    """

    __slots__ = ("_draft", "_parts", "compiled", "is_valid", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._parts: dict[tuple[str | int, ...], Any] = {}
        self.compiled, self._draft = _compile(dict(schema))
        self.is_valid = self.compiled.is_valid

    def errors(self, value: Any) -> list[Any]:
        """All errors of a value at once, in the order of the schema."""
        return list(self.compiled.iter_errors(value))

    def part(self, pointer: tuple[str | int, ...]) -> Any:
        """The compiled validator of one place in the schema, references resolved as from the root.

        None where that place cannot stand alone.
        """
        if pointer not in self._parts:
            self._parts[pointer] = self._compile_part(pointer)
        return self._parts[pointer]

    def _compile_part(self, pointer: tuple[str | int, ...]) -> Any:
        import jsonschema_rs

        place = "".join(f"/{escape(token)}" for token in pointer)
        root = {**self.schema, "$id": _ROOT}
        try:
            registry = jsonschema_rs.Registry([(_ROOT, cast("Any", root))], draft=self._draft)
            return jsonschema_rs.validator_for(
                {"$ref": f"{_ROOT}#{place}"},
                registry=registry,
                validate_formats=True,
                offline=True,
                formats=_LATER_FORMATS if self._draft == jsonschema_rs.Draft7 else None,
            )
        except Exception:
            return None


def escape(token: str | int) -> str:
    """One token of a JSON pointer (RFC 6901)."""
    return str(token).replace("~", "~0").replace("/", "~1")


def pointer(tokens: "list[str | int] | tuple[str | int, ...]") -> str:
    """A JSON pointer (RFC 6901); the whole document is the empty text."""
    if not tokens:
        return ""
    text = "/" + "/".join(map(str, tokens))
    if "~" in text or text.count("/") != len(tokens):
        return "".join(f"/{escape(token)}" for token in tokens)
    return text


def _compile(schema: dict[str, Any]) -> tuple[Any, int]:
    import jsonschema_rs

    old = _OLD_DRAFT.match(str(schema.get("$schema", ""))) is not None
    try:
        compiled = jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            offline=True,
            formats=_LATER_FORMATS if old else None,
        )
        return compiled, jsonschema_rs.Draft7 if old else jsonschema_rs.Draft202012
    except ValueError as error:
        if "$schema" not in schema:
            try:
                compiled = jsonschema_rs.Draft7Validator(
                    schema, validate_formats=True, offline=True, formats=_LATER_FORMATS
                )
                return compiled, jsonschema_rs.Draft7
            except ValueError:
                pass
        reason = str(error).strip().splitlines()
        raise UsageError(
            f"the tool's JSON Schema is wrong: {reason[0] if reason else error}; correct the schema"
        ) from error


def validator(schema: Mapping[str, Any]) -> Validator:
    """The compiled validator of a schema, made once for equal schemas.

    Raises `UsageError` when the schema itself is wrong.
    """
    try:
        text = json.dumps(schema)
        key = json.dumps(schema, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the tool's JSON Schema is no JSON: {error}") from error
    found = _cache.get(key)
    if found is None:
        found = Validator(json.loads(text))
        with _lock:
            while len(_cache) >= _LIMIT:
                del _cache[next(iter(_cache))]
            found = _cache.setdefault(key, found)
    return found
