"""Tests of a found text beyond its form: check digits, randomness, placeholders."""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

from failwise.redaction.names import ordinary_words

_REPEATED = re.compile(r"([xX*.#0_?\-])\1{5,}|([^A])\2{7,}")
_OWN_MASK = re.compile(r"\[[a-z_]{2,30}\]|[\w-]{0,8}\*{3,}\w{0,4}")
_VARIABLE = re.compile(
    r"""\$\w|\$[({]|\{\{?|<|%[({s]|%\w+%|@@|\.\.\.|…|
        (?:os\.|process\.env|env\.|ENV\[|System\.|config\.|settings\.|self\.|this\.|var\.|secrets\.)""",
    re.VERBOSE,
)
_CODE = re.compile(r"[A-Za-z_][\w.]{0,80}(?:\(|\[|->|::)")
_WORD_LIKE = re.compile(r"[A-Za-z]{1,24}(?:[-_./ ][A-Za-z]{1,24}){0,8}[.:!?]?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TEMPLATE = re.compile(
    r"(?i)(?:your|my|some|insert|replace|example|dummy|fake|sample|placeholder|change)[-_ ]?(?:\w{0,20}[-_ ])?"
    r"(?:key|token|secret|password|me|here|value|api|client)"
)
_DIGITS = re.compile(r"\d")
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def entropy(text: str) -> float:
    """Shannon entropy of the characters, in bits a character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def is_placeholder(value: str) -> bool:
    """True for what stands where a secret would: ``${TOKEN}``, ``<key>``, ``xxxxxx``, ``****``."""
    return bool(
        _OWN_MASK.fullmatch(value)
        or _VARIABLE.match(value)
        or _REPEATED.search(value)
        or "EXAMPLE" in value
        or _TEMPLATE.match(value)
    )


def is_ordinary(value: str) -> bool:
    """True for a word of an error message or of code where a password would stand."""
    bare = value.strip("\"'`.,;:!?()[]{}<> ").lower()
    return not bare or bare in ordinary_words() or bool(_CODE.match(value))


def is_password(value: str) -> bool:
    """Beside the name of a password: anything but a placeholder or an ordinary word."""
    return not is_placeholder(value) and not is_ordinary(value)


def is_secret(value: str) -> bool:
    """Beside a strong name: six characters or more that are not plain words."""
    if len(value) < 6 or not is_password(value):
        return False
    return not _WORD_LIKE.fullmatch(value) or (len(value) >= 16 and _mixed_letters(value))


def is_random(value: str) -> bool:
    """Looks random: letters and digits, or long mixed letters, or a very long number."""
    value = value[:96]
    size = len(value)
    if size < 12 or is_placeholder(value) or _CODE.match(value):
        return False
    digits = len(_DIGITS.findall(value))
    if digits == size:
        return size >= 15
    if not digits:
        return size >= 20 and _mixed_letters(value) and "." not in value and " " not in value
    letters = sum(character.isalpha() for character in value)
    return letters > 0 and letters + digits >= 0.7 * size and entropy(value) >= 2.8 and digits >= 2


def is_strictly_random(value: str) -> bool:
    """For prose, where a name is only near: long, letters and at least three digits, no path, no UUID."""
    value = value[:400].rstrip(".")
    if (
        len(value) < 20
        or len(_DIGITS.findall(value)) < 3
        or _UUID.fullmatch(value)
        or is_placeholder(value)
        or value.count("/") > 1
    ):
        return False
    digits = len(_DIGITS.findall(value))
    parts = re.split(r"[._\-/=]", value)
    longest = max(parts, key=len)
    return (
        digits >= 3
        and digits < len(value)
        and len(longest) >= 16
        and bool(re.search(r"[A-Za-z]", longest))
        and entropy(value) >= 3.3
    )


def is_random_enough(value: str) -> bool:
    """Behind a fixed prefix: some digit, or mixed letters; no placeholder."""
    if is_placeholder(value):
        return False
    return bool(_DIGITS.search(value)) or (len(value) >= 16 and _mixed_letters(value))


def is_mixed(value: str) -> bool:
    """A password in prose: a digit or a sign, beside letters."""
    value = value.rstrip(".!?")
    return (
        len(value) >= 6
        and is_password(value)
        and any(character.isdigit() or not character.isalnum() for character in value.strip("-_"))
        and any(character.isalpha() for character in value)
        and not _WORD_LIKE.fullmatch(value)
    )


def is_key_body(value: str) -> bool:
    """A PEM block with something inside."""
    return bool(re.search(r"[A-Za-z0-9+/=]{16}", value.partition("KEY")[2].partition("-----")[2]))


def luhn(value: str) -> bool:
    """A payment card number (ISO/IEC 7812): length, issuer range and check digit."""
    digits = [int(character) for character in value if character.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 2:
        return False
    head = int("".join(map(str, digits[:4])))
    known = (
        head // 1000 == 4
        or 5100 <= head <= 5599
        or 2221 <= head <= 2720
        or head // 100 in (34, 37, 60, 62, 64, 65, 30, 36, 38)
        or 3528 <= head <= 3589
    )
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return known and total % 10 == 0


def id_card(value: str) -> bool:
    """A resident identity number (GB 11643): the check character of ISO 7064 MOD 11-2."""
    total = sum(int(digit) * weight for digit, weight in zip(value[:17], _ID_WEIGHTS, strict=True))
    return "10X98765432"[total % 11] == value[17].upper()


def social_security(value: str) -> bool:
    """A United States number that can have been issued."""
    area, group, serial = value.split("-")
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def iban(value: str) -> bool:
    """An account number by ISO 13616: mod 97 is 1."""
    compact = value.replace(" ", "")
    if not 15 <= len(compact) <= 34:
        return False
    number = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return int(number) % 97 == 1


def phone(value: str) -> bool:
    """A Chinese mobile number: not one digit over and over."""
    digits = "".join(character for character in value if character.isdigit())[-11:]
    return len(set(digits)) > 2


def international_phone(value: str) -> bool:
    """E.164: 10 to 15 digits after the plus."""
    return 10 <= sum(character.isdigit() for character in value) <= 15


@functools.cache
def checks() -> Mapping[str, Callable[[str], bool]]:
    """The checks that a rule can name."""
    return {
        "password": is_password,
        "secret": is_secret,
        "random": is_strictly_random,
        "random_enough": is_random_enough,
        "mixed": is_mixed,
        "body": is_key_body,
        "luhn": luhn,
        "id_card": id_card,
        "ssn": social_security,
        "iban": iban,
        "phone": phone,
        "international": international_phone,
    }


def _mixed_letters(value: str) -> bool:
    """Upper and lower case in no order of words: more changes of case than camel case has."""
    changes = sum(
        a.isupper() != b.isupper()
        for a, b in itertools.pairwise(value)
        if a.isalpha() and b.isalpha()
    )
    return changes >= len(value) / 4 and entropy(value) >= 3.3
