"""Fields that are worked out when they are read: readers cannot tell."""

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import defer


def _failure(work: Callable[[], Mapping[str, Any]]) -> Failure:
    failure = Failure(Category.NETWORK, "network.timeout")
    defer(failure, (("message", "fingerprint"), work))
    return failure


def test_the_work_is_done_once_and_only_when_read() -> None:
    """Fields that are there do not cause it."""
    done: list[int] = []

    def work() -> dict[str, Any]:
        done.append(1)
        return {"message": "no answer", "fingerprint": "f1"}

    failure = _failure(work)
    assert (failure.code, done) == ("network.timeout", [])
    assert (failure.message, failure.fingerprint, failure.message) == (
        "no answer",
        "f1",
        "no answer",
    )
    assert done == [1]


@pytest.mark.parametrize(
    "through",
    [
        lambda failure: dataclasses.replace(failure, effect=failure.effect),
        copy.copy,
        copy.deepcopy,
        lambda failure: pickle.loads(pickle.dumps(failure)),
        lambda failure: Failure.from_dict(failure.to_dict()),
    ],
    ids=["replace", "copy", "deepcopy", "pickle", "dict"],
)
def test_a_copy_has_what_was_deferred(through: Callable[[Failure], Failure]) -> None:
    """However it is copied; and it equals the original and prints like it."""
    failure = _failure(lambda: {"message": "no answer", "fingerprint": "f1"})
    other = through(failure)
    assert (other.message, other) == ("no answer", failure)
    assert repr(other) == repr(failure)


def test_what_is_changed_after_it_was_read_stays() -> None:
    """The work is done once, and touches nothing afterwards."""
    failure = _failure(lambda: {"message": "no answer", "fingerprint": "f1"})
    assert failure.message == "no answer"
    failure.message = "set"  # type: ignore[misc]
    assert (failure.fingerprint, failure.message) == ("f1", "set")


def test_two_works_of_one_record() -> None:
    """Each fills its own fields, and does not cause the other."""
    failure = _failure(lambda: {"message": "no answer", "fingerprint": "f1"})
    defer(failure, (("details",), lambda: {"details": {"host": "a.example"}}))
    assert failure.details == {"host": "a.example"}
    assert failure.message == "no answer"


def test_a_field_that_does_not_exist_is_an_error() -> None:
    """As on any other record, deferred or not."""
    for failure in (_failure(dict), Failure(Category.NETWORK, "network.timeout")):
        with pytest.raises(AttributeError):
            failure.nothing_of_the_kind  # type: ignore[attr-defined]  # noqa: B018


def test_many_threads_read_the_same() -> None:
    """Whoever comes first does the work; nobody sees an empty field."""
    failure = _failure(lambda: {"message": "no answer", "fingerprint": "f1"})
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(failure.message)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["no answer"] * 16
