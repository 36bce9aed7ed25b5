"""The advisor: asked once per fingerprint, never waited for, never believed about effects."""

import os
import subprocess
import sys
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

    def kept_advice(self, limit: int) -> list[tuple[str, str | None]]:
        return list(reversed(self.rows.items()))[:limit]


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
    """The journal remembers: the second runtime labels its very first failure, without asking. An
    `Advisor` may be given instead of its function."""
    codes = []
    for _ in range(2):
        advisor = failwise.Advisor(answering(asked, "server.overloaded"), per_hour=5)
        async with failwise.Runtime(tmp_path / "journal.db", advisor=advisor) as runtime:

            @runtime.tool()
            def order(item: str) -> str:
                raise RuntimeError(VAGUE)

            for number in range(2):
                result = await runtime.call("order", {"item": f"pen {number}"})
                finished()
                assert result.failure is not None
                codes.append(result.failure.code)
                assert result.sent == 1
    assert codes == ["unknown.unclassified", *["server.overloaded"] * 3]
    assert len(asked) == 1


def vague(journal: Path, **options: Any) -> tuple[failwise.Runtime, Callable[..., Any]]:
    """A runtime with one tool, which fails in a way that no rule knows."""
    runtime = failwise.Runtime(journal, **options)

    @runtime.tool()
    def order(item: str) -> str:
        raise RuntimeError(VAGUE)

    return runtime, order


def advise(journal: Path, code: str | None) -> str:
    """Another process was asked, and its advisor said `code`; the fingerprint."""
    runtime, _ = vague(journal, advisor=lambda failure: code)
    result = runtime.call_sync("order", {"item": "ink"})
    finished()
    runtime.close()
    assert result.failure is not None
    return result.failure.fingerprint


@pytest.mark.parametrize("way", ["call", "call_sync", "call_many", "call_many_sync", "run"])
async def test_kept_advice_labels_the_first_failure(
    asked: list[Failure], tmp_path: Path, way: str
) -> None:
    """Whichever way the first call of a process goes."""
    advise(tmp_path / "journal.db", "server.overloaded")
    runtime, order = vague(tmp_path / "journal.db", advisor=answering(asked, "server.internal"))
    match way:
        case "call":
            result = await runtime.call(order, item="pen")
        case "call_sync":
            result = runtime.call_sync(order, item="pen")
        case "call_many":
            (result, _) = await runtime.call_many([("order", {"item": "pen"})] * 2)
        case "call_many_sync":
            (result, _) = runtime.call_many_sync([("order", {"item": "pen"})] * 2)
        case _:
            async with runtime.run(id="job") as run:
                result = await run.call("order", {"item": "pen"}, call_id="one")
    finished()
    runtime.close()
    assert result.failure is not None
    assert (result.failure.code, result.failure.rule) == ("server.overloaded", "advisor")
    assert result.failure.effect is Effect.UNKNOWN
    assert asked == []


def test_no_opinion_and_a_refused_answer_are_kept_too(asked: list[Failure], tmp_path: Path) -> None:
    """What an advisor had nothing to say of, or a person refused, stays unlabelled and unasked."""
    from failwise.journal.advice import AdviceBook
    from failwise.journal.read import opened

    for number, code in enumerate((None, "server.overloaded")):
        journal = tmp_path / f"{number}.db"
        fingerprint = advise(journal, code)
        if code is not None:
            with opened(journal) as source:
                AdviceBook(source).judge(fingerprint, accepted=False)
        runtime, order = vague(journal, advisor=answering(asked, "server.internal"))
        result = runtime.call_sync(order, item="pen")
        finished()
        runtime.close()
        assert result.failure is not None
        assert result.failure.code == "unknown.unclassified"
    assert asked == []


