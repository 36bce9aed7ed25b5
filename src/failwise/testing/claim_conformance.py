"""What every engine of the journal must do with claims: tests to inherit, through `JournalConformance`."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from failwise.journal.journal import Journal
from failwise.journal.reader import Reader, open_reader
from failwise.testing.clock import SteppingClock
from failwise.testing.journal_samples import START, bad, claim_of, good
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.steps import Claimed

PATIENCE = 20.0
"""Seconds that a journal has for anything."""


class ClaimConformance:
    """The half about claims; `make_journal` and `again` are the subclass's to give."""

    def make_journal(self, **options: Any) -> Journal:
        """A journal at a place of its own that holds nothing; the test does not close it."""
        raise NotImplementedError

    def again(self, journal: Journal, **options: Any) -> Journal:
        """Another journal at the place of `journal`, as another process would open it."""
        raise NotImplementedError

    def ask(self, journal: Journal, call: str, **options: Any) -> Claimed:
        return journal.claim(claim_of(call, **options), "me", 60).result(PATIENCE)

    def test_a_claim_is_granted_once_and_its_answer_kept(self) -> None:
        """In flight while it is sent, done with its result after, for another process too."""
        journal = self.make_journal()
        other = self.again(journal)
        assert self.ask(journal, "1").state == "granted"
        second = self.ask(other, "1")
        assert second.state == "in_flight"
        assert second.wait is not None
        assert 0 < second.wait <= 60
        journal.settle(claim_of("1").key, "done", good("1"))
        assert journal.flush(PATIENCE)
        third = self.ask(other, "1")
        assert third.state == "done"
        assert third.result is not None
        assert (third.result.success, third.result.value, third.result.call_id) == (True, 1, "1")

    def test_other_arguments_under_the_same_key_are_refused(self) -> None:
        """The same call id never means two things."""
        journal = self.make_journal()
        self.ask(journal, "1")
        assert self.ask(journal, "1", arguments="b").state == "conflict"

    def test_the_same_effect_under_a_new_id_is_refused_while_open(self) -> None:
        """Only within the run, only for the same arguments, only until it is settled."""
        journal = self.make_journal()
        self.ask(journal, "1")
        journal.settle(claim_of("1").key, "unknown")
        answer = self.ask(journal, "2")
        assert (answer.state, answer.key) == ("open", claim_of("1").key)
        assert self.ask(journal, "3", arguments="b").state == "granted"
        assert self.ask(journal, "4", run="other").state == "granted"
        assert open_reader(journal).settle(claim_of("1").key, "not_done").state == "unknown"
        assert self.ask(journal, "2").state == "granted"

    def test_calls_outside_of_any_run_have_nothing_in_common(self) -> None:
        """Without a run there is no open effect of the run."""
        journal = self.make_journal()
        self.ask(journal, "1", run="")
        journal.settle(claim_of("1", run="").key, "unknown")
        assert self.ask(journal, "2", run="").state == "granted"

    def test_who_was_told_that_nobody_knows_is_told_that_it_is_done(self) -> None:
        """Late news that it happened: the next claim of the same arguments hears of it, once."""
        journal = self.make_journal()
        self.ask(journal, "1")
        journal.settle(claim_of("1").key, "unknown", bad("1"))
        journal.settle(claim_of("1").key, "done")
        told = self.ask(journal, "2")
        assert (told.state, told.key, told.result) == ("done", claim_of("1").key, None)
        assert self.ask(journal, "3").state == "granted"

    def test_the_same_effect_that_another_owner_sends_is_waited_for(self) -> None:
        """It may be dead, and its call the very order that is asked for again under a new id."""
        journal = self.make_journal()
        self.ask(journal, "1")
        other = journal.claim(claim_of("2"), "somebody else", 60).result(PATIENCE)
        assert (other.state, other.key) == ("in_flight", claim_of("1").key)
        assert self.ask(journal, "3").state == "granted"  # one process may order twice at once

    def test_a_lease_that_ran_out_is_an_unknown(self) -> None:
        """Nobody needs to sweep; its holder can still say that it happened."""
        clock = SteppingClock(START)
        journal = self.make_journal(clock=clock)
        self.ask(journal, "1")
        clock.now += 61
        assert self.ask(journal, "1").state == "unknown"
        assert self.ask(journal, "2").state == "open"
        reader = open_reader(journal)
        (found,) = reader.open_effects(now=clock.time())
        assert (found["tool"], found["owner"], found["arguments"]) == ("order", "me", {"what": "a"})
        journal.settle(claim_of("1").key, "done", good())
        assert self.ask(journal, "1").state == "done"
        assert reader.open_effects(now=clock.time()) == []

    def test_what_did_not_happen_may_be_claimed_again(self) -> None:
        """An earlier holder, coming late, cannot free what somebody else is sending now."""
        clock = SteppingClock(START)
        journal = self.make_journal(clock=clock)
        other = self.again(journal, clock=clock)
        key = claim_of("1").key
        self.ask(journal, "1")
        clock.now += 61
        other.resolve(key, "not_done")
        assert self.ask(other, "1").state == "granted"
        journal.settle(key, "not_done")
        journal.settle(key, "unknown")
        assert journal.flush(PATIENCE)
        assert self.ask(other, "1").state == "in_flight"
        journal.settle(key, "done", good())
        assert journal.flush(PATIENCE)
        other.settle(key, "not_done")
        assert other.flush(PATIENCE)
        assert self.ask(other, "1").state == "done"

    def test_a_person_cannot_overrule_what_is_known(self) -> None:
        """Settling is for open effects; the message says why not."""
        journal = self.make_journal()
        reader = open_reader(journal)
        key = claim_of("1").key
        self.ask(journal, "1")
        self._refused(reader, key, "not_done", "being sent")
        journal.settle(key, "done")
        self._refused(reader, key, "not_done", "is done")
        self._refused(reader, "nothing", "done", "no effect")
        assert self.ask(journal, "1").state == "done"

    def _refused(self, reader: Reader, key: str, state: Any, told: str) -> None:
        said = ""
        try:
            reader.settle(key, state)
        except UsageError as error:
            said = str(error)
        assert told in said

    def test_what_was_prevented_is_counted(self) -> None:
        """Each answer that kept an effect from happening twice; waiting is none."""
        journal = self.make_journal()
        self.ask(journal, "1")
        self.ask(journal, "1")
        self.ask(journal, "1", arguments="b")
        journal.settle(claim_of("1").key, "done")
        self.ask(journal, "1")
        reader = open_reader(journal)
        assert reader.prevented() == [
            {"state": "conflict", "calls": 1},
            {"state": "done", "calls": 1},
        ]
        assert reader.prevented(by=("tool",)) == [{"tool": "order", "calls": 2}]
        assert reader.prevented(until=1.0) == []

    def test_claims_that_come_together_are_all_answered(self) -> None:
        """Three hundred at once are granted; asked again, none is."""
        journal = self.make_journal()
        for expected in ("granted", "in_flight"):
            futures = [journal.claim(claim_of(str(n), arguments=str(n))) for n in range(300)]
            assert {future.result(PATIENCE).state for future in futures} == {expected}

    def test_of_many_that_claim_one_key_one_is_granted(self) -> None:
        """Threads of two processes, mixed with settlements of other keys."""
        journal = self.make_journal()
        other = self.again(journal)

        def ask(number: int) -> str:
            asked = (journal, other)[number % 2]
            asked.settle(claim_of(f"other-{number}").key, "unknown")
            return self.ask(asked, str(number // 8)).state

        with ThreadPoolExecutor(8) as pool:
            states = list(pool.map(ask, range(160)))
        for key in range(20):
            assert sorted(states[key * 8 : key * 8 + 8]) == ["granted", *["in_flight"] * 7]

    def test_claim_and_settlement_that_come_together_count_in_their_order(self) -> None:
        """A settlement right after its claim, a claim right after that."""
        journal = self.make_journal()
        first = journal.claim(claim_of("1"))
        assert first.result(PATIENCE).state == "granted"
        ready = threading.Barrier(2)

        def settle() -> None:
            ready.wait()
            journal.settle(claim_of("1").key, "not_done")

        thread = threading.Thread(target=settle)
        thread.start()
        ready.wait()
        thread.join()
        assert self.ask(journal, "1").state == "granted"

    def test_texts_of_every_kind_can_be_claimed(self) -> None:
        """A NUL, half a surrogate pair, quotes and Chinese in every id."""
        journal = self.make_journal()
        for odd in ("a\0b", "\ud800", "'; DROP TABLE claims; --", "订单", "%s ? $1"):
            assert self.ask(journal, odd, run=odd, tool=odd).state == "granted"
            assert self.ask(journal, odd, run=odd, tool=odd).state == "in_flight"
