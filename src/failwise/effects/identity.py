"""What makes two effects the same: the key of a call, the fingerprint of its arguments."""

import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

_SIZE = 16


def effect_key(run_id: str, call_id: str) -> str:
    """The key of an effect: 32 hexadecimal digits, the same in every process and attempt.

    It is also what goes upstream as the idempotency key, so it shows nothing of the ids.
    """
    digest = blake2b(digest_size=_SIZE, person=b"failwise.key")
    for part in (run_id, call_id):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def arguments_fingerprint(tool: str, arguments: Any) -> str:
    """The fingerprint of a tool's arguments: 32 hexadecimal digits.

    Alike are arguments that ask for the same thing: the order of keys does not count; numbers
    count by value, so ``1`` and ``1.0`` are one (JSON has one number type), and large
    integers stay exact; texts count in Unicode normal form C (two spellings of ``é`` are one). Not
    alike are ``1``, ``"1"`` and ``True``. Values that are not JSON count by class and text.
    Any depth is read.
    """
    digest = blake2b(digest_size=_SIZE, person=b"failwise.args")
    for token in _tokens([tool, arguments]):
        data = token.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


class _Token(str):
    """A part of the encoding already made: told apart from texts that still need one."""

    __slots__ = ()


_OPEN_LIST, _OPEN_OBJECT, _CLOSE = _Token("["), _Token("{"), _Token("]")


def _tokens(root: Any) -> Iterator[str]:
    """Every value as one unambiguous token after the other, without recursion."""
    stack: list[Any] = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, _Token):
            yield value
        elif isinstance(value, str):
            yield "s" + unicodedata.normalize("NFC", value)
        elif value is None or isinstance(value, bool):
            yield str(value)
        elif isinstance(value, int):
            yield f"n{value:x}"
        elif isinstance(value, float):
            yield f"n{int(value):x}" if value.is_integer() else f"n{value!r}"
        elif isinstance(value, Mapping):
            yield _OPEN_OBJECT
            stack.append(_CLOSE)
            for key in sorted(value, key=_key_order, reverse=True):
                stack.append(value[key])
                stack.append(key)
        elif isinstance(value, (list, tuple)):
            yield _OPEN_LIST
            stack.append(_CLOSE)
            stack.extend(reversed(value))
        else:
            yield f"o{type(value).__qualname__}:{value}"


def _key_order(key: Any) -> tuple[str, str]:
    text = str(key)
    return unicodedata.normalize("NFC", text), text
