"""The advisor: asked once per fingerprint, never waited for, never believed about effects."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import failwise
from failwise.classify import Classifier
from failwise.classify.advisor import Advisor, Question
from failwise.evidence import from_exception, from_text
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
    """What it raises is said once, without secrets, and no failure is lost."""

    def ask(failure: Failure) -> str:
        raise ValueError("no model here, key sk-abcdefghijklmnopqrstuvwx1234")

    classifier = Classifier(advisor=Advisor(ask))
    for text in (VAGUE, "Oops, that was odd", VAGUE):
        assert judged(classifier, text).category is Category.UNKNOWN
        finished()
    assert caplog.text.count("the advisor failed") == 1
    assert "no model here" in caplog.text
    assert "sk-abcdef" not in caplog.text


def test_late_answers_are_not_used(asked: list[Failure]) -> None:
    """An answer past its time is no answer."""
    moments = iter(range(0, 10_000, 99))
    advisor = Advisor(
        answering(asked, "server.internal"), seconds=5, now=lambda: float(next(moments))
    )
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


class Remembered:
    """A place where answers outlive a process, shared by several advisors."""

    def __init__(self) -> None:
        self.rows: dict[str, str | None] = {}
        self.questions: list[Question] = []

    def ask_advice(self, question: Question) -> tuple[bool, str | None]:
        self.questions.append(question)
        known = question.fingerprint in self.rows
        return known, self.rows.setdefault(question.fingerprint, None)

    def advise(self, fingerprint: str, code: str | None) -> None:
        self.rows[fingerprint] = code


def test_other_processes_do_not_ask_again(asked: list[Failure]) -> None:
    """What one advisor was told, another finds; what was asked is kept with tool and message."""
    memory = Remembered()
    for _ in range(3):
        advisor = Advisor(answering(asked, "server.overloaded"), memory=lambda: memory)
        classifier = Classifier(advisor=advisor)
        classifier.classify(from_text(VAGUE), tool="order")
        finished()
        failure = classifier.classify(from_text(VAGUE), tool="order")
        assert failure is not None
        assert failure.code == "server.overloaded"
    assert len(asked) == 1
    assert (memory.questions[0].tool, memory.questions[0].message) == (
        "order",
        "Something went wrong.",
    )


def test_a_memory_that_is_broken(asked: list[Failure], caplog: pytest.LogCaptureFixture) -> None:
    """The advisor works on without it, and says so once."""

    class Broken(Remembered):
        def ask_advice(self, question: Question) -> tuple[bool, str | None]:
            raise OSError("disk full")

    advisor = Advisor(answering(asked, "server.overloaded"), memory=Broken)
    classifier = Classifier(advisor=advisor)
    for text in (VAGUE, "Oops, that was odd"):
        judged(classifier, text)
        finished()
        assert judged(classifier, text).code == "server.overloaded"
    assert caplog.text.count("not kept beyond this process") == 1


def test_so_many_questions_an_hour(asked: list[Failure], caplog: pytest.LogCaptureFixture) -> None:
    """Beyond them failures pass unasked, said once; an hour later it may be asked again."""
    moments = [0.0]
    advisor = Advisor(answering(asked, None), per_hour=2, now=lambda: moments[0])
    classifier = Classifier(advisor=advisor)
    texts = [f"Oops number {word} went wrong" for word in ("red", "green", "blue", "grey")]
    for text in texts:
        judged(classifier, text)
        finished()
    assert len(asked) == 2
    assert caplog.text.count("within an hour") == 1
    moments[0] = 3_601.0
    judged(classifier, texts[3])
    finished()
    assert len(asked) == 3


def test_a_low_confidence_is_asked_too(asked: list[Failure]) -> None:
    """`below` decides which verdicts are doubted; what a tool said itself never is."""
    text = "connect: connection refused"
    classifier = Classifier(advisor=Advisor(answering(asked, "server.unavailable"), below=1.0))
    assert judged(classifier, text).code == "network.connect_refused"
    finished()
    labelled = judged(classifier, text)
    assert (labelled.code, labelled.rule) == ("server.unavailable", "advisor")
    assert labelled.spoke[1].rule == "text.connect.refused"
    said = from_exception(failwise.ToolError("no", code="business.conflict"))
    failure = classifier.classify(said)
    assert failure is not None
    assert failure.rule == "stated"
    assert len(asked) == 1


@pytest.mark.parametrize(
    "bounds", [{"below": 2}, {"seconds": 0}, {"per_hour": True}, {"limit": -1}]
)
def test_bounds_that_cannot_work(bounds: dict[str, Any]) -> None:
    """Refused where they are written."""
    with pytest.raises(UsageError, match=next(iter(bounds))):
        Advisor(lambda failure: None, **bounds)


async def test_over_two_runtimes_of_one_journal(asked: list[Failure], tmp_path: Path) -> None:
    """The journal remembers: the second runtime labels without asking. An `Advisor` may be given
    instead of its function."""
    for round_ in range(2):
        advisor = failwise.Advisor(answering(asked, "server.overloaded"), per_hour=5)
        async with failwise.Runtime(tmp_path / "journal.db", advisor=advisor) as runtime:

            @runtime.tool()
            def order(item: str) -> str:
                raise RuntimeError(VAGUE)

            for number in range(2):
                result = await runtime.call("order", {"item": f"pen {number}"})
                finished()
                assert result.failure is not None
                expected = "unknown.unclassified" if number == 0 else "server.overloaded"
                assert result.failure.code == expected, round_
                assert result.sent == 1
    assert len(asked) == 1
