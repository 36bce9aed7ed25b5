"""Values that the schema refuses: repaired where one reading is left, else told."""

import re
from typing import Any

import pytest

from failwise.arguments import ArgumentReader, fix_from_violations, unknown_tool
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.kinds import Grade


def field(schema: dict[str, Any], *, required: bool = True, **more: Any) -> dict[str, Any]:
    """A schema with one parameter ``v``."""
    names = ["v"] if required else []
    return {"type": "object", "properties": {"v": schema}, "required": names, **more}


DATE = {"type": "string", "format": "date"}
MOMENT = {"type": "string", "format": "date-time"}
INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
SPEED = {"enum": ["fast", "slow lane"]}

MENDED = [
    (INTEGER, "5", 5),
    (INTEGER, "5.0", 5),
    (NUMBER, "1e3", 1000),
    (NUMBER, "-2.5", -2.5),
    ({"type": "boolean"}, "True", True),
    (TEXT, 9007199254740993, "9007199254740993"),
    (TEXTS, "python", ["python"]),
    (TEXTS, "['a', 'b']", ["a", "b"]),
    (TEXT, ["a"], "a"),
    (SPEED, "FAST", "fast"),
    (SPEED, "Slow-Lane", "slow lane"),
    (DATE, "2024-1-1", "2024-01-01"),
    (DATE, "2024/01/01", "2024-01-01"),
    (DATE, "2024年1月1日", "2024-01-01"),
    (DATE, "20240131", "2024-01-31"),
    (MOMENT, "2024-1-2 9:05:00+0800", "2024-01-02T09:05:00+08:00"),
    ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "2024.3.7", "2024-03-07"),
    ({"type": "object", "properties": {"n": INTEGER}}, '{"n": "3"}', {"n": 3}),
    ({"anyOf": [INTEGER, {"type": "null"}]}, "3", 3),
    ({"oneOf": [{"type": "array", "items": INTEGER}, {"type": "null"}]}, "[1, 2]", [1, 2]),
    ({"type": "array", "items": INTEGER}, ["1", 2], [1, 2]),
]

REFUSED = [
    (INTEGER, "3.7"),
    (NUMBER, "1,500"),
    (NUMBER, "about 20"),
    (NUMBER, "007"),
    (NUMBER, "0.12345678901234567890123"),
    ({"type": "boolean"}, "yes"),
    (TEXTS, "a,b"),
    (TEXT, ["a", "b"]),
    ({"enum": ["Fast", "fast"]}, "FAST"),
    ({"enum": ["A-", "B"]}, "a"),
    (SPEED, "quick"),
    (DATE, "01/02/2024"),
    (DATE, "2024-02-30"),
    (DATE, "today"),
    (DATE, "12011130"),
    (MOMENT, "2024-01-02 09:05"),
    ({"type": "string", "pattern": "^[0-9]{3}$"}, "12"),
    ({"type": "array", "items": {"type": "object"}}, ["web"]),
    (TEXT, None),
    ({"anyOf": [{"enum": ["ab"]}, {"enum": ["AB"]}]}, "Ab"),
]

KEPT = [
    (TEXT, "2024-1-1"),
    (TEXT, "[1, 2]"),
    (TEXT, ""),
    (TEXT, "null"),
    ({}, '["u1"]'),
    ({"type": ["string", "null"]}, None),
    ({"type": ["string", "integer"]}, "5"),
]


@pytest.mark.parametrize(("schema", "sent", "due"), MENDED)
def test_one_reading_is_taken_and_recorded(schema: dict[str, Any], sent: Any, due: Any) -> None:
    """The schema demands the form, and leaves one: path, before, after and grade are recorded."""
    reading = ArgumentReader(field(schema)).read({"v": sent})
    assert reading.arguments == {"v": due}
    assert reading.repairs
    assert all(repair.grade is Grade.UNIQUE for repair in reading.repairs)
    assert all(repair.path.startswith("/v") for repair in reading.repairs)


