"""Drafts of rules: each complete one is a valid rule that matches what it was made from, and no effect
becomes safe by it."""

import re
import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.classify.own import OwnRules, parse
from failwise.classify.suggestions import Cluster, render, suggest

LIMBO = Cluster(
    "718925bd7053d6f4",
    (
        "Widget 4291 at depot 'north-3' is in limbo (code LX-99)",
        "Widget 17 at depot 'south' is in limbo (code LX-12)",
    ),
    ("RuntimeError: Widget 4291 at depot 'north-3' is in limbo (code LX-99)",),
    ("move_widget",),
    count=17,
    last=1.8e9,
    code="server.unavailable",
    advisor="ask_model",
)


def rules_of(text: str) -> OwnRules:
    found = parse(tomllib.loads(text), text, "draft", tried=True)
    assert not found.problems
    return OwnRules(found.rules, found.silent)


def test_a_draft_knows_the_next_one() -> None:
    """It matches values it has not seen, whole lines only, and says nothing of the effect."""
    (found,) = suggest([LIMBO])
    assert found.complete
    assert "effect" not in tomllib.loads(found.toml)["rules"][0]
    assert "seen 17 times" in found.toml
    rules = rules_of(found.toml)
    told = rules.verdict("ValueError: Widget 3 at depot 'east-9' is in limbo (code LX-7)", None)
    assert told is not None
    assert told.code == "server.unavailable"
    assert (
        rules.verdict("Nobody knows whether it is in limbo (code LX-7), says a page", None) is None
    )


def test_chinese() -> None:
    """The same in Chinese, where words have no spaces between them."""
    cluster = Cluster("a" * 16, ("仓库 17 的波次处于悬挂状态",), code="business.conflict")
    (found,) = suggest([cluster])
    assert found.complete
    assert rules_of(found.toml).verdict("错误：仓库 203 的波次处于悬挂状态。", None) is not None


def test_without_a_code_it_stays_in_comments() -> None:
    """A cluster that no advisor named is no rule until a person says which code it is."""
    cluster = Cluster("b" * 16, ("Something went wrong",), tools=("order",), count=9)
    (found,) = suggest([cluster])
    assert not found.complete
    assert tomllib.loads(found.toml) == {}
    bare = re.sub(r"^# (?=\[\[|\w+ = )", "", found.toml, flags=re.MULTILINE)
    rules_of(bare.replace('code = ""', 'code = "server.internal"'))


def test_too_little_text_is_said() -> None:
    """A message that is hardly anything makes no rule."""
    (found,) = suggest([Cluster("c" * 16, ("42",), code="server.internal")])
    assert not found.complete
    assert "too little text" in found.reason


def test_the_counter_example_is_the_likest_other_failure() -> None:
    """What a neighbour says must not match; where nothing is alike, a text is made."""
    (found,) = suggest([LIMBO], ["Widget 4291 at depot 'north-3' is in transit (code LX-99)"])
    assert tomllib.loads(found.toml)["rules"][0]["counter"].endswith("is in transit (code LX-99)")


def test_ids_are_unique_and_the_file_is_whole() -> None:
    """Two clusters of like words get two ids; the named ones stand first; the file is valid."""
    other = Cluster("d" * 16, LIMBO.messages, tools=("move_widget",), count=90)
    alike = Cluster("e" * 16, LIMBO.messages, tools=("move_widget",), code="business.conflict")
    text = render(suggest([other, alike, LIMBO]), "today")
    names = [row["id"] for row in tomllib.loads(text)["rules"]]
    assert len(names) == len(set(names)) == 2
    assert text.index(LIMBO.fingerprint) < text.index(other.fingerprint)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(max_size=200), min_size=1, max_size=3),
    st.sampled_from([None, "server.internal"]),
)
def test_whatever_was_said(messages: list[str], code: str | None) -> None:
    """Any messages give valid TOML; a complete draft passes the check and matches all of them."""
    found = suggest([Cluster("f" * 16, tuple(messages), code=code)])
    tomllib.loads(render(found, "today"))
    if found[0].complete:
        rules = rules_of(found[0].toml)
        for message in messages:
            assert not message or rules.verdict(message, None) is not None
