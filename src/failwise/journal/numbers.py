"""Numbers for rows that several processes write without asking each other."""

import secrets

_BITS = 22
"""Of a number, the bits that count; the 41 above name the one who counts."""


class Numbers:
    """Numbers of 63 bits, in a row and unique: a random name, and a count below it.

    Of ten thousand writers any two share a name with a chance of 1 in 40,000.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.name = secrets.randbits(63 - _BITS)
        self._next = self.name << _BITS
        self._end = (self.name + 1) << _BITS

    def take(self, count: int) -> int:
        """The first of `count` numbers in a row."""
        if self._next + count > self._end:
            self._begin()
        first = self._next
        self._next += count
        return first
