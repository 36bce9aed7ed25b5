"""Many literals in one pattern: it finds what looking for each of them finds."""

import re

from hypothesis import given
from hypothesis import strategies as st

from failwise.vocabulary.alternation import any_of

_LITERALS = st.lists(st.text("ab.1(é", min_size=1, max_size=5), max_size=6)


@given(_LITERALS, st.text("ab.1(é", max_size=20))
def test_it_matches_where_one_of_them_stands(literals: list[str], text: str) -> None:
    """And nowhere where none does; no literals match nothing."""
    found = re.search(any_of(literals), text)
    assert (found is not None) == any(literal in text for literal in literals)


@given(_LITERALS, st.text("ab.1(é", max_size=20))
def test_all_of_what_stands_there_is_one_of_them(literals: list[str], text: str) -> None:
    """As an alternation does, the longest literal that fits: the whole of the text, or none."""
    whole = re.fullmatch(any_of(literals), text)
    assert (whole is not None) == (text in literals)
