"""Templates and fingerprints: the same cause, the same digits; another cause, others."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.classify import Classifier, classify_text
from failwise.classify.fingerprint import LOOKED_AT, TEMPLATE_LIMIT, fingerprint, template
from failwise.evidence import from_response, from_value


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("user 42 not found", "user <n> not found"),
        ("see https://a.example/x?y=1 now", "see <url> now"),
        ("订单6b0d7f6e-1c1a-4f5e-9d55-0f4b7c6c8d11不存在", "订单<uuid>不存在"),
        ("at 2024-01-02T03:04:05Z failed", "at <ts> failed"),
        ("10.0.0.1:8080 refused", "<ip> refused"),
        ("object at 0x7f8d58e8e330", "object at <hex>"),
        ("open /var/lib/x/y.txt", "open <path>"),
        ("host api.shop.example:443 down", "host <host> down"),
        ("table 'orders' missing", "table <str> missing"),
        ("can't find it, can't", "can't find it, can't"),
        ("request 8E9039D9BEEF40B8 failed", "request <id> failed"),
        ("sqlite3 and s3 and utf8", "sqlite3 and s3 and utf8"),
        ("mail a.b@c.example sent", "mail <email> sent"),
        ("'404 Not Found' for it", "'<n> Not Found' for it"),
        ("<!doctype html><html><title>502 Bad Gateway</title>", "<html> <n> Bad Gateway"),
        ("a  \n b", "a b"),
    ],
)
def test_values_become_placeholders(message: str, expected: str) -> None:
    """Each kind of value has its placeholder, beside Chinese as well."""
    assert template(message) == expected


@given(st.text(max_size=3_000))
def test_template_is_bounded(text: str) -> None:
    """Any text gives a template of at most 400 characters, and looks at 2,000."""
    assert len(template(text)) <= TEMPLATE_LIMIT
    assert template(text) == template(text[:LOOKED_AT])


def test_category_code_tool_and_subject_are_part_of_it() -> None:
    """The same words under another code, tool or status are another failure."""
    base = ("network", "network.dns", "a", "", "x")
    others = [
        ("auth", *base[1:]),
        ("network", "network.proxy", *base[2:]),
        (*base[:2], "b", *base[3:]),
        (*base[:3], "404", "x"),
    ]
    assert len({fingerprint(*parts) for parts in [base, *others]}) == 5
    assert len(fingerprint(*base)) == 16


def test_the_fingerprint_stays_for_ever() -> None:
    """A stored fingerprint must still be found: this one is pinned."""
    assert (
        fingerprint("network", "network.read_timeout", "search", "", "timed out after 10 s")
        == PINNED
    )


PINNED = "e8280892b97bce5c"


def test_a_pasted_502_and_a_real_one_are_the_same_failure() -> None:
    """Pages differ by ray and wording; for a gateway the code is the template."""
    classifier = Classifier()
    pasted = classify_text(
        "获取首页数据失败: exception: 伺服器错误 502: !doctype htmlhtml lang", tool="home"
    )
    pages = [
        classifier.classify(
            from_response(
                httpx.Response(502, html=f"<html><title>502 Bad Gateway</title>ray {ray}</html>")
            ),
            tool="home",
        )
        for ray in (1, 2)
    ]
    assert pasted is not None
    assert {page.fingerprint for page in pages if page} == {pasted.fingerprint}
    other = classifier.classify(
        from_response(httpx.Response(502, html="<html></html>")), tool="cart"
    )
    assert other is not None
    assert other.fingerprint != pasted.fingerprint


def test_values_do_not_move_a_fingerprint() -> None:
    """Two answers that differ in ids are one failure."""
    classifier = Classifier()
    prints = {
        failure.fingerprint
        for name in ("u-1001", "u-2002")
        if (
            failure := classifier.classify(
                from_value({"code": 7, "msg": f"user '{name}' not found"}), tool="t"
            )
        )
    }
    assert len(prints) == 1
