"""Rules of one's own: a file is checked entry by entry, its rules win, and no pattern may hang."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import failwise
from failwise.classify import Classifier
from failwise.classify.own import OwnRules, read
from failwise.classify.text import TEXT_LIMIT
from failwise.evidence import from_exception, from_text, from_value
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.linear import fault

GOOD = """\
origin = "the warehouse, as it words it"

[[rules]]
id = "warehouse.limbo"
need = ["is in limbo"]
pattern = 'widget [0-9]{1,9} is in limbo'
code = "server.unavailable"
example = "Widget 4291 is in limbo"
counter = "The dancer is in limbo"

[[rules]]
id = "warehouse.悬挂"
need = ["处于悬挂状态"]
code = "business.conflict"
effect = "rejected"
strength = 90
fix_by = "operator"
transient = false
example = "波次 7 处于悬挂状态"
counter = "悬挂系统正常"
"""
GOOD = GOOD.replace("warehouse.悬挂", "warehouse.suspended")


def written(folder: Path, text: str = GOOD, name: str = "rules.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def judged(classifier: Classifier, evidence: Any) -> Failure:
    failure = classifier.classify(evidence)
    assert failure is not None
    return failure


@pytest.fixture
def classifier(tmp_path: Path) -> Classifier:
    return Classifier(rules=OwnRules.load([written(tmp_path)]))


def test_an_own_rule_names_what_no_rule_knew(classifier: Classifier) -> None:
    """In both languages; its id begins with ``own.``, and it is not called measured."""
    failure = judged(classifier, from_exception(RuntimeError("Widget 17 is in limbo")))
    assert (failure.code, failure.rule) == ("server.unavailable", "own.warehouse.limbo")
    assert (failure.effect, failure.samples) == (Effect.UNKNOWN, 0)
    chinese = judged(classifier, from_text("错误：波次 9 处于悬挂状态"))
    assert (chinese.code, chinese.effect) == ("business.conflict", Effect.REJECTED)


def test_it_wins_over_ours(tmp_path: Path) -> None:
    """Over a text rule, over a status, over the class of an exception; a tool's own word stands."""
    text = GOOD.replace("widget [0-9]{1,9} is in limbo", "is in limbo").replace(
        "The dancer is in limbo", "The dancer does the limbo"
    )
    classifier = Classifier(rules=OwnRules.load([written(tmp_path, text)]))
    refused = from_exception(ConnectionRefusedError(111, "Connection refused: all is in limbo"))
    failure = judged(classifier, refused)
    assert failure.rule == "own.warehouse.limbo"
    assert failure.effect is Effect.NOT_SENT  # the rule is silent about it, the class is not
    said = failwise.ToolError("all is in limbo", code="business.conflict")
    assert judged(classifier, from_exception(said)).rule == "stated"


def test_a_silent_rule_makes_no_effect_safe_by_words(tmp_path: Path) -> None:
    """Where only words spoke, what they said of the effect does not outlive a rule that overrules
    them."""
    classifier = Classifier(rules=OwnRules.load([written(tmp_path)]))
    failure = judged(classifier, from_text("connection refused: widget 3 is in limbo"))
    assert failure.rule == "own.warehouse.limbo"
    assert failure.effect is Effect.UNKNOWN


def test_a_success_stays_one(classifier: Classifier) -> None:
    """What a tool returned becomes no failure by an own rule's words; what failed gets its name."""
    assert classifier.classify(from_value({"note": "Widget 4291 is in limbo"})) is None
    assert classifier.classify(from_value("A novel in which a widget 7 is in limbo.")) is None
    failed = judged(classifier, from_value({"ok": False, "error": "Widget 4291 is in limbo"}))
    assert failed.rule == "own.warehouse.limbo"


async def test_through_the_runtime(tmp_path: Path) -> None:
    """`Runtime(rules=[...])`: a read is repeated because the rule's code is transient, a write not."""
    runtime = failwise.Runtime(
        ":memory:", rules=[written(tmp_path)], policy={"server": {"base": 0}}
    )

    @runtime.tool(read_only=True)
    def look(number: int) -> str:
        raise RuntimeError(f"Widget {number} is in limbo")

    @runtime.tool()
    def move(number: int) -> str:
        raise RuntimeError(f"Widget {number} is in limbo")

    read_result = await runtime.call("look", {"number": 1})
    written_result = await runtime.call("move", {"number": 1})
    assert read_result.failure is not None
    assert read_result.failure.code == "server.unavailable"
    assert (read_result.sent > 1, written_result.sent) == (True, 1)


