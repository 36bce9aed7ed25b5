"""What an upstream says of the parameters, and what is done about it, on all three drivers.

The answers are real 400 responses; nothing but their words names the rule that was broken.
"""

from typing import Any

import httpx
import pytest

from failwise import Action, Runtime, ToolError
from tests.machine.conftest import Open

WORDINGS = [
    "city_code must be 3 digits, got '12'",
    "city_code 应为 3 位数字，当前为 '12'",
]
SCHEMA = {
    "type": "object",
    "properties": {"city_code": {"type": "string"}, "region": {"type": "string"}},
}


def refusal(text: str) -> httpx.Response:
    request = httpx.Request("GET", "https://api.example/weather")
    return httpx.Response(400, json={"error": text}, request=request)


def fine() -> httpx.Response:
    request = httpx.Request("GET", "https://api.example/weather")
    return httpx.Response(200, json={"degrees": 21}, request=request)


class Person:
    """Whoever is asked: keeps what was shown, and answers."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.shown: list[tuple[str, str, Any, Any, str]] = []

    def __call__(self, tool: str, repairs: Any) -> Any:
        self.shown += [(tool, r.path, r.before, r.after, r.grade.value) for r in repairs]
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


SHOWN = [("weather", "/city_code", "12", "012", "guess")]


@pytest.mark.parametrize("text", WORDINGS)
def test_the_refusal_becomes_a_violation(stage: Open, text: str) -> None:
    """E10: both wordings give the same structure, and the model reads the violation."""
    it = stage(repair="off")
    weather = it.tool("weather", refusal(text), schema=SCHEMA)
    result = it.call("weather", {"city_code": "12"})
    failure = result.failure
    assert failure is not None
    assert (failure.code, failure.effect) == ("invalid_request.parameter", "rejected")
    (violation,) = failure.detail("violations")
    told = {key: violation[key] for key in ("parameter", "rule", "length", "got")}
    assert told == {"parameter": "city_code", "rule": "digits", "length": 3, "got": "12"}
    assert result.suggested_action is Action.ASK_MODEL
    assert weather.requests == 1
    assert "city_code" in result.for_model()


@pytest.mark.parametrize("text", WORDINGS)
def test_yes_sends_it_once_more(stage: Open, text: str) -> None:
    """E10: the default asks, showing ``"12" → "012"``; a yes makes one further request."""
    person = Person(True)
    it = stage(confirm=person)
    weather = it.tool("weather", refusal(text), fine(), schema=SCHEMA)
    result = it.call("weather", {"city_code": "12"})
    assert person.shown == SHOWN
    assert result.success
    assert [sent["city_code"] for sent in weather.sent] == ["12", "012"]
    assert [(r.before, r.after, r.grade.value) for r in result.repairs] == [("12", "012", "guess")]


@pytest.mark.parametrize("text", WORDINGS)
@pytest.mark.parametrize("answer", [False, None, 1, "yes", RuntimeError("gone")])
def test_anything_but_yes_is_a_no(stage: Open, text: str, answer: Any) -> None:
    """E10: a no, silence, or a callback that breaks: nothing is sent, the model gets the violation."""
    person = Person(answer)
    it = stage(confirm=person)
    weather = it.tool("weather", refusal(text), fine(), schema=SCHEMA)
    result = it.call("weather", {"city_code": "12"})
    assert person.shown == SHOWN
    assert weather.requests == 1
    assert (result.suggested_action, result.repairs) == (Action.ASK_MODEL, ())


def test_nobody_to_ask_is_a_no(stage: Open) -> None:
    """E10: without a `confirm` callback a guess is not sent."""
    it = stage()
    weather = it.tool("weather", refusal(WORDINGS[0]), fine(), schema=SCHEMA)
    result = it.call("weather", {"city_code": "12"})
    assert (weather.requests, result.suggested_action) == (1, Action.ASK_MODEL)


@pytest.mark.parametrize("text", WORDINGS)
def test_auto_sends_it_once_more_and_never_a_third_time(stage: Open, text: str) -> None:
    """E10: under ``auto`` one further request; refused again, the user is asked."""
    it = stage(repair="auto")
    cured = it.tool("cured", refusal(text), fine(), schema=SCHEMA)
    stubborn = it.tool("stubborn", refusal(text), schema=SCHEMA)
    assert it.call("cured", {"city_code": "12"}).success
    assert [sent["city_code"] for sent in cured.sent] == ["12", "012"]
    result = it.call("stubborn", {"city_code": "12"})
    assert stubborn.requests == 2
    assert result.suggested_action is Action.ASK_USER


@pytest.mark.parametrize("text", WORDINGS)
def test_a_hint_about_what_was_not_sent(stage: Open, text: str) -> None:
    """E11: the hint names `city_code`, the call sent only `region`: no fix, the model is asked."""
    person = Person(True)
    it = stage(confirm=person, repair="auto")
    weather = it.tool("weather", refusal(text), schema=SCHEMA)
    result = it.call("weather", {"region": "north"})
    assert weather.sent == [{"region": "north"}]
    assert person.shown == []
    assert (result.suggested_action, result.repairs) == (Action.ASK_MODEL, ())


def test_a_limit_is_a_guess_and_an_allowed_value_by_case_is_none(stage: Open) -> None:
    """Clamping needs a yes; an allowed value that matches by case is sent without one."""
    it = stage()
    schema = {
        "type": "object",
        "properties": {"limit": {"type": "integer"}, "speed": {"type": "string"}},
    }
    limit = it.tool("limit", refusal("limit must be between 1 and 100"), fine(), schema=schema)
    speed = it.tool("speed", refusal("speed must be one of: fast, slow"), fine(), schema=schema)
    assert not it.call("limit", {"limit": 500}).success
    assert limit.requests == 1
    assert it.call("speed", {"speed": "FAST"}).success
    assert [sent["speed"] for sent in speed.sent] == ["FAST", "fast"]


# The mode in force


def test_the_tool_says_more_than_the_runtime(stage: Open) -> None:
    """A tool's own mode wins; one that says nothing follows the runtime."""
    it = stage(repair="off")
    own = it.tool("own", refusal(WORDINGS[0]), fine(), schema=SCHEMA, repair="auto")
    following = it.tool("following", refusal(WORDINGS[0]), fine(), schema=SCHEMA)
    assert it.call("own", {"city_code": "12"}).success
    assert not it.call("following", {"city_code": "12"}).success
    assert (own.requests, following.requests) == (2, 1)