@pytest.mark.parametrize(("schema", "sent"), REFUSED)
def test_two_readings_are_refused_with_what_was_due(schema: dict[str, Any], sent: Any) -> None:
    """The violation names path, rule, what was due and what came, in both languages."""
    failure = ArgumentReader(field(schema)).read({"v": sent}).failure
    assert failure is not None
    assert failure.code == "model_output.schema_violation"
    violation = failure.detail("violations")[0]
    assert violation["path"].startswith("/v")
    assert violation["parameter"].startswith("v")
    assert violation["rule"]
    assert violation["text"]["en"].startswith("must ")
    assert re.search("应|须|只能", violation["text"]["zh"])
    assert failure.message.startswith("v")


@pytest.mark.parametrize(("schema", "sent"), KEPT)
def test_what_the_schema_allows_stays(schema: dict[str, Any], sent: Any) -> None:
    """A value that fits is never touched, however much it looks like something else."""
    reading = ArgumentReader(field(schema)).read({"v": sent})
    assert reading.arguments == {"v": sent}
    assert reading.repairs == ()


@pytest.mark.parametrize("sent", [None, "", "null", "None"])
def test_not_given_under_an_optional_parameter_is_absent(sent: Any) -> None:
    """null and its spellings go where the schema refuses them and the parameter is optional."""
    reading = ArgumentReader(field(INTEGER, required=False)).read({"v": sent})
    assert reading.arguments == {}
    assert [(repair.kind, repair.path) for repair in reading.repairs] == [("absent", "/v")]


def test_keys_are_read_by_case_and_separator() -> None:
    """A required key in another spelling gets its name; two candidates are refused."""
    schema = {"type": "object", "properties": {"user_id": TEXT}, "required": ["user_id"]}
    assert ArgumentReader(schema).read({"userId": "7"}).arguments == {"user_id": "7"}
    assert ArgumentReader(schema).read({"userId": "7", "UserID": "8"}).arguments is None


def test_unknown_keys_go_where_the_schema_forbids_them() -> None:
    """Under ``additionalProperties: false`` they are dropped; were all unknown, it is another call."""
    reader = ArgumentReader(field(TEXT, required=False, additionalProperties=False))
    reading = reader.read({"v": "x", "w": 1})
    assert reading.arguments == {"v": "x"}
    assert [(repair.kind, repair.path) for repair in reading.repairs] == [("unknown_key", "/w")]
    assert reader.read({"query": "x"}).arguments is None


def test_a_float_as_text_is_written_as_it_was() -> None:
    """1.10 is a version, not 1.1."""
    assert ArgumentReader(field(TEXT)).read('{"v": 1.10}').arguments == {"v": "1.10"}


def test_references_and_drafts() -> None:
    """Local definitions are followed, in 2020-12 and in draft 7; nothing is fetched."""
    for keyword in ("$defs", "definitions"):
        schema = field(
            {"anyOf": [{"$ref": f"#/{keyword}/stop"}, {"type": "null"}]},
            **{keyword: {"stop": {"type": "object", "properties": {"day": DATE}}}},
        )
        read = ArgumentReader(schema).read('{"v": {"day": "2024-1-1"}}')
        assert read.arguments == {"v": {"day": "2024-01-01"}}
        assert [repair.path for repair in read.repairs] == ["/v/day"]
    pair = field({"type": "array", "items": [INTEGER, TEXT]})
    assert ArgumentReader(pair).read({"v": ["1", "a"]}).arguments == {"v": [1, "a"]}
    with pytest.raises(UsageError, match="schema"):
        ArgumentReader({"$ref": "https://schemas.example/a.json"}).read("{}")
    with pytest.raises(UsageError, match="schema"):
        ArgumentReader({"type": "dict"}).read("{}")


