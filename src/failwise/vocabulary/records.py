"""How records are declared: plain slots at run time, frozen for the type checker.

A truly frozen dataclass writes each field through ``object.__setattr__``, which costs more than
the rest of a good call together. The type checker forbids assignment all the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, dataclass_transform

T = TypeVar("T")

Work: TypeAlias = tuple[tuple[str, ...], Callable[[], Mapping[str, Any]]]
"""Names of fields, and what gives all of them."""

MAPPING: Final = (dict, Mapping)
"""For `isinstance`, of data that nearly always is a dict: asking the abstract class costs the tenfold."""


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Declare a record: immutable by type, cheap to make. Change one with `dataclasses.replace`."""
    return dataclass(slots=True)(cls)


class Deferred:
    """Base of a record some of whose fields cost more than they are read: see `defer`.

    For readers there is no difference. Until then the record holds what the work needs.
    """

    __slots__ = ("_work",)

    if not TYPE_CHECKING:  # a checker would take any name for a field

        def __getattr__(self, name: str) -> Any:
            """Only an empty slot gets here: do the work that fills it, once."""
            try:
                waiting = object.__getattribute__(self, "_work")
            except AttributeError:
                waiting = ()
            for names, work in waiting:
                if name in names:
                    for field, value in work().items():
                        setattr(self, field, value)
                    self._work = tuple([one for one in self._work if one[1] is not work])
                    break
            # Not found: another thread has just done it, or there is no such field at all.
            return object.__getattribute__(self, name)


def defer(deferred: Deferred, *works: Work) -> None:
    """Empty these fields; each work gives all of its own when one of them is first read.

    It must give the same whenever it is called: two threads may call it at once. Whoever changes one of
    the fields reads it first, or the work does away with the change.
    """
    for names, _ in works:
        for name in names:
            delattr(deferred, name)
    try:
        waiting = object.__getattribute__(deferred, "_work")
    except AttributeError:
        waiting = ()
    deferred._work = (*waiting, *works)  # type: ignore[attr-defined]


def unfinished(cls: type[T], *work: Work) -> Any:
    """A record of which no field is set yet: some come from `work`, each when one of its fields is
    first read; the others are the caller's to set. For a record of many fields that is made often.
    """
    made: Any = cls.__new__(cls)
    made._work = work
    return made


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
