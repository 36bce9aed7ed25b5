"""Data, known values, cutting."""

import base64
import json
import threading
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.redaction import Redactor, cut, default, shorten
from failwise.redaction.contract import answer
from tests.redaction.samples import card, make

REDACTOR = Redactor()
KEY = make("<an32>", 3)[0]


def test_keys_of_data_are_weighed() -> None:
    """A value goes by its key, whatever it looks like; other values and their types stay."""
    data = {
        "user": "ann",
        "password": 12345,
        "token": KEY,
        "limit": 10,
        "ratio": 0.5,
        "ok": True,
        "none": None,
        "headers": [["Authorization", "Bearer abc"], ["Accept", "*/*"]],
        "cookies": {"sid": "abc"},
        "card": int(card(5)),
        "pair": ("x", 1),
        "nested": json.dumps({"api_key": KEY, "page": 2}),
        "plain": '{"page": 2,  "size":3}',
    }
    clean = REDACTOR.data(data)
    assert clean == {
        "user": "ann",
        "password": "[password]",
        "token": "[secret]",
        "limit": 10,
        "ratio": 0.5,
        "ok": True,
        "none": None,
        "headers": [["Authorization", "Bearer ****"], ["Accept", "*/*"]],
        "cookies": {"sid": "****"},
        "card": "[bank_card]",
        "pair": ("x", 1),
        "nested": '{"api_key": "[secret]", "page": 2}',
        "plain": '{"page": 2,  "size":3}',
    }
    assert data["password"] == 12345
    assert REDACTOR.data(clean) == clean


def test_data_is_bounded() -> None:
    """A cycle, a deep chain and a huge list end, cut off and said."""
    cycle: list[Any] = []
    cycle += [cycle, cycle]
    assert "too" in json.dumps(REDACTOR.data(cycle))[:400]
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": deep}
    assert "[too deep]" in json.dumps(REDACTOR.data(deep))
    assert "[too large]" in REDACTOR.data(list(range(100_010)))


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=8, max_size=40))
def test_a_known_value_never_passes_in_any_encoding(secret: str) -> None:
    """Literally, URL-encoded, JSON-escaped, and inside base64 at every offset."""
    redactor = Redactor()
    redactor.add_secret(secret)
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1]):
        assert form not in redactor.text(f"a {form} b")
    for before in ("", "u:", "us:"):
        encoded = base64.b64encode((before + secret).encode()).decode()
        assert encoded not in redactor.text(f"a {encoded} b")


def test_the_environment_is_known() -> None:
    """Secrets of the environment go by name; paths, flags and short values are left alone."""
    value = "correct" + "-horse-9battery"
    redactor = Redactor(
        environment={
            "SHOP_PASSWORD": value,
            "HOME_KEY": "/etc/some/path",
            "A_TOKEN": "short",
            "MODE": "production",
        }
    )
    assert (
        redactor.text(f"said {value} and /etc/some/path short production")
        == "said [secret] and /etc/some/path short production"
    )


def test_short_known_values_are_passed_over() -> None:
    """Five characters would blank ordinary words."""
    redactor = Redactor()
    redactor.add_secret("apple")
    assert redactor.text("an apple a day") == "an apple a day"


def test_the_default_redactor_is_one() -> None:
    """Every thread gets the same instance, so that a secret added once is known everywhere."""
    found: list[Redactor] = []
    threads = [threading.Thread(target=lambda: found.append(default())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(redactor) for redactor in found}) == 1


def test_cutting_comes_after_redaction() -> None:
    """A key that the limit would cut in two is gone all the same."""
    token = "gh" + "p_" + make("<an36>", 4)[0]
    text = "x" * 90 + " " + token + " tail " * 40
    clean = cut(text, 110, REDACTOR)
    assert "p_" not in clean
    assert len(clean) <= 110
    assert clean.endswith("…")


@pytest.mark.parametrize("offset", range(0, 60, 3))
def test_a_secret_at_the_end_of_the_window_does_not_show(offset: int) -> None:
    """Where redaction shrinks the window, half a secret at its end is dropped."""
    token = "gh" + "p_" + make("<an36>", 4)[0]
    long, _ = make("-----BEGIN RSA PRIVATE KEY-----\n<b64_7900>\n-----END RSA PRIVATE KEY-----\n")
    head = long + "y" * (8192 + 300 - len(long) - offset - 2) + " "
    assert "p_" not in cut(head + token + " z" * 9000, 300, REDACTOR)


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("ae\u0301bc", 3, "a…"),
        ("a\U0001f468\u200d\U0001f469b", 4, "a…"),
        ("a\ud83d\ude00bc", 3, "a…"),
        ("abc", 0, ""),
    ],
)
def test_no_character_is_split(text: str, limit: int, short: str) -> None:
    """Combining marks, joined emoji and surrogate halves stay with their character."""
    assert shorten(text, limit) == short


def test_the_contract_of_the_command() -> None:
    """One object in, one out."""
    assert answer({"id": 1, "text": "Authorization: Bearer abc"}) == {
        "text": "Authorization: Bearer ****"
    }


@pytest.mark.parametrize(
    "value",
    ["Bearer", "basic", "Authorization", "password", "api_key", "Bearer first-0a1b2c3d4e5f6789"],
)
def test_no_known_value_opens_a_door_for_others(value: str) -> None:
    """A scheme, or a word by which secrets are recognised, is somebody's secret: others' stay hidden, and
    what stands behind a scheme is hidden alone too."""
    redactor = Redactor()
    redactor.add_secret(value)
    clean = redactor.text(
        "Authorization: Bearer other-0a1b2c3d4e5f6789, password=other-hunter2, "
        'api_key: "other-0a1b2c3d4e5f6789", Basic b3RoZXI6MGExYjJjM2Q0ZTVm; first-0a1b2c3d4e5f6789'
    )
    assert "other-" not in clean
    assert "b3RoZXI6" not in clean
    assert ("first-" in clean) == ("first-" not in value)