def test_all_errors_are_told_at_once() -> None:
    """Every violation is named, so that the model can correct all in one go."""
    schema = {
        "type": "object",
        "properties": {"a": INTEGER, "b": {"type": "array", "items": {"enum": ["x", "y"]}}},
        "required": ["a", "c"],
    }
    failure = ArgumentReader(schema).read({"a": "many", "b": ["x", "q"]}).failure
    assert failure is not None
    found = {(entry["path"], entry["rule"]) for entry in failure.detail("violations")}
    assert found == {("/a", "type"), ("/b/1", "enum"), ("/c", "required")}
    assert 'b[1] must be one of "x", "y", got "q"' in failure.message
    assert "c 为必填参数，但缺失" in failure.detail("text")["zh"]


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    """All up to 20, nearest first, else the nearest and the number; nothing is redirected."""
    failure = unknown_tool("get_wether", ["send_mail", "get_weather"])
    assert failure.code == "model_output.unknown_tool"
    assert failure.detail("tools") == ["get_weather", "send_mail"]
    assert failure.detail("nearest") == ["get_weather"]
    assert "get_weather" in failure.detail("text")["zh"]
    many = unknown_tool("tool_7x", [f"tool_{number}" for number in range(30)])
    assert len(many.detail("tools")) == 5
    assert many.detail("count") == 30


def test_an_unknown_tool_is_told_of_those_that_take_such_arguments() -> None:
    """What the model sent fits one tool exactly: it is named first, whatever the model called it."""
    schemas = {
        "send_mail": field(TEXT, to=TEXT, body=TEXT),
        "get_forecast": {
            "type": "object",
            "properties": {"cityName": TEXT, "days": INTEGER},
            "required": ["cityName"],
        },
        "weather_alerts": {"type": "object", "properties": {"region": TEXT}},
    }
    failure = unknown_tool("lookup", schemas, {"city_name": "Berlin", "days": 2})
    assert failure.detail("nearest") == ["get_forecast"]
    assert failure.detail("tools")[0] == "get_forecast"
    assert unknown_tool("lookup", schemas, {"other": 1}).detail("nearest") == []
    assert unknown_tool("lookup", schemas, {}).detail("nearest") == []
    by_name = unknown_tool("weather_alert", schemas, {"city": "Berlin"})
    assert by_name.detail("nearest") == ["weather_alerts"]


FORMATS = {
    "date": ("2024-01-31", "2024-02-30"),
    "time": ("09:30:00Z", "9:75"),
    "date-time": ("2024-01-31T09:30:00Z", "2024-01-31 25:00"),
    "duration": ("P1DT2H", "one day"),
    "email": ("a@b.example", "a b"),
    "hostname": ("a.example", "-a-."),
    "ipv4": ("192.0.2.1", "192.0.2"),
    "ipv6": ("2001:db8::1", "192.0.2.1"),
    "uri": ("https://a.example/x", "no uri"),
    "uri-reference": ("/x", "http://["),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123"),
    "json-pointer": ("/a", "a"),
    "regex": ("^a$", "("),
}
DRAFTS = {
    "none": {},
    "2020-12": {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    "7": {"$schema": "http://json-schema.org/draft-07/schema#"},
}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_checked(name: str, draft: str) -> None:
    """Every format that APIs use is checked in both drafts, and told in both languages."""
    good, bad = FORMATS[name]
    reader = ArgumentReader(field({"type": "string", "format": name}, **DRAFTS[draft]))
    assert reader.read({"v": good}).arguments == {"v": good}
    failure = reader.read({"v": bad}).failure
    assert failure is not None
    (violation,) = failure.detail("violations")
    assert (violation["rule"], violation["format"], violation["got"]) == ("format", name, bad)
    assert set(violation["text"]) == {"en", "zh"}


BROKEN_RULES: dict[str, tuple[Any, Any]] = {
    "type": (INTEGER, "many"),
    "enum": ({"enum": ["x", "y"]}, "z"),
    "const": ({"const": "x"}, "z"),
    "pattern": ({"type": "string", "pattern": "^a"}, "b"),
    "minimum": ({"minimum": 5}, 4),
    "maximum": ({"maximum": 5}, 6),
    "exclusive_minimum": ({"exclusiveMinimum": 5}, 5),
    "exclusive_maximum": ({"exclusiveMaximum": 5}, 5),
    "multiple_of": ({"type": "integer", "multipleOf": 5}, 3),
    "min_length": ({"minLength": 3}, "ab"),
    "max_length": ({"maxLength": 1}, "ab"),
    "min_items": ({"type": "array", "minItems": 2}, [1]),
    "max_items": ({"type": "array", "maxItems": 1}, [1, 2]),
    "unique_items": ({"type": "array", "uniqueItems": True}, [1, 1]),
    "min_properties": ({"type": "object", "minProperties": 2}, {"a": 1}),
    "max_properties": ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}),
    "one_of": ({"oneOf": [{"minimum": 1}, {"maximum": 10}]}, 5),
    "any_of": ({"anyOf": [INTEGER, {"type": "boolean"}]}, "many"),
    "not": ({"not": TEXT}, "a"),
    "contains": ({"type": "array", "contains": INTEGER}, ["a"]),
    "property_names": ({"type": "object", "propertyNames": {"pattern": "^a"}}, {"b": 1}),
    "forbidden": (False, 1),
    "extra_items": (
        {"type": "array", "prefixItems": [{}], "unevaluatedItems": False},
        [1, 2],
    ),
    "required": ({"type": "object", "dependentRequired": {"a": ["b"]}}, {"a": 1}),
}


