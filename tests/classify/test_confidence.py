"""Confidence is measured: the data file, the way from a rule to its family, and what lowers it."""

import runpy
from pathlib import Path
from typing import Any, get_args

import pytest

from failwise.classify import Classifier, classify_text
from failwise.classify.confidence import ENOUGH, FAMILIES, family, measure, measured
from failwise.classify.finding import Family, Finding
from failwise.classify.tables import kind_rows, status_rows, text_rules
from failwise.classify.text import match
from failwise.evidence import from_text
from failwise.profiles.library import Profiles
from failwise.vocabulary.kinds import Effect

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/measure_confidence.py"
CASES = ROOT.parent / "shared/cases/failures.jsonl"


def finding(rule: str, family: Family, strength: int = 90, **more: Any) -> Finding:
    return Finding(rule, "server.internal", Effect.UNKNOWN, strength, family, **more)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.skipif(not CASES.exists(), reason="the labelled cases are not at hand")
def test_the_data_file_is_what_the_script_writes(script: dict[str, Any]) -> None:
    """Nobody typed a figure in: measured again, they are the same (else run the script)."""
    text = script["render"](list(script["verdicts"](script["DATA"])))
    assert script["TARGET"].read_text("utf-8") == text, "run scripts/measure_confidence.py"


def test_every_rule_that_can_fire_has_a_figure() -> None:
    """Text rules, kinds of exceptions, statuses, profile rows and shapes: each has a family, if not
    cases of its own."""
    assert measured().families.keys() == set(FAMILIES)
    found = [one for rule in text_rules() for one in match(rule.example)]
    found += [finding(f"exception.{kind}", "structure") for kind in kind_rows()]
    found += [finding(f"status.{status}", "status") for status in status_rows()]
    found += [finding(f"shape.{name}", "shape") for name in ("S1", "S17", "exit")]
    library = Profiles.default()
    for name in library.names():
        profile = library.get(name)
        assert profile is not None
        found += [
            finding(f"profile.{name}.{entry.code}", "profile", confirmed=entry.confirmed)
            for entry in profile.entries
        ]
    assert len(found) > 1_000
    for one in found:
        if one.category == "unknown":
            continue
        told = measure(one)
        assert told.basis in ("rule", "family"), one.rule
        assert 0 < told.confidence < 1
        assert told.samples > 0


def test_the_families_are_those_a_finding_may_have() -> None:
    """What a finding calls its family is measured, but for what claims nothing or is certain."""
    measurable = {one for one in get_args(Family) if one not in ("stated", "none")}
    assert {family(finding("x", one)) for one in measurable} <= set(FAMILIES)


def test_few_cases_of_its_own_lean_on_the_family() -> None:
    """With fewer than five cases the sample that is named is the family's, else the rule's."""
    figures = measured()
    for name, own in figures.rules.items():
        if not name.startswith("status."):
            continue
        told = measure(finding(name, "status"))
        group = figures.families["status"]
        assert told.confidence == own.confidence
        expected = ("rule", own.samples) if own.samples >= ENOUGH else ("family", group.samples)
        assert (told.basis, told.samples) == expected
    unseen = measure(finding("status.799", "status"))
    assert unseen.confidence == figures.families["status"].confidence


def test_an_unconfirmed_row_is_less_sure() -> None:
    """A profile row that nobody could check counts less than one that was."""
    sure = measure(finding("profile.x.1", "profile"))
    unsure = measure(finding("profile.x.1", "profile", confirmed=False))
    assert unsure.confidence < sure.confidence
    assert unsure.samples == sure.samples


def test_what_claims_nothing_has_no_confidence() -> None:
    """ "No rule knows it" is no verdict to be sure of, whichever rule said so."""
    for text in ("Something went wrong", "系统繁忙"):
        failure = classify_text(text)
        assert failure is not None
        if failure.category == "unknown":
            assert failure.confidence == 0.0
    failure = Classifier().classify(from_text("An error occurred"))
    assert failure is not None
    assert (failure.code, failure.confidence) == ("unknown.unclassified", 0.0)


def test_how_a_figure_is_made(script: dict[str, Any]) -> None:
    """A case that rules were changed for proves nothing for them; one that is wrong counts; families
    are judged at first try."""
    verdict = script["Verdict"]
    seen = [
        *(verdict("text.a", "text.token", True, None, True) for _ in range(15)),
        *(verdict("text.a", "text.token", True, False, True) for _ in range(4)),
        verdict("text.b", "text.token", False, True, True),
        verdict("text.c", "text.token", True, True, True),
        verdict("status.500", "status", True, True, True),
    ]
    import tomllib

    data = tomllib.loads(script["render"](seen))
    assert (data["rule"]["text.a"]["right"], data["rule"]["text.a"]["samples"]) == (15, 15)
    assert data["rule"]["text.b"]["right"] == 0
    group = data["family"]["text.token"]
    assert (group["right"], group["samples"]) == (2, 6)
    overall = 3 / 7
    assert group["confidence"] == pytest.approx((2 + 5 * overall) / 11, abs=0.001)
    assert data["rule"]["text.a"]["confidence"] == pytest.approx(
        (15 + 5 * group["confidence"]) / 20, abs=0.001
    )
    assert data["rule"]["text.b"]["confidence"] < data["rule"]["text.c"]["confidence"]
    assert data["unconfirmed"] == {"confidence": 0.5, "samples": 0}


def test_the_trail_tells_what_the_confidence_rests_on() -> None:
    """`details["trail"]` has the rule's own cases beside its family's."""
    failure = classify_text("connect: connection refused", trail=True)
    assert failure is not None
    told = failure.detail("trail")["measured"]
    assert (told["confidence"], told["samples"]) == (failure.confidence, failure.samples)
    assert told["basis"] == "rule"
    assert told["rule"]["samples"] == failure.samples
    assert told["family"]["name"] == "text.token"


def test_a_failure_says_why_and_who_else_spoke() -> None:
    """Without asking for a trail: the reason, and the rules that spoke, strongest first."""
    failure = classify_text(
        "HTTPSConnectionPool: Max retries exceeded (Caused by SSLError(certificate has expired))"
    )
    assert failure is not None
    assert failure.why
    assert failure.rule in {one.rule for one in failure.spoke}
    strengths = [one.strength for one in failure.spoke]
    assert strengths == sorted(strengths, reverse=True)
    again = type(failure).from_dict(failure.to_dict())
    assert (again.why, again.spoke) == (failure.why, failure.spoke)
