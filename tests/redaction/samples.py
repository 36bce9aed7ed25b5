"""Random secrets of a given shape, made at test time so that no key ever stands in a file."""

import base64
import random
import re
import string

_SETS = {
    "an": string.ascii_letters + string.digits,
    "lo": string.ascii_lowercase + string.digits,
    "AN": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "B": string.ascii_uppercase + "234567",
    "d": string.digits,
    "b64_": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "-_",
}
_PIECE = re.compile(r"<(b64_|an|lo|AN|hex|HEX|url|B|d)(\d+)>")


def make(recipe: str, seed: int = 0) -> tuple[str, list[str]]:
    """A text by a recipe of the rules file, and its random pieces of 8 characters or more, numbers apart."""
    chance = random.Random(f"{recipe}{seed}")
    pieces: list[str] = []

    def fill(match: re.Match[str]) -> str:
        piece = "".join(chance.choice(_SETS[match[1]]) for _ in range(int(match[2])))
        if len(piece) >= 8 and not piece.isdigit():
            pieces.append(piece)
        return piece

    return _PIECE.sub(fill, recipe), pieces


def card(seed: int = 0) -> str:
    """A 16-digit number with a right check digit."""
    body = "4" + "".join(random.Random(seed).choice(string.digits) for _ in range(14))
    total = 0
    for place, digit in enumerate(map(int, reversed(body))):
        doubled = digit * 2 if place % 2 == 0 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return body + str(-total % 10)


def id_card(seed: int = 0) -> str:
    """An 18-character resident number with a right check character."""
    body = "11010519900307" + f"{random.Random(seed).randrange(1000):03}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return body + "10X98765432"[total % 11]


def basic(user: str, password: str) -> str:
    """The credentials of Basic authentication."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()
