"""`JournalConformance`: what every engine of the journal must do, as tests to inherit.

    import pytest
    pytest.register_assert_rewrite("failwise.testing.journal_conformance")
    from failwise.testing import JournalConformance

    class TestMine(JournalConformance):
        def make_journal(self, **options):
            return Journal("mine://somewhere/new", **options)

A test that opens a second journal of the same place calls `again`.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from failwise.journal.journal import Journal
from failwise.journal.reader import Filter, open_reader
from failwise.journal.rollups import DAY
from failwise.testing.claim_conformance import PATIENCE
from failwise.testing.clock import SteppingClock
from failwise.testing.figure_conformance import FigureConformance
from failwise.testing.journal_samples import (
    START,
    bad,
    claim_of,
    facts,
    failure_of,
    good,
    many,
    recovered,
    with_secret,
)
from failwise.vocabulary.steps import Claimed


class JournalConformance(FigureConformance):
    """Inherit it under a name that begins with ``Test``, and give `make_journal` and `again`."""

    # Records

    def test_a_good_call_is_one_row(self) -> None:
        """Who, what, when, how long; nothing of its arguments, no attempts."""
        (call,) = self.filled([good(model="m-1")]).calls()
        wanted = {
            "tool": "search",
            "call_id": "c1",
            "run_id": "run",
            "started": START,
            "success": True,
            "sent": 1,
            "duration_ms": 12.5,
            "upstream": "api.example",
            "model": "m-1",
            "failed_attempts": 0,
            "arguments": None,
            "failure": None,
        }
        assert {name: call[name] for name in wanted} == wanted

    def test_a_failure_keeps_what_a_person_needs(self) -> None:
        """The failure as data, its attempts with each decision and its reason, its arguments."""
        reader = self.filled([bad()])
        call = reader.call("c2")
        assert call is not None
        assert (call["success"], call["code"], call["action"]) == (
            False,
            "network.read_timeout",
            "ask_model",
        )
        assert call["arguments"] == {"query": "shoes"}
        assert call["failure"]["details"] == {"limit": 10}
        assert call["body_length"] == 2_000
        assert 0 < call["fed_length"] <= 900
        assert call["waited_ms"] == 1_000
        first, second = call["attempts"]
        assert (first["action"], first["delay"], first["reason"]) == (
            "retry_backoff",
            1.0,
            "a read may be repeated",
        )
        assert (second["number"], second["action"], second["fingerprint"]) == (
            2,
            None,
            "print-network.read_timeout",
        )
        assert reader.call("nothing") is None

    def test_an_odd_record_never_costs_the_others(self) -> None:
        """Text that is no text, numbers out of range, moments that are none: the rest is written."""
        odd: list[dict[str, Any]] = [
            {"call_id": "\ud800"},
            {"call_id": "a\0b", "arguments": {"\0": "\0"}},
            {"run_id": "\udcff", "arguments": {"\ud800": "\udfff"}},
            {"arguments": {"n": 10**400, "when": object(), "bytes": b"\xff"}},
            {"arguments": {"text": "x" * 500_000}},
            {"parent_id": 10**30},
            {"duration_ms": float("inf")},
            {"timestamp": 0.0},
            {"timestamp": 1e300},
            {"timestamp": -5.0},
            {"repairs": None},
        ]
        journal = self.make_journal()
        for number, changes in enumerate(odd):
            journal.put(good(f"before-{number}"))
            journal.put(bad(f"odd-{number}", **changes))
            journal.put(good(f"after-{number}"))
            assert journal.flush(PATIENCE)
        kept = {call["call_id"] for call in open_reader(journal).calls(limit=1_000)}
        for number in range(len(odd)):
            assert {f"before-{number}", f"after-{number}"} <= kept
        assert journal.written + journal.dropped == 3 * len(odd)

    def test_pages_follow_each_other(self) -> None:
        """Newest first, each call once, though many began at the same moment."""
        reader = self.filled([good(f"c{n}", timestamp=START + n // 7) for n in range(100)])
        pages: list[dict[str, Any]] = []
        before = None
        while page := reader.calls(before=before, limit=9):
            pages += page
            before = page[-1]["started"], page[-1]["id"]
        assert len({call["call_id"] for call in pages}) == len(pages) == 100
        moments = [call["started"] for call in pages]
        assert moments == sorted(moments, reverse=True)
        assert len(reader.calls(since=START + 1, until=START + 2)) == 7

    def test_calls_can_be_found_by_whatever_they_have(self) -> None:
        """Every field of a filter, alone and together, with one value and with several."""
        results = many(300)
        results[7].failure = results[7].failure or failure_of("server.internal")
        reader = self.filled(results)
        wanted: list[tuple[Filter, Any]] = [
            (Filter(tool="pay"), lambda one: one.tool_name == "pay"),
            (Filter(tool=("pay", "order")), lambda one: one.tool_name in ("pay", "order")),
            (Filter(model="m-1", success=True), lambda one: one.model == "m-1" and one.success),
            (Filter(category="network"), lambda one: facts(one)["category"] == "network"),
            (Filter(success=False, asked=True), lambda one: not one.success and not one.parent_id),
            (Filter(run="run-2"), lambda one: one.run_id == "run-2"),
            (Filter(call_id="c9"), lambda one: one.call_id == "c9"),
            (Filter(text="OF NETWORK"), lambda one: facts(one)["category"] == "network"),
            (Filter(text="100%_"), lambda one: False),
            (Filter(tool="o'r\"; --"), lambda one: False),
        ]
        del results[7]
        for where, fits in wanted:
            found = {call["call_id"] for call in reader.calls(where, limit=1_000)} - {"c7"}
            assert found == {one.call_id for one in results if fits(one)}, where

    def test_a_run_reads_in_order_with_its_attempts(self) -> None:
        """Fallbacks too, oldest first."""
        reader = self.filled(
            [good("c1"), bad("c2", timestamp=START + 2), recovered("c3", timestamp=START + 1)]
        )
        calls = reader.run("run")
        assert [(one["call_id"], len(one["attempts"])) for one in calls] == [
            ("c1", 0),
            ("c3", 2),
            ("c2", 2),
        ]
        assert (calls[1]["told_waits"], calls[1]["waits_obeyed"]) == (1, 1)
        assert reader.run("") == []

    # Names, raw answers, borders, retention

    def test_names_merges_splits_and_mutes_are_kept(self) -> None:
        """What a person said stays until he says something else."""
        reader = open_reader(self.make_journal())
        reader.name(["f1", "f2"], "k1", "gateway 订单")
        reader.merge(["f3"], "k1")
        reader.mute(["f2", "f9"])
        names = reader.names()
        assert {one: names[one].cluster for one in names} == {
            "f1": "k1",
            "f2": "k1",
            "f3": "k1",
            "f9": "",
        }
        assert names["f3"].name == "gateway 订单"
        assert (names["f2"].muted, names["f1"].muted) == (True, False)
        reader.split(["f2"])
        reader.mute(["f9"], muted=False)
        names = reader.names()
        assert (names["f2"].cluster, names["f2"].muted, names["f9"].muted) == ("f2", True, False)

    def test_everything_kept_passes_the_border(self) -> None:
        """No row of any table holds the secret."""
        journal = self.make_journal(raw=True)
        result, step = with_secret("hunter2hunter2")
        self.ask_step(journal, step)
        journal.settle(step.key, "done", result)
        journal.put(result)
        assert journal.flush(PATIENCE)
        kept = "".join(
            str([tuple(row) for row in journal.rows(f"SELECT * FROM {table}")])  # noqa: S608
            for table in ("calls", "attempts", "raw_answers", "claims", "prevented")
        )
        assert "planted" in kept
        assert "hunter2" not in kept

    def ask_step(self, journal: Journal, step: Any) -> Claimed:
        return journal.claim(step).result(PATIENCE)

    def test_raw_answers_are_kept_only_where_they_are_asked_for(self) -> None:
        """Off by default; redacted or as they are, cut to size, gone before the calls are."""
        from dataclasses import replace

        body = "password=hunter2hunter2 " + "x" * 300
        failure = replace(failure_of("server.internal"), raw=body)
        result = bad("c1")
        result.attempts = (replace(result.attempts[0], failure=failure),)
        clock = SteppingClock(START)
        for raw, seen in ((False, None), (True, "password=["), ("as is", "hunter2")):
            journal = self.make_journal(raw=raw, raw_bytes=200, raw_days=7, clock=clock)
            journal.put(result)
            reader = open_reader(journal)
            answers = reader.raw_answers("c1")
            if seen is None:
                assert answers == []
                continue
            assert seen in answers[0]["body"]
            assert (answers[0]["length"], len(answers[0]["body"])) == (2_000, 200)
        clock.now += 8 * DAY
        self.pruned(journal)
        assert reader.raw_answers("c1") == []
        assert reader.call("c1") is not None

    def pruned(self, journal: Journal) -> None:
        """Let the journal remove what is too old, all of it."""
        while journal.prune():
            pass

    def test_old_and_surplus_calls_go_figures_and_open_claims_stay(self) -> None:
        """By age and by number; an effect that may have happened is kept for a person."""
        clock = SteppingClock(START)
        journal = self.make_journal(
            clock=clock, retention_days=30, retention_rows=100, figures_days=90
        )
        journal.put(bad("old", timestamp=START - 31 * DAY))
        for number in range(150):
            journal.put(good(f"c{number}", timestamp=START + number))
        for call, arguments in (("1", "a"), ("2", "b")):
            self.ask(journal, call, arguments=arguments)
        journal.settle(claim_of("1").key, "done", good())
        journal.settle(claim_of("2").key, "unknown")
        self.pruned(journal)
        reader = open_reader(journal)
        calls = [call["call_id"] for call in reader.calls(limit=1_000)]
        assert calls == [f"c{number}" for number in range(149, 49, -1)]
        assert reader.cures() == []
        assert [row["calls"] for row in reader.figures()] == [151]
        clock.now += 31 * DAY
        self.pruned(journal)
        assert reader.calls() == []
        assert [one["key"] for one in reader.open_effects(now=clock.time())] == [claim_of("2").key]
        assert self.ask(journal, "1").state == "granted"
        clock.now += 90 * DAY
        self.pruned(journal)
        assert reader.figures() == []

    def test_two_writers_lose_and_double_nothing(self) -> None:
        """Two processes' worth of records, put at the same time from several threads."""
        journal = self.make_journal()
        journals = (journal, self.again(journal))

        def put(number: int) -> None:
            for call in range(200):
                journals[number % 2].put(good(f"{number}-{call}"))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put, range(4)))
        assert all(one.flush(PATIENCE) for one in journals)
        reader = open_reader(journal)
        assert len({call["call_id"] for call in reader.calls(limit=1_000)}) == 800
        assert [row["calls"] for row in reader.figures()] == [800]
