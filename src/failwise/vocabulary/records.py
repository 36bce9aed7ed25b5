"""How records are declared: plain slots at run time, frozen for the type checker.

A truly frozen dataclass writes each field through ``object.__setattr__``, which costs more than
the rest of a good call together. The type checker forbids assignment all the same.
"""

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Declare a record: immutable by type, cheap to make. Change one with `dataclasses.replace`."""
    return dataclass(slots=True)(cls)


class Unset:
    """The type of `UNSET`: an option that was not given, where None is a value of its own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> Any:
        return "UNSET"


UNSET = Unset()