def test_a_bad_file_is_refused_at_once(tmp_path: Path) -> None:
    """Making the runtime says file, line and reason."""
    path = written(tmp_path, GOOD.replace("server.unavailable", "server.nope"))
    with pytest.raises(ConfigurationError, match=r"rules\.toml:3: rule 'warehouse.limbo': .*nope"):
        failwise.Runtime(":memory:", rules=[path])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('id = "warehouse.limbo"', 'id = "Ware House"', "lower-case"),
        ('id = "warehouse.limbo"', 'id = "warehouse.suspended"', "twice"),
        ("server.unavailable", "unknown.unclassified", "Failwise's own"),
        ("server.unavailable", "runtime.cancelled", "Failwise's own"),
        ('need = ["is in limbo"]', "need = []", "need"),
        ('need = ["is in limbo"]', 'need = ["Is In Limbo"]', "lower case"),
        ('need = ["is in limbo"]', 'need = ["i"]', "two characters"),
        ('need = ["is in limbo"]', 'need = "is in limbo"', "list"),
        ("[0-9]{1,9}", "[0-9]{1,9", "example"),
        ("[0-9]{1,9}", "([0-9]{1,9}", "missing"),
        ("[0-9]{1,9}", "[0-9]+", "without an end"),
        ("[0-9]{1,9}", ".*", "without an end"),
        ("[0-9]{1,9}", "([0-9]{1,9}){1,9}", "hostile"),
        ("Widget 4291 is in limbo", "Widget is fine", "does not match"),
        ("The dancer is in limbo", "widget 1 is in limbo", "narrower"),
        ("strength = 90", "strength = 900", "strength"),
        ("strength = 90", 'strength = "high"', "whole number"),
        ("strength = 90", "weight = 90", "unknown key"),
        ("transient = false", 'transient = "no"', "true or false"),
        ('effect = "rejected"', 'effect = "perhaps"', "perhaps"),
        ('fix_by = "operator"', 'fix_by = "god"', "god"),
    ],
)
def test_each_fault_is_told(tmp_path: Path, old: str, new: str, reason: str) -> None:
    """Every fault of a rule is said with its line, and the other rules are still read."""
    assert old in GOOD
    found = read(written(tmp_path, GOOD.replace(old, new, 1)), tried=True)
    assert len(found.rules) == 1
    (problem,) = found.problems
    assert reason in problem.reason
    assert problem.line in (3, 11)
    assert problem.file.endswith("rules.toml")


def test_what_is_no_rules_file(tmp_path: Path) -> None:
    """Broken TOML, other keys, a missing file, an id in two files: said with the file."""
    for text, reason in (
        ("rules = [", "not valid TOML"),
        ("policy = 1", "unknown key"),
        ("rules = 3", "tables"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            read(written(tmp_path, text))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="ids are unique"):
        OwnRules.load([written(tmp_path), written(tmp_path, name="more.toml")])


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a{0,10}){0,10}$",
        r"(?:a|a){0,40}b",
        r"(a|b|ab){0,99}c",
        r"a{0,80}a{0,80}a{0,80}b",
        r"[^\n]{0,300}[^\n]{0,300}x",
        r"(x|y{1,9}){1,40}z",
    ],
)
def test_a_pattern_that_could_hang_is_found(pattern: str) -> None:
    """Repeats within and after each other: refused, and found in a second or so."""
    began = time.process_time()
    assert fault(re.compile(pattern))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "pattern", [r"widget [0-9]{1,9} is", r"(\w{1,20} ){0,3}error", r"foo[^\n]{0,40}bar", "悬挂"]
)
def test_a_plain_pattern_is_fine(pattern: str) -> None:
    """What has an end, and cannot be read in many ways, passes."""
    assert fault(re.compile(pattern)) is None


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    """Whatever is looked at, an own rule answers or is silent; it does not raise."""
    rules = read_rules()
    found = rules.verdict(text, None)
    assert found is None or found.rule.startswith("own.")
    assert rules.verdict(f"{text[: TEXT_LIMIT - 100]}\nwidget 1 is in limbo", None) is not None


def read_rules() -> OwnRules:
    import tomllib

    from failwise.classify.own import parse

    found = parse(tomllib.loads(GOOD), GOOD, "rules.toml")
    return OwnRules(found.rules, found.silent)
