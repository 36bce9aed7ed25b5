"""What annotations declare, what of an answer is evidence, and results for clients."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import failwise
from failwise.connect import mcp_results
from failwise.tools.declarations import checked
from failwise.vocabulary.spec import ToolSpec

HINTS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from([None, True, False]) for name in ("read_only_hint", "idempotent_hint", "destructive_hint")}
)  # fmt: skip


@given(HINTS, st.booleans())
def test_annotations_never_contradict_and_widen_only_where_trusted(
    hints: dict[str, bool | None], trusted: bool
) -> None:
    """Whatever a server says, the declarations hold together; of an untrusted one, none allows a repeat."""
    said = mcp_results.declared(SimpleNamespace(**hints), trusted=trusted)
    checked(ToolSpec("tool", call=lambda arguments, context: None, **said))  # type: ignore[arg-type]
    if not trusted:
        assert said.get("read_only") is not True
        assert said.get("idempotent") is not True
        assert said.get("destructive") is not False
    elif hints.get("read_only_hint") is not None:
        assert said["read_only"] is hints["read_only_hint"]


def test_both_spellings_of_the_sdks_are_read() -> None:
    """mcp 1 and 2 spell their fields differently; an object without annotations declares nothing."""
    assert mcp_results.declared(SimpleNamespace(readOnlyHint=True), trusted=True) == {
        "read_only": True
    }
    assert mcp_results.declared(None, trusted=True) == {}


@given(st.text(max_size=300))
def test_any_name_is_one_a_runtime_can_have(name: str) -> None:
    """MCP's names may hold what a runtime's may not."""
    checked(ToolSpec(mcp_results.tool_name(name), call=lambda arguments, context: None))


@pytest.mark.parametrize(
    ("texts", "structured", "expected"),
    [
        (["found"], None, "found"),
        (['{"ok": false}'], None, {"ok": False}),
        (["{not json"], None, "{not json"),
        (["a", "b"], None, ["a", "b"]),
        ([], None, None),
        (["2"], {"result": 2}, 2),
        (["x"], {"result": 2, "more": 1}, {"result": 2, "more": 1}),
    ],
)
def test_evidence_is_the_data_of_an_answer(
    texts: list[str], structured: Any, expected: Any
) -> None:
    """Structured content, else the text, as data where it is JSON."""
    content = [SimpleNamespace(text=text) for text in texts]
    assert mcp_results.evidence(content, structured, False) == expected


def test_an_answer_that_says_it_failed_stays_one() -> None:
    """The flag is kept beside the text; a picture alone is no evidence."""
    failed = mcp_results.evidence([SimpleNamespace(text="boom")], None, True)
    assert failed["isError"] is True
    assert failed["content"] == [{"type": "text", "text": "boom"}]
    assert mcp_results.evidence([SimpleNamespace(data="cG5n")], None, False) is None


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"n": 1}, None, (None, True)),
        ({"n": 1}, {"type": "object", "required": ["n"]}, ({"n": 1}, True)),
        (3, {"type": "object", "required": ["result"]}, ({"result": 3}, True)),
        ("old", {"type": "object", "required": ["n"]}, (None, False)),
        ({"n": 1}, {"$ref": "#/nowhere"}, (None, False)),
    ],
)
def test_a_value_from_elsewhere_keeps_the_output_schemas_promise_or_says_that_it_does_not(
    value: Any, schema: Any, expected: Any
) -> None:
    """What a fallback gave is structured content only where it fits."""
    assert mcp_results.structured_for(value, schema) == expected


def test_a_record_is_plain_data_without_the_value() -> None:
    """It goes into `_meta`: JSON, no value, no raw answer, attempts in short."""
    with failwise.Runtime(":memory:") as rt:

        @rt.tool
        def order(sku: str) -> None:
            raise ConnectionResetError("reset by peer")

        record = mcp_results.record(rt.call_sync("order", {"sku": "A-1"}))
    assert json.loads(json.dumps(record)) == record
    assert "value" not in record
    assert record["error_code"] == "network.connection_reset"
    assert record["attempts"][0]["effect"] == "unknown"


def test_what_passes_comes_out_as_it_went_in() -> None:
    """A signal of the framework's is raised again, a value given."""
    error = ValueError("a signal")
    with pytest.raises(ValueError, match="a signal") as raised:
        mcp_results.Passed(error=error).out()
    assert raised.value is error
    assert mcp_results.Passed(value=3).out() == 3