def test_no_more_is_loaded_than_is_kept(asked: list[Failure]) -> None:
    """`limit` bounds what is asked of the memory, and the newest answers stay."""
    memory = Remembered()
    memory.rows = {f"{number:016x}": "server.internal" for number in range(9)}
    advisor = Advisor(answering(asked, None), limit=4, memory=lambda: memory)
    advisor.recall().result(5)
    assert list(advisor.answers()) == [f"{number:016x}" for number in range(5, 9)]


def test_a_slow_journal_holds_no_call_for_long(
    asked: list[Failure], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first call waits a bounded time, and not past its deadline; what comes late labels later ones."""
    from failwise.journal.advice import AdviceBook

    gate = threading.Event()
    advise(tmp_path / "journal.db", "server.overloaded")
    load = AdviceBook.kept_advice

    def slowly(book: AdviceBook, limit: int) -> Any:
        gate.wait(10)
        return load(book, limit)

    monkeypatch.setattr(AdviceBook, "kept_advice", slowly)
    runtime, _ = vague(tmp_path / "journal.db", advisor=answering(asked, "server.internal"))
    first = runtime.call_sync("order", {"item": "pen"}, deadline=0.2)
    assert first.duration_ms < 1_500
    gate.set()
    finished("failwise-advice")
    finished()
    second = runtime.call_sync("order", {"item": "cup"})
    runtime.close()
    assert second.failure is not None
    assert second.failure.code == "server.overloaded"


def test_a_memory_that_cannot_be_read(
    asked: list[Failure], caplog: pytest.LogCaptureFixture
) -> None:
    """Said once; the failure is judged without it, and the advisor asked."""

    class Broken(Remembered):
        def kept_advice(self, limit: int) -> list[tuple[str, str | None]]:
            raise OSError("disk full")

    advisor = Advisor(answering(asked, "server.overloaded"), memory=Broken)
    runtime = failwise.Runtime(":memory:", advisor=advisor)

    @runtime.tool()
    def order(item: str) -> str:
        raise RuntimeError(VAGUE)

    codes = []
    for item in ("pen", "cup"):
        result = runtime.call_sync(order, item=item)
        finished()
        assert result.failure is not None
        codes.append(result.failure.code)
    runtime.close()
    assert codes == ["unknown.unclassified", "server.overloaded"]
    assert caplog.text.count("could not be loaded") == 1


def test_a_plain_runtime_loads_nothing(tmp_path: Path) -> None:
    """Without an advisor, or switched off, nothing is read, and no thread begins."""
    runtime, order = vague(tmp_path / "journal.db")
    runtime.call_sync(order, item="pen")
    off, order = vague(tmp_path / "off.db", advisor=lambda failure: None, mode="off")
    off.call_sync(order, item="pen")
    assert not any(thread.name.startswith("failwise-advi") for thread in threading.enumerate())
    runtime.close()
    off.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork_in_the_middle_of_loading(tmp_path: Path) -> None:
    """The child loads for itself: its first failure is labelled, and it does not hang."""
    advise(tmp_path / "journal.db", "server.overloaded")
    script = tmp_path / "forking.py"
    script.write_text(
        "import os, sys, threading, failwise\n"
        "from failwise.journal.advice import AdviceBook\n"
        "load, parent, gate = AdviceBook.kept_advice, os.getpid(), threading.Event()\n"
        "def slowly(book, limit):\n"
        "    os.getpid() == parent and gate.wait(20)\n"
        "    return load(book, limit)\n"
        "AdviceBook.kept_advice = slowly\n"
        "runtime = failwise.Runtime(sys.argv[1], advisor=lambda failure: None)\n"
        "@runtime.tool()\n"
        "def order(item: str) -> str:\n"
        f"    raise RuntimeError({VAGUE!r})\n"
        "runtime.call_sync('order', {'item': 'ink'}, deadline=0.2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print(runtime.call_sync('order', {'item': 'pen'}).failure.code, flush=True)\n"
        "    os._exit(0)\n"
        "gate.set()\n"
        "os.waitpid(child, 0)\n"
        "runtime.close()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path / "journal.db")],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == ["server.overloaded"]
