"""What is worked out once for a form of exceptions never stands for one of another form."""

from dataclasses import fields
from typing import Any

import pytest

from failwise.classify import Classifier
from failwise.evidence import exception_forms, from_exception, from_text
from failwise.evidence.exception_forms import form_of
from failwise.evidence.texts import address_in
from failwise.vocabulary.failure import Failure


class Refused(Exception):
    """An exception whose objects have what they are given."""

    def __init__(self, message: str, **own: Any) -> None:
        super().__init__(message)
        self.__dict__.update(own)


def test_objects_of_one_class_with_other_attributes_are_told_apart() -> None:
    """The first has no status, the second has one, the third an exception behind it."""
    assert from_exception(Refused("no")).status is None
    assert from_exception(Refused("no", status_code=429)).status == 429
    behind = from_exception(Refused("no", cause=ConnectionResetError(104, "reset")))
    assert [fact.name for fact in behind.exceptions][1:] == ["ConnectionResetError"]
    assert from_exception(Refused("no")).status is None


def test_an_attribute_that_is_set_later_is_seen() -> None:
    """The same object, asked again with one name more."""
    error = Refused("no", code="E1")
    assert from_exception(error).exceptions[0].attributes == {"code": "E1"}
    error.__dict__["request_id"] = "r-1"
    assert from_exception(error).exceptions[0].attributes == {"code": "E1", "request_id": "r-1"}


def test_a_property_that_raises_hides_nothing_else() -> None:
    """It counts as missing; what stands beside it is read."""

    class Odd(Exception):
        port = 8080

        @property
        def code(self) -> int:
            raise RuntimeError("not yet")

    assert from_exception(Odd("x")).exceptions[0].attributes == {"port": 8080}


def test_what_is_remembered_is_bounded() -> None:
    """Classes made on the spot, and objects with ever other names, do not pile up."""
    for number in range(1_200):
        form_of(type(f"Made{number}", (Exception,), {})("x"))
        form_of(Refused("x", **{f"name{number}": 1}))
    form_of(Refused("x", **{f"other{number}": 1 for number in range(100)}))
    assert len(exception_forms._FORMS) <= 1_024
    assert from_exception(Refused("no", status_code=503)).status == 503


@pytest.mark.parametrize(
    "error",
    [
        ValueError("the basket holds no item"),
        TimeoutError("timed out"),
        Refused("no", status_code=429, body={"error": {"code": "busy", "message": "later"}}),
    ],
    ids=["bug", "timeout", "answer"],
)
def test_every_field_of_a_failure_can_be_read(error: Exception) -> None:
    """A failure is made field by field: none may be forgotten."""
    failure = Classifier().classify(from_exception(error))
    assert failure is not None
    told = {field.name: getattr(failure, field.name) for field in fields(Failure)}
    assert told["exception"] is error
    assert Failure.from_dict(failure.to_dict()).to_dict() == failure.to_dict()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "GET https://user:secret@api.example.com/v1/x?y=1: refused.",
        "HTTPSConnectionPool(host='api.example.com', port=443): Max retries exceeded with url: /x",
        "getaddrinfo ENOTFOUND db.internal",
        "<html><body>https://page.example</body></html>",
        "nothing of the kind",
    ],
)
def test_the_address_alone_is_the_one_that_all_facts_have(text: str) -> None:
    """Looked up without the rest, host and URL are the same."""
    evidence = from_text(text)
    assert address_in(text) == (evidence.host, evidence.url)
