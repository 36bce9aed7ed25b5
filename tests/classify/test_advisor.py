"""The advisor: asked once per fingerprint, never waited for, never believed about effects."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import failwise
from failwise.classify import Classifier
from failwise.classify.advisor import Advisor
from failwise.evidence import from_text
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect

VAGUE = "Something went wrong."


def finished(name: str = "failwise-advisor") -> None:
    """Wait until the advisor's threads are through."""
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(5)


def judged(classifier: Classifier, text: str = VAGUE) -> Failure:
    failure = classifier.classify(from_text(text))
    assert failure is not None
    return failure


@pytest.fixture
def asked() -> list[Failure]:
    return []


def answering(asked: list[Failure], code: Any) -> Callable[[Failure], Any]:
    def ask(failure: Failure) -> Any:
        asked.append(failure)
        return code

    return ask


def test_asked_once_and_serves_the_next(asked: list[Failure]) -> None:
    """The first failure stays unknown; later ones of its fingerprint bear the label."""
    classifier = Classifier(advisor=Advisor(answering(asked, "server.overloaded")))
    first = judged(classifier)
    finished()
    second, third = judged(classifier), judged(classifier)
    assert first.code == "unknown.unclassified"
    assert [second.code, third.code] == ["server.overloaded"] * 2
    assert second.rule == "advisor"
    assert second.fingerprint == first.fingerprint
    assert len(asked) == 1
    assert asked[0].exception is None


def test_no_effect_becomes_safe(asked: list[Failure]) -> None:
    """A label of a code that is usually refused or never sent changes nothing about the effect."""
    classifier = Classifier(advisor=Advisor(answering(asked, "network.dns")))
    judged(classifier)
    finished()
    failure = judged(classifier)
    assert failure.code == "network.dns"
    assert failure.effect is Effect.UNKNOWN
    assert failure.transient is not True


def test_what_is_known_is_not_asked(asked: list[Failure]) -> None:
    """A failure that a rule knows goes its way alone."""
    classifier = Classifier(advisor=Advisor(answering(asked, "server.internal")))
    assert judged(classifier, "connect: connection refused").code == "network.connect_refused"
    finished()
    assert asked == []


def test_a_call_never_waits() -> None:
    """While the advisor thinks, failures pass; at most two questions are open."""
    gate = threading.Event()
    advisor = Advisor(lambda failure: gate.wait(5) and "server.internal")
    classifier = Classifier(advisor=advisor)
    texts = [f"Oops number {word} went wrong" for word in ("red", "green", "blue", "grey")]
    for text in texts:
        assert judged(classifier, text).category is Category.UNKNOWN
    assert sum(one.name == "failwise-advisor" for one in threading.enumerate()) <= 2
    gate.set()
    finished()


@pytest.mark.parametrize(
    "answer", [None, "no.such_code", "runtime.cancelled", 7, "unknown.unclassified"]
)
def test_useless_answers_change_nothing(asked: list[Failure], answer: Any) -> None:
    """No opinion, no code, or a code that only Failwise gives: the failure stays unknown."""
    classifier = Classifier(advisor=Advisor(answering(asked, answer)))
    judged(classifier)
    finished()
    assert judged(classifier).category is Category.UNKNOWN
    finished()
    assert len(asked) == 1


def test_an_advisor_that_breaks(caplog: pytest.LogCaptureFixture) -> None:
    """What it raises is logged, and no failure is lost."""

    def ask(failure: Failure) -> str:
        raise ValueError("no model here")

    classifier = Classifier(advisor=Advisor(ask))
    judged(classifier)
    finished()
    assert judged(classifier).category is Category.UNKNOWN
    assert "advisor failed" in caplog.text


def test_late_answers_are_not_used(asked: list[Failure]) -> None:
    """An answer past its time is no answer."""
    moments = iter([0.0, 99.0])
    advisor = Advisor(answering(asked, "server.internal"), seconds=5, now=lambda: next(moments))
    classifier = Classifier(advisor=advisor)
    judged(classifier)
    finished()
    assert advisor.answers() == {}


def test_coroutine_functions_too(asked: list[Failure]) -> None:
    """An async advisor is awaited in a loop of its own."""

    async def ask(failure: Failure) -> str:
        return "server.overloaded"

    classifier = Classifier(advisor=Advisor(ask))
    judged(classifier)
    finished()
    assert judged(classifier).code == "server.overloaded"


async def test_through_the_runtime(asked: list[Failure]) -> None:
    """`Runtime(advisor=...)`: a write is not repeated, whatever the advisor says."""
    runtime = failwise.Runtime(":memory:", advisor=answering(asked, "server.overloaded"))
    sent = []

    @runtime.tool(read_only=False)
    def order(item: str) -> str:
        sent.append(item)
        raise RuntimeError(VAGUE)

    await runtime.call("order", {"item": "pen"})
    finished()
    result = await runtime.call("order", {"item": "cup"})
    assert len(asked) == 1
    assert sent == ["pen", "cup"]
    assert result.failure is not None
    assert result.failure.rule == "advisor"
    assert result.failure.effect is Effect.UNKNOWN


def test_what_is_no_function_is_refused() -> None:
    """At once, where it was written."""
    with pytest.raises(UsageError, match="advisor"):
        failwise.Runtime(":memory:", advisor="gpt")  # type: ignore[arg-type]
