"""`FigureConformance`: what an engine counts is what a count by hand finds, on any engine."""

from typing import Any

from failwise.journal.reader import Filter, Reader, open_reader
from failwise.journal.rollups import DAY, HOUR
from failwise.testing.claim_conformance import PATIENCE
from failwise.testing.journal_samples import START, bad, counted, facts, good, many, recovered
from failwise.testing.span_conformance import SpanConformance
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair


class FigureConformance(SpanConformance):
    """What `JournalConformance` asks about figures, counts, cures and series."""

    def filled(self, results: list[Any], **options: Any) -> Reader:
        """A reader of a journal that holds these calls."""
        journal = self.make_journal(**options)
        for result in results:
            journal.put(result)
        assert journal.flush(PATIENCE)
        assert journal.dropped == 0
        return open_reader(journal)

    def test_figures_equal_a_count_by_hand(self) -> None:
        """For every grouping, over any stretch of time, whether the hours are whole or broken."""
        results = many(500)
        reader = self.filled(results)
        groupings: list[tuple[Any, ...]] = [
            (),
            ("tool",),
            ("upstream", "model"),
            ("category",),
            ("code", "asked"),
            ("hour",),
            ("day", "tool"),
            ("run",),
        ]
        windows: list[tuple[float | None, float | None]] = [
            (None, None),
            (START + 1_234.5, None),
            (START + 1_234.5, START + 2.5 * DAY),
            (START + HOUR, START + 2 * HOUR),
            (START + 100, START + 900),
            (START + HOUR, START + 1.5 * HOUR),
        ]
        for since, until in windows:
            within = [
                one
                for one in results
                if (since is None or one.timestamp >= since)
                and (until is None or one.timestamp < until)
            ]
            for by in groupings:
                self._same(reader.figures(since, until, by), counted(within, by), by)

    def test_figures_can_be_filtered(self) -> None:
        """By what the rollups know, and by what only the calls know."""
        results = many(500, seed=2)
        reader = self.filled(results)
        wheres: list[tuple[Filter, Any]] = [
            (Filter(tool=("pay", "order"), asked=True),
             lambda one: one.tool_name in ("pay", "order") and not one.parent_id),
            (Filter(success=True, model="m-1"), lambda one: one.success and one.model == "m-1"),
            (Filter(success=False, upstream="pay.example"),
             lambda one: not one.success and one.upstream == "pay.example"),
            (Filter(code="server.internal"), lambda one: facts(one)["code"] == "server.internal"),
            (Filter(run="run-1", success=False),
             lambda one: one.run_id == "run-1" and not one.success),
        ]  # fmt: skip
        for where, fits in wheres:
            for by in ((), ("tool",), ("hour",)):
                self._same(reader.figures(by=by, where=where), counted(results, by, fits), by)

    def _same(
        self,
        found: list[dict[str, Any]],
        wanted: dict[tuple[Any, ...], dict[str, Any]],
        by: tuple[str, ...],
    ) -> None:
        by_group = {tuple(row[name] for name in by): row for row in found}
        assert set(by_group) == set(wanted)
        for group, counts in wanted.items():
            assert {name: by_group[group][name] for name in counts} == counts, group

    def test_attempts_fingerprints_and_cures_are_counted(self) -> None:
        """How often a kind of failure was met, how often cured and by what, when first and last."""
        reader = self.filled(
            [
                bad("c1", timestamp=START + 10),
                bad("c2", timestamp=START + DAY),
                bad("c3", "server.internal"),
                recovered("c4"),
                recovered("c5"),
            ]
        )
        attempts = {row["code"]: (row["attempts"], row["cured"]) for row in reader.attempts()}
        assert attempts == {
            "network.read_timeout": (4, 0),
            "server.internal": (2, 0),
            "server.unavailable": (2, 2),
        }
        first, second = reader.fingerprints()
        assert first == {
            "fingerprint": "print-network.read_timeout",
            "code": "network.read_timeout",
            "category": "network",
            "tool": "search",
            "upstream": "api.example",
            "provider": "",
            "asked": 1,
            "calls": 2,
            "first_seen": START + 10,
            "last_seen": START + DAY,
        }
        assert (second["fingerprint"], second["calls"]) == ("print-server.internal", 1)
        assert [row["calls"] for row in reader.fingerprints(until=START + HOUR)] == [1, 1]
        assert len(reader.fingerprints(by=("day",))) == 3
        cures = {
            (row["code"], row["action"]): (row["tried"], row["cured"]) for row in reader.cures()
        }
        assert cures == {
            ("network.read_timeout", "retry_backoff"): (2, 0),
            ("server.internal", "retry_backoff"): (1, 0),
            ("server.unavailable", "retry_exact"): (2, 2),
        }

    def test_attempts_are_counted_exactly_and_by_what_they_were(self) -> None:
        """Broken hours too; kinds are the attempt's own, the rest is its call's."""
        results = [
            bad("c1", timestamp=START + 10, model="m-1"),
            bad("c2", timestamp=START + HOUR + 20),
            recovered("c3", timestamp=START + 30, run_id="other"),
            recovered("c4", timestamp=START + 2 * HOUR + 5, parent_id="parent"),
        ]
        reader = self.filled(results)

        def met(
            since: float | None = None, until: float | None = None, **said: Any
        ) -> dict[str, tuple[int, int]]:
            rows = reader.attempts(since, until, ("code",), Filter(**said))
            return {row["code"]: (row["attempts"], row["cured"]) for row in rows}

        timeout, gone = "network.read_timeout", "server.unavailable"
        assert met() == {timeout: (4, 0), gone: (2, 2)}
        assert met(START + 20) == {timeout: (2, 0), gone: (2, 2)}
        assert met(START + 20, START + 2 * HOUR) == {timeout: (2, 0), gone: (1, 1)}
        assert met(category="server") == {gone: (2, 2)}
        assert met(model="m-1") == {timeout: (2, 0)}
        assert met(success=True) == met(effect="rejected") == {gone: (2, 2)}
        assert met(run="other") == {gone: (1, 1)}
        assert met(asked=False) == met(START + HOUR + 30) == {gone: (1, 1)}
        assert met(text="OF NETWORK") == {timeout: (4, 0)}
        assert reader.worst_runs() == ["run"]
        assert reader.span() == (START, START + 3 * HOUR)
        assert reader.span(START + HOUR + 9, START + HOUR + 10) == (START + HOUR, START + 2 * HOUR)

    def test_arguments_are_counted_by_tool_and_number_of_parameters(self) -> None:
        """Unusable, refused, repaired; of calls that somebody asked for, broken hours too."""
        wrong, refused = "model_output.invalid_json", "invalid_request.parameter"
        repair = Repair("comma", "", 1, 2, Grade.LOSSLESS)
        reader = self.filled(
            [
                good("1", parameters=2),
                good("2", parameters=2, repairs=(repair,)),
                bad("3", wrong, parameters=2, timestamp=START + 90),
                bad("4", refused, parameters=5, timestamp=START + HOUR, model="m-1"),
                bad("5", "model_output.unknown_tool", timestamp=START + HOUR),
                bad("6", wrong, parameters=5, parent_id="parent"),
            ]
        )
        by = reader.argument_errors(by=("parameters",))
        counts = ("calls", "wrong", "refused", "repaired")
        assert {row["parameters"]: tuple(row[name] for name in counts) for row in by} == {
            2: (3, 1, 0, 1),
            5: (1, 0, 1, 0),
            -1: (1, 0, 0, 0),
        }
        (tool,) = reader.argument_errors(START + 1, START + HOUR + 1)
        assert [tool[name] for name in counts] == [3, 1, 1, 0]
        (model,) = reader.argument_errors(where=Filter(model="m-1"))
        assert [model[name] for name in counts] == [1, 0, 1, 0]

    def test_failures_are_read_newest_first(self) -> None:
        """Only those, with all that clusters need, at most so many."""
        results = many(200, seed=3)
        reader = self.filled(results)
        found = list(reader.failures())
        wanted = sorted((one for one in results if not one.success), key=lambda one: -one.timestamp)
        assert [one["call_id"] for one in found] == [one.call_id for one in wanted]
        assert [one["call_id"] for one in reader.failures(limit=5)] == [
            one.call_id for one in wanted[:5]
        ]
        assert all(one["fingerprint"] and one["failure"]["message"] for one in found)

    def test_correction_rounds_are_counted_in_series(self) -> None:
        """Wrong calls of one tool in one run, up to its next success."""
        wrong = "model_output.invalid_json"
        reader = self.filled(
            [
                bad("1", wrong, timestamp=START),
                bad("2", wrong, timestamp=START + 1),
                good("3", timestamp=START + 2),
                bad("4", wrong, timestamp=START + 3),
                good("5", timestamp=START + 4),
                bad("6", wrong, timestamp=START + 5),
                bad("7", wrong, timestamp=START, run_id="other"),
            ]
        )
        assert reader.corrections() == (2, 2, 1.5)
        assert reader.corrections(until=START) == (0, 0, 0.0)

    def test_an_empty_journal_answers_with_nothing(self) -> None:
        """Every question, before there is a first record."""
        reader = open_reader(self.make_journal())
        assert reader.figures(by=("tool",)) == reader.figures() == reader.calls() == []
        assert reader.fingerprints() == reader.attempts() == reader.cures() == []
        assert list(reader.failures()) == reader.open_effects() == reader.prevented() == []
        assert reader.corrections() == (0, 0, 0.0)
        assert reader.names() == {}
