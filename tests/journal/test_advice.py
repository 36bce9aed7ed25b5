"""What an advisor was asked and said is kept for all processes of a journal."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from failwise.classify.advisor import Question
from failwise.journal.advice import KEPT_DAYS, STALE, AdviceBook
from failwise.journal.journal import Journal
from failwise.journal.read import opened
from failwise.journal.unknowns import known_messages, unknown_clusters
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, StopReason
from failwise.vocabulary.result import Attempt, ToolResult


class Moments:
    """A wall clock that is told."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def question(name: str = "f" * 16) -> Question:
    return Question(name, "Widget 7 is in limbo", "move", None, "ask")


def test_one_of_several_asks(tmp_path: Path) -> None:
    """The first is told to ask, the others that it was asked; the answer reaches all of them."""
    journals = [Journal(tmp_path / "journal.db") for _ in range(3)]
    books = [AdviceBook(journal) for journal in journals]
    assert [book.ask_advice(question()) for book in books] == [
        (False, None),
        (True, None),
        (True, None),
    ]
    books[0].advise("f" * 16, "server.unavailable")
    assert [book.ask_advice(question()) for book in books] == [(True, "server.unavailable")] * 3
    (kept,) = books[1].listed()
    assert (kept.code, kept.message, kept.tool, kept.advisor, kept.accepted) == (
        "server.unavailable", "Widget 7 is in limbo", "move", "ask", None,
    )  # fmt: skip
    for journal in journals:
        journal.close()


def test_no_opinion_is_an_answer() -> None:
    """Who had nothing to say is not asked again."""
    journal, moments = Journal(":memory:"), Moments()
    book = AdviceBook(journal, moments)
    book.ask_advice(question())
    book.advise("f" * 16, None)
    moments.now += 10 * STALE
    assert book.ask_advice(question()) == (True, None)
    journal.close()


def test_a_question_whose_asker_is_gone() -> None:
    """After an hour without an answer it may be asked again, by one."""
    journal, moments = Journal(":memory:"), Moments()
    book = AdviceBook(journal, moments)
    assert book.ask_advice(question()) == (False, None)
    moments.now += STALE - 1
    assert book.ask_advice(question()) == (True, None)
    moments.now += 2
    assert book.ask_advice(question()) == (False, None)
    assert book.ask_advice(question()) == (True, None)
    journal.close()


def test_a_persons_word() -> None:
    """A refused answer labels nothing; an accepted one stays; neither is forgotten with age."""
    journal, moments = Journal(":memory:"), Moments()
    book = AdviceBook(journal, moments)
    for name in ("a" * 16, "b" * 16, "c" * 16):
        book.ask_advice(question(name))
        book.advise(name, "server.unavailable")
    assert book.judge("a" * 16, accepted=False) is not None
    assert book.judge("b" * 16, accepted=True) is not None
    assert book.judge("0" * 16, accepted=True) is None
    assert book.ask_advice(question("a" * 16)) == (True, None)
    moments.now += (KEPT_DAYS + 1) * 86_400
    book.ask_advice(question("d" * 16))
    assert {one.fingerprint[0]: one.accepted for one in book.listed()} == {
        "a": False,
        "b": True,
        "d": None,
    }
    journal.close()


def test_what_a_new_process_loads() -> None:
    """Answers, the newest first and so many at most; open questions are left out, refused ones label
    nothing."""
    journal, moments = Journal(":memory:"), Moments()
    book = AdviceBook(journal, moments)
    for number, code in enumerate(
        ("server.unavailable", None, "server.internal", "business.refused")
    ):
        book.ask_advice(question(f"{number:016x}"))
        book.advise(f"{number:016x}", code)
        moments.now += 1
    book.ask_advice(question("f" * 16))
    book.judge(f"{2:016x}", accepted=False)
    assert book.kept_advice(3) == [
        (f"{3:016x}", "business.refused"),
        (f"{2:016x}", None),
        (f"{1:016x}", None),
    ]
    journal.close()


def test_it_can_be_read_from_the_file(tmp_path: Path) -> None:
    """A person reads and judges what another process wrote."""
    journal = Journal(tmp_path / "journal.db")
    AdviceBook(journal).ask_advice(question())
    with opened(tmp_path / "journal.db") as source:
        book = AdviceBook(source)
        assert book.judge("f" * 16, accepted=False) is not None
        found = book.advice("f" * 16)
    assert found is not None
    assert found.accepted is False
    journal.close()


def test_many_at_once(tmp_path: Path) -> None:
    """Of eight that ask at the same moment over connections of their own, one is told to ask."""
    journals = [Journal(tmp_path / "journal.db") for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda journal: AdviceBook(journal).ask_advice(question()), journals)
        )
    assert sorted(answers) == [(False, None), *[(True, None)] * 7]
    for journal in journals:
        journal.close()


def test_in_postgresql(postgres: str) -> None:
    """The same there: two processes, one question; and the unknown failures with the answer."""
    with contextlib.closing(Journal(postgres)) as journal:
        failure = Failure(
            Category.UNKNOWN, "unknown.unclassified", "Widget 7 is in limbo", fingerprint="f" * 16
        )
        journal.put(
            ToolResult(
                "move",
                False,
                failure=failure,
                attempts=(Attempt(1, 0.0, 1.0, failure),),
                stop_reason=StopReason.UNSAFE_EFFECT,
                timestamp=1_000_000.0,
            )
        )
        journal.flush()
        book = AdviceBook(journal)
        assert [book.ask_advice(question()) for _ in range(2)] == [(False, None), (True, None)]
        book.advise("f" * 16, "server.unavailable")
        assert book.kept_advice(10) == [("f" * 16, "server.unavailable")]
        (cluster,) = unknown_clusters(journal)
        assert (cluster.code, cluster.tools, cluster.count) == ("server.unavailable", ("move",), 1)
        assert cluster.messages == ("Widget 7 is in limbo",)
        assert known_messages(journal) == []
        book.judge("f" * 16, accepted=False)
        assert book.ask_advice(question()) == (True, None)
        assert unknown_clusters(journal) == []
