"""The first stage for log lines: it may only pass over what the whole classification finds fine."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.classify import classify_text
from failwise.classify.folding import fold
from failwise.classify.gate import _is_record, plainly_fine
from failwise.classify.shapes import recognise
from failwise.classify.signs import WORDS
from failwise.classify.tables import stem_rules, text_rules
from failwise.classify.text import match
from failwise.profiles.document import Document
from failwise.profiles.library import Profiles

_LINES = [
    row["input"]["text"]
    for row in map(
        json.loads, Path(__file__).with_name("heldout.jsonl").read_text("utf-8").splitlines()
    )
    if "text" in row["input"]
]
_WORDS = st.sampled_from(
    [word for line in _LINES for word in line.split()][:2_000]
    + [literal for rule in text_rules() for literal in rule.need]
)


def test_no_failure_is_passed_over() -> None:
    """Every line that the gate lets go is a success for the whole classification."""
    examples = [text for rule in text_rules() for text in (rule.example, rule.counter)]
    passed = [text for text in (*_LINES, *examples) if plainly_fine(text)]
    assert [text for text in passed if classify_text(text) is not None] == []


@given(st.lists(_WORDS, max_size=6))
def test_no_mixture_is_passed_over(words: list[str]) -> None:
    """Neither is a line put together from words of failures."""
    text = " ".join(words)
    if plainly_fine(text):
        assert classify_text(text) is None


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 12:00:01,123 INFO orders.api GET /v1/orders/8812 200 12ms user=41",
        '10.0.0.7 - - [30/Nov/2026:12:00:01 +0000] "GET /items HTTP/1.1" 200 512 "-" "agent/8"',
        "[worker-3] processed batch 17 in 231 ms (1000 rows)",
        "订单 8812 已创建, 用户 41",
        '{"ts":"2026-11-30T12:00:01Z","level":"info","logger":"cart","event":"stored","took_ms":41,"user":7}',
        'cart.INFO: user 41 viewed {"item":8812,"page":3} []',
        "2026-11-30 12:00:01 INFO pool: size=8 idle=2 timeout=30s errors=0 0 errors",
        "upload 5f1c0a2e-412a-4c3d-9b1a-0c6f5d2e8a71 stored",
    ],
)
def test_ordinary_lines_go_no_further(line: str) -> None:
    """What logs mostly hold meets the first stage only."""
    assert plainly_fine(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"ok": false, "note": "nope"}',
        'answer: {"success": false, "data": null}',
        '{"errcode": 40013, "errmsg": "nope"}',
        'sent {"status": 503, "headers": {"server": "x"}}',
        '{"Response": {"Error": {"Code": "Nope", "Message": "m"}}}',
    ],
)
def test_objects_that_look_like_answers_go_on(line: str) -> None:
    """Whatever has the shape of an error, or of a provider's answer, is judged in full."""
    assert not plainly_fine(line)


def test_what_was_not_asked_for_is_told() -> None:
    """The strongest rule decides, and the others, tried only when they are read, are all there."""
    text = "ERROR upstream answered 503 Service Unavailable: connection refused, certificate has expired"
    failure = classify_text(text)
    assert failure is not None
    spoke = [one.rule for one in failure.spoke if one.rule.startswith("text.")]
    said = sorted(match(text), key=lambda finding: finding.order, reverse=True)
    assert spoke == [finding.rule for finding in said if finding.rule in spoke]
    assert len(spoke) >= 3


def test_what_a_runner_puts_before_a_line_hides_nothing() -> None:
    """The name of a container before each line is taken off here as it is later."""
    passed = [text for line in _LINES if plainly_fine(text := f"web-1  | {line}")]
    assert [text for text in passed if classify_text(text) is not None] == []
    assert plainly_fine("web-1  | 2026-11-30 12:00:01 INFO pool: size=8 idle=2")


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 600),
    st.sampled_from(["", "ok", "error", "failed", "false", "info", "500", "not found", "{}"]),
    st.text(max_size=8),
)
_FIELDS = st.one_of(
    st.sampled_from(
        [
            "ts",
            "time",
            "timestamp",
            "level",
            "severity",
            "logger",
            "caller",
            "msg",
            "message",
            "trace_id",
            "requestId",
            "event",
            "user",
            "took_ms",
            "size",
            "job",
            "attempt",
            "thread",
            "pid",
            "host",
            "path",
            "method",
            "component",
            "version",
            "env",
            "x_status",
            "code",
            "status",
            "error",
            "success",
        ]
    ),
    st.text("abc_S", min_size=1, max_size=6),
)


@settings(max_examples=400)
@given(st.dictionaries(_FIELDS, _SCALARS, min_size=1, max_size=9))
def test_a_record_at_a_glance_has_no_shape_of_an_answer(body: dict[str, object]) -> None:
    """What is taken for a record of a log by its fields alone, no shape and no profile knows."""
    if _is_record(body):
        assert recognise(body, None) is None
        assert not Profiles.default().hits(Document(body=body))


_ANNOUNCING = (
    "ERR: {}", "err! {}", "fatal: {}", "[x] error: {}", "Unable to {}", "can't {}", "{}, try again later", "Sorry, we couldn't {}",
    "操作未完成 {}", "接口受限 {}", "{} 请稍后重试", "未能{}", "无法{}", "报错: {}", "エラー: {}", "{}に失敗しました", "오류: {}", "{} 실패했습니다",
    "no se pudo {}", "no puede {}", "fallo en {}", "erro ao {}", "não foi possível {}", "impossibile {}", "non è possibile {}",
    "impossible de {}", "échec de {}", "erreur de {}", "Fehler beim {}", "Es konnte nicht {}", "не удалось {}", "ошибка при {}",
    "{}, inténtelo de nuevo", "{}, tente novamente", "{}, versuchen Sie es erneut", "{}, попробуйте позже", "{}, réessayez", "{}, riprova",
)  # fmt: skip


@pytest.mark.parametrize("form", _ANNOUNCING)
def test_sentences_that_announce_a_failure_go_on(form: str) -> None:
    """In every language: with any words of the last resort behind them, and with none."""
    texts = [form.format(words) for rule in stem_rules() for words in (rule.example, *rule.need)]
    passed = [text for text in (*texts, form.format("x")) if plainly_fine(text)]
    assert [text for text in passed if classify_text(text) is not None] == []


def test_the_words_are_in_one_spelling() -> None:
    """Texts are searched in one spelling: a word in another is never found."""
    assert {word for word in WORDS if fold(word.lower()) != word} == set()
