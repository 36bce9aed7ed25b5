"""`Scan`: finds what looking for each literal alone finds, whatever text came before."""

from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.classify.folding import fold
from failwise.classify.scan import Scan
from failwise.classify.text import matcher

LITERALS = (
    "timed out", "timeout", "time", "refused", "rate limit", "x-rate", "eof", "id", "错误", "请求过于频繁",
    "频", "ошибка", "no", "héberge", "dead", "beef", "abcdefabcdef", "(oom)", "k",
)  # fmt: skip
PIECES = st.sampled_from(
    (*LITERALS, "timed", "out", " ", "timeouts", "a", "deadbeef", "请", "\x00", "\ud800", "é", "\n")
)


@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=6))
def test_finds_what_stands_in_the_text(texts: list[str]) -> None:
    """One scan over several texts: each has exactly the literals that it holds."""
    scan = Scan(LITERALS)
    for text in texts:
        assert set(scan.found(text)) == {literal for literal in LITERALS if literal in text}


@settings(deadline=None)  # the first one reads the rules
@given(st.text(max_size=200))
def test_any_text_can_be_scanned(text: str) -> None:
    """Lower-casing may lengthen a text or bring forth ASCII letters: nothing is missed."""
    lowered, found = matcher().found(text)
    assert lowered == fold(text.lower())
    assert all(literal in lowered for literal in found)


def test_words_are_forgotten_in_time() -> None:
    """Ever new words: what is remembered has a bound, and nothing is missed after it was passed."""
    scan = Scan(LITERALS)
    letters = "ghijklmnop"
    for number in range(45_000):
        word = "".join(letters[int(digit)] for digit in str(number))
        scan.found(f"words {word}q")
    assert len(scan._harmless) <= 20_000
    assert set(scan.found("it timed out")) == {"timed out", "time"}


@given(st.lists(st.sampled_from((*LITERALS, "time", "out", " ", "no", "-", "id")), max_size=8))
def test_a_literal_of_several_words_waits_for_one_at_its_edge(pieces: list[str]) -> None:
    """Words that run on behind or before a literal's own: it is found where it stands, only there."""
    literals = ("time out", "no-id", "an id", "out", "x time", "9id")
    text = "".join(pieces)
    assert set(Scan(literals).found(text)) == {one for one in literals if one in text}