@pytest.mark.parametrize("rule", BROKEN_RULES)
def test_every_rule_has_its_words(rule: str) -> None:
    """Each kind of rule says in both languages what was due, in words of its own."""
    schema, sent = BROKEN_RULES[rule]
    failure = ArgumentReader(field(schema)).read({"v": sent}).failure
    assert failure is not None
    (violation,) = failure.detail("violations")
    assert violation["rule"] == rule
    assert violation["path"].startswith("/v")
    for language in ("en", "zh"):
        text = failure.detail("text")[language]
        assert text.startswith("v")
        assert "schema" not in text
        assert "{" not in text.replace('{"', "")


class TestFixes:
    """A refusal of the upstream that names a parameter: one fix, or none."""

    def fix(
        self, arguments: dict[str, Any], **violation: Any
    ) -> tuple[dict[str, Any], Grade] | None:
        schema = {"type": "object", "required": ["region"]}
        fixed = fix_from_violations(schema, {"region": "cn", **arguments}, [violation])
        if fixed is None:
            return None
        changed, (repair,) = fixed
        return changed, repair.grade

    def test_padding_fits_and_is_a_guess(self) -> None:
        """``city_code`` of three digits: "12" becomes "012", for the caller to confirm."""
        fixed = self.fix(
            {"city_code": "12"}, parameter="city_code", rule="digits", length=3, got="12"
        )
        assert fixed == ({"region": "cn", "city_code": "012"}, Grade.GUESS)

    def test_a_parameter_that_was_not_sent_is_not_fixed(self) -> None:
        """The hint names `city_code`, the call sent only `region`."""
        assert self.fix({}, parameter="city_code", rule="digits", length=3, got="12") is None

    def test_deterministic_fixes(self) -> None:
        """An allowed value by case, a date's form, a type, an optional unknown parameter."""
        assert self.fix({"m": "FAST"}, parameter="m", rule="enum", allowed=["fast", "slow"]) == (
            {"region": "cn", "m": "fast"},
            Grade.UNIQUE,
        )
        assert self.fix({"d": "2024/1/2"}, parameter="body.d", rule="format", format="date") == (
            {"region": "cn", "d": "2024-01-02"},
            Grade.UNIQUE,
        )
        assert self.fix({"n": "5"}, parameter="n", rule="type", type="integer") == (
            {"region": "cn", "n": 5},
            Grade.UNIQUE,
        )

    def test_leaving_out_is_a_guess(self) -> None:
        """Without ``dry_run`` the same call would do something else."""
        assert self.fix({"z": 1}, parameter="z", rule="unknown") == ({"region": "cn"}, Grade.GUESS)

    def test_what_leaves_a_choice_is_not_fixed(self) -> None:
        """No match, a required parameter to drop, other text than was sent: none."""
        assert self.fix({"m": "quick"}, parameter="m", rule="enum", allowed=["fast"]) is None
        assert self.fix({}, parameter="region", rule="unknown") is None
        assert self.fix({"c": "99"}, parameter="c", rule="digits", length=3, got="12") is None
        assert self.fix({"c": "ab"}, parameter="c", rule="digits", length=3) is None