def test_development_applies_guesses(stage: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """``FAILWISE_ENV=development`` turns the default to ``auto``; what is said in code stays."""
    monkeypatch.setenv("FAILWISE_ENV", "development")
    it = stage()
    weather = it.tool("weather", refusal(WORDINGS[0]), fine(), schema=SCHEMA)
    asking = it.tool("asking", refusal(WORDINGS[0]), fine(), schema=SCHEMA, repair="confirm")
    assert it.call("weather", {"city_code": "12"}).success
    assert not it.call("asking", {"city_code": "12"}).success
    assert (weather.requests, asking.requests) == (2, 1)
    assert Runtime(":memory:", repair="confirm").repair == "confirm"


@pytest.mark.parametrize("raw", ['{"region": "n",}', '{"region": "n", "other": 1}'])
def test_off_repairs_nothing(stage: Open, raw: str) -> None:
    """``off`` hands back even what has one reading."""
    it = stage(repair="off")
    schema = {**SCHEMA, "additionalProperties": False}
    weather = it.tool("weather", fine(), schema=schema, read_only=True)
    result = it.call("weather", raw)
    assert (result.success, weather.requests) == (False, 0)
    assert result.failure is not None
    assert result.failure.category == "model_output"


# A fixer


def fixing(**options: Any) -> Any:
    """A fixer that gives what it is told to, and keeps what it was asked."""
    asked: list[Any] = []

    def fixer(tool: str, arguments: Any, failure: Any) -> Any:
        asked.append((tool, dict(arguments), failure.detail("violations")[0]["parameter"]))
        arguments["city_code"] = "changed in place"
        given = options["gives"]
        if isinstance(given, Exception):
            raise given
        return given

    fixer.asked = asked  # type: ignore[attr-defined]
    return fixer


def test_a_fixer_is_asked_where_no_fix_follows(stage: Open) -> None:
    """What it gives is sent once without further questions, and recorded as a guess."""
    fixer = fixing(gives={"region": "north", "city_code": "010"})
    it = stage(fixer=fixer)
    weather = it.tool("weather", refusal("city_code is required"), fine(), schema=SCHEMA)
    result = it.call("weather", {"region": "north"})
    assert fixer.asked == [("weather", {"region": "north"}, "city_code")]
    assert result.success
    assert weather.sent == [{"region": "north"}, {"region": "north", "city_code": "010"}]
    (repair,) = result.repairs
    assert repair.to_dict() == {
        "kind": "fixer",
        "path": "/city_code",
        "before": None,
        "after": "010",
        "grade": "guess",
    }


def test_a_fix_that_follows_comes_before_the_fixer(stage: Open) -> None:
    """The allowed value by case is sent; nobody is asked."""
    fixer = fixing(gives={"city_code": "x"})
    it = stage(fixer=fixer)
    schema = {"type": "object", "properties": {"city_code": {"type": "string"}}}
    it.tool("weather", refusal("city_code must be one of: bj, sh"), fine(), schema=schema)
    assert it.call("weather", {"city_code": "BJ"}).success
    assert fixer.asked == []


def test_a_person_comes_before_the_fixer(stage: Open) -> None:
    """A guess that a person refused is not made again by another door."""
    fixer = fixing(gives={"city_code": "010"})
    it = stage(fixer=fixer, confirm=Person(False))
    weather = it.tool("weather", refusal(WORDINGS[0]), fine(), schema=SCHEMA)
    assert not it.call("weather", {"city_code": "12"}).success
    assert (weather.requests, fixer.asked) == (1, [])


def test_the_fixer_of_the_tool_comes_first(stage: Open) -> None:
    """A tool's own fixer is asked in place of the runtime's."""
    general, own = fixing(gives=None), fixing(gives={"city_code": "010"})
    it = stage(fixer=general)
    it.tool("weather", refusal("city_code is invalid"), fine(), schema=SCHEMA, fixer=own)
    assert it.call("weather", {"city_code": "12"}).success
    assert (len(general.asked), len(own.asked)) == (0, 1)


@pytest.mark.parametrize(
    "gives",
    [
        None,
        {"city_code": 7},
        {"city_code": "12"},
        "city_code=010",
        ["city_code"],
        RuntimeError("no model today"),
    ],
)
def test_a_fixer_that_does_not_help(stage: Open, gives: Any) -> None:
    """Nothing, the same again, what does not fit the schema, or an exception: nothing is sent."""
    fixer = fixing(gives=gives)
    it = stage(fixer=fixer)
    schema = {"type": "object", "properties": {"city_code": {"type": "string", "maxLength": 4}}}
    if gives == {"city_code": 7}:
        schema["properties"]["city_code"]["pattern"] = "^[a-z1]"  # type: ignore[index]
    weather = it.tool("weather", refusal("city_code is invalid"), schema=schema)
    result = it.call("weather", {"city_code": "12"})
    assert (weather.requests, len(fixer.asked)) == (1, 1)
    assert result.suggested_action is Action.ASK_MODEL


def test_what_a_fixer_gave_is_refused_too(stage: Open) -> None:
    """Whoever corrected it: the second refusal goes to the user, and nothing is sent again."""
    fixer = fixing(gives={"city_code": "010"})
    it = stage(fixer=fixer)
    weather = it.tool("weather", refusal("city_code is invalid"), schema=SCHEMA)
    result = it.call("weather", {"city_code": "12"})
    assert (weather.requests, len(fixer.asked)) == (2, 1)
    assert result.suggested_action is Action.ASK_USER


def test_no_fixer_after_an_unknown_effect(stage: Open) -> None:
    """A write that may have happened is not sent again, however well it could be corrected."""
    fixer = fixing(gives={"city_code": "010"})
    it = stage(fixer=fixer, repair="auto")
    unsure = ToolError(
        "city_code must be 3 digits, got '12'",
        code="invalid_request.parameter",
        effect="unknown",
        details={"violations": [{"parameter": "city_code", "rule": "digits", "length": 3}]},
    )
    order = it.tool("order", unsure, fine(), schema=SCHEMA)
    assert not it.call("order", {"city_code": "12"}).success
    assert (order.requests, fixer.asked) == (1, [])


def test_off_asks_no_fixer(stage: Open) -> None:
    """``off`` holds for fixers too."""
    fixer = fixing(gives={"city_code": "010"})
    it = stage(fixer=fixer, repair="off")
    weather = it.tool("weather", refusal("city_code is invalid"), schema=SCHEMA)
    it.call("weather", {"city_code": "12"})
    assert (weather.requests, fixer.asked) == (1, [])


# Rounds of a run


def test_the_second_refusal_in_a_run_goes_to_the_user(stage: Open) -> None:
    """The model corrected it itself, and is refused again: now the user, and no repair of ours."""
    it = stage(repair="auto")
    weather = it.tool(
        "weather", refusal("city_code is invalid"), refusal(WORDINGS[0]), schema=SCHEMA
    )
    other = it.tool("other", refusal("city_code is invalid"), schema=SCHEMA)
    run = it.runtime.run("job")
    first = it.call_in(run, "weather", {"city_code": "x"}, call_id="a")
    assert first.suggested_action is Action.ASK_MODEL
    assert (
        it.call_in(run, "other", {"city_code": "x"}, call_id="b").suggested_action
        is Action.ASK_MODEL
    )
    second = it.call_in(run, "weather", {"city_code": "12"}, call_id="c")
    assert second.suggested_action is Action.ASK_USER
    assert (weather.requests, other.requests) == (2, 1)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_success_ends_the_count(stage: Open, read_only: bool) -> None:
    """Once the tool succeeded, its next refusal is a new matter, and the model's first."""
    it = stage()
    refused = refusal("city_code is invalid")
    it.tool("weather", refused, fine(), refused, refused, schema=SCHEMA, read_only=read_only)
    run = it.runtime.run("job")
    actions = [
        it.call_in(run, "weather", {"city_code": str(number)}, call_id=str(number)).suggested_action
        for number in range(4)
    ]
    assert actions == [Action.ASK_MODEL, None, Action.ASK_MODEL, Action.ASK_USER]


def test_runs_are_counted_apart(stage: Open) -> None:
    """Another run, and calls outside of any run, start anew."""
    it = stage()
    it.tool("weather", refusal("city_code is invalid"), schema=SCHEMA)
    for run in (it.runtime.run("one"), it.runtime.run("two"), None, None):
        result = it.call_in(run, "weather", {"city_code": "x"})
        assert result.suggested_action is Action.ASK_MODEL


# The corrected effect


def test_a_corrected_order_is_not_placed_twice(stage: Open) -> None:
    """What was sent corrected, and may have happened, is refused under another call id too."""
    it = stage(repair="auto")
    lost = ToolError("no answer in time", code="network.read_timeout")
    order = it.tool("order", refusal(WORDINGS[0]), lost, fine(), schema=SCHEMA)
    run = it.runtime.run("job")
    first = it.call_in(run, "order", {"city_code": "12"}, call_id="a")
    assert first.effect == "unknown"
    for number, code in enumerate(("012", "12")):
        again = it.call_in(run, "order", {"city_code": code}, call_id=f"b{number}")
        assert again.failure is not None
        assert again.failure.code == "runtime.effect_open"
    assert [sent["city_code"] for sent in order.sent] == ["12", "012"]


def test_a_corrected_order_is_replayed(stage: Open) -> None:
    """The same call again gets the stored answer; nothing is sent."""
    it = stage(repair="auto")
    order = it.tool("order", refusal(WORDINGS[0]), fine(), schema=SCHEMA)
    for _ in range(2):
        result = it.call_in(it.runtime.run("job"), "order", {"city_code": "12"}, call_id="a")
        assert result.success
        it.runtime.flush()
    assert order.requests == 2


def test_a_correction_is_not_sent_where_the_same_is_open(stage: Open) -> None:
    """An earlier order of these very arguments may have happened: the correction stops there."""
    it = stage(repair="auto")
    lost = ToolError("no answer in time", code="network.read_timeout")
    order = it.tool("order", lost, refusal(WORDINGS[0]), fine(), schema=SCHEMA)
    run = it.runtime.run("job")
    assert it.call_in(run, "order", {"city_code": "012"}, call_id="a").effect == "unknown"
    second = it.call_in(run, "order", {"city_code": "12"}, call_id="b")
    assert second.failure is not None
    assert second.failure.code == "runtime.effect_open"
    assert [sent["city_code"] for sent in order.sent] == ["012", "12"]
