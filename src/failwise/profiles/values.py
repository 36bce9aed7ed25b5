"""Values of an answer as a profile compares them: codes, messages, parameters, success tests."""

from typing import Any, Final

VALUES: Final = 20
"""Values of one place that are tried."""


def as_text(value: Any) -> str | None:
    """A code or message as text: a number or a truth value as JSON writes it; None for the rest."""
    if isinstance(value, str):
        return value.strip()[:2000] or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(10**30) < value < 10**30 else None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    return None


def path_text(value: Any) -> str | None:
    """A parameter's path: a list such as ``["body", "items", 0]`` joined by dots."""
    if isinstance(value, list | tuple):
        return ".".join(text for part in value[:VALUES] if (text := as_text(part))) or None
    return as_text(value)


def spellings(value: Any, place: str) -> tuple[str, ...]:
    """A code as it stands, then without the wrapping that some put around it.

    AWS writes ``namespace#Code:address``; a system's ``errno`` has a name that tables go by.
    """
    text = as_text(value)
    if text is None:
        return ()
    if isinstance(value, int) and place.rpartition(".")[2] == "errno":
        import errno

        name = errno.errorcode.get(value) or _lookup_error(value)
        if name:
            return (name,)
    if "#" in text or (":" in text and "//" in text):
        bare = text.rpartition("#")[2] if "://" not in text.partition("#")[0] else text
        bare = bare.partition(":")[0]
        if bare and bare != text:
            return text, bare
    return (text,)


def _lookup_error(number: int) -> str | None:
    import socket

    for name in ("EAI_AGAIN", "EAI_NONAME", "EAI_NODATA", "EAI_FAIL", "EAI_FAMILY", "EAI_SERVICE"):
        if getattr(socket, name, None) == number:
            return name
    return None


def passes(values: list[Any], test: str, expected: list[Any]) -> bool:
    if test == "equals":
        if not values:
            return None in expected
        return all(any(_same(value, wanted) for wanted in expected) for value in values)
    filled = any(value not in (None, "", False) and value not in ([], {}) for value in values)
    return filled if test == "present" else not filled


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, str) or isinstance(wanted, str):
        return wanted is not None and as_text(value) == as_text(wanted)
    return bool(value == wanted)
