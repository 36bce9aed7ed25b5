"""Forms of texts as data: each is that of its example, and costs little on texts that nearly have it."""

import time
from pathlib import Path

import pytest

from failwise import ConfigurationError
from failwise.classify import forms
from failwise.classify.calm import is_calm, is_mended, is_step, without_denials
from failwise.classify.folding import fold
from failwise.classify.forms import Form
from failwise.classify.outputs import fails, reports_tests
from failwise.classify.prose import explains
from failwise.classify.texts import announces_failure, has_failing_form, speaks_of_trouble
from failwise.vocabulary import documents

FILES = (
    "outputs.toml",
    "refusals.toml",
    "refusals_chinese.toml",
    "announcements.toml",
    "calm.toml",
    "prose.toml",
)
ALL = [(file, form) for file in FILES for form in forms.read(file)[1]]
SEARCHED = {
    "later",
    "trouble",
    "reports",
    "mended",
    "mended_chinese",
    "mended_localised",
    "worse",
    "denials",
}
WHOLE = {"lines", "tails"}
ASKED = {"heads", "lines", "starts"}

each_form = pytest.mark.parametrize(
    ("file", "form"), ALL, ids=[f"{form.place}.{form.id}" for _, form in ALL]
)


@each_form
def test_example_has_the_form_and_counter_example_has_not(file: str, form: Form) -> None:
    """Each form is that of its example, and not that of its counter-example."""
    pattern = forms.read(file)[0][form.place].compiled([form.pattern])
    if form.place in SEARCHED:
        asked = pattern.search
    else:
        asked = pattern.fullmatch if form.place in WHOLE else pattern.match
    seen = fold if file == "announcements.toml" else str
    assert asked(seen(form.example))
    assert not asked(seen(form.counter))


@each_form
def test_hostile_texts_take_bounded_time(file: str, form: Form) -> None:
    """Near misses of each form, as long as they are looked at, cost little."""
    words = form.example[:-1].split() or ["a"]
    for text in (
        " ".join(words * 40)[:600],
        "a " * 300,
        "a-b.c " * 100,
        "\n".join([form.example[:-1]] * 30),
        "'" * 600,
        form.example[:-1] * (400 // len(form.example)),
        "x" * 6_000 + "\n" + form.example[:-1],
    ):
        begun = time.process_time()
        for asked in (
            fails, reports_tests, explains, announces_failure, has_failing_form, speaks_of_trouble,
            is_calm, is_mended, is_step, without_denials,
        ):  # fmt: skip
            asked(text)
        assert time.process_time() - begun < 0.3, text[:80]


def test_forms_that_wait_for_words_name_some() -> None:
    """A form in a place that is looked up by words, and without any, would never be found."""
    assert [form.id for _, form in ALL if form.place in ASKED and not form.need] == []


PLACE = "[places.ends]\nignore_case = true\n"
ENTRY = "[[ends]]\nid = 'a'\npattern = '{pattern}'\nexample = 'a'\ncounter = 'b'\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLACE, "ends"),
        (PLACE + "[[ends]]\nid = 'a'\npattern = 'a'\n", "example"),
        (PLACE + ENTRY.format(pattern="‹nobody›"), "nobody"),
        (PLACE + 2 * ENTRY.format(pattern="a"), "twice"),
        (PLACE + ENTRY.format(pattern="a") + "[[end]]\nid = 'b'\n", "end"),
        (PLACE.replace("ignore_case", "ignore") + ENTRY.format(pattern="a"), "ignore"),
        (PLACE + ENTRY.format(pattern="("), "unterminated"),
    ],
    ids=[
        "no forms",
        "no example",
        "unknown word",
        "twice",
        "unknown place",
        "unknown setting",
        "no pattern",
    ],
)
def test_a_wrong_file_is_refused_by_name(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error names the file, the place and the form."""
    monkeypatch.setattr(forms, "read_toml", lambda file: (text, documents.parsed(text, file)))
    forms.read.cache_clear()
    forms.pattern_of.cache_clear()
    try:
        with pytest.raises(ConfigurationError, match=rf"wrong\.toml.*{said}"):
            forms.pattern_of("wrong.toml", "ends")
    finally:
        forms.read.cache_clear()
        forms.pattern_of.cache_clear()
