"""Secrets that their form gives away."""

import pytest

from failwise.redaction import Redactor
from failwise.redaction.rules import Rule, built_in_rules, parse_rules
from failwise.vocabulary.errors import ConfigurationError
from tests.redaction.samples import card, id_card, make

REDACTOR = Redactor()
WITH_EXAMPLE = [rule for rule in built_in_rules() if rule.example and not rule.personal]
FRAMES = (
    "{}",
    "401 Unauthorized for token {} (request id req_9)",
    '{{"error": {{"message": "The token {} has expired"}}}}',
    "上游返回：令牌 {} 已失效",
    "line one\\n{}\\nline two",
    "(see {})",
)


@pytest.mark.parametrize("rule", WITH_EXAMPLE, ids=lambda rule: rule.id)
def test_every_rule_finds_its_example_wherever_it_stands(rule: Rule) -> None:
    """No random piece of the example survives, in six surroundings and with three keys each."""
    for seed in range(3):
        secret, pieces = make(rule.example, seed)
        for frame in FRAMES:
            clean = REDACTOR.text(frame.format(secret))
            assert not [piece for piece in pieces if piece in clean], clean
            assert REDACTOR.text(clean) == clean


def test_a_rule_has_an_example_unless_it_is_about_check_digits() -> None:
    """Only the numbers of people go without a recipe: their samples are computed."""
    without = {rule.id for rule in built_in_rules() if not rule.example}
    assert without == {
        "chinese_id_card", "bank_card", "amex_card", "chinese_phone", "international_phone", "us_social_security", "iban",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("身份证" + id_card(1), "id_card"),
        ("号码是" + id_card(2) + "，请核对", "id_card"),
        ("card " + card(1), "bank_card"),
        ("卡号：" + "-".join(card(2)[place : place + 4] for place in range(0, 16, 4)), "bank_card"),
        ("联系13812345678办理", "phone"),
        ("+86 138-1234-5678", "phone"),
        ("phone 138 1234 5678.", "phone"),
        ("call +1 415-555-2671", "phone"),
        ("ssn 123-45-6789", "ssn"),
        ("IBAN GB82 WEST 1234 5698 7654 32", "iban"),
    ],
)
def test_numbers_of_people_go(text: str, kind: str) -> None:
    """Identity cards, bank cards, phones, IBAN and SSN, also between Chinese characters."""
    clean = REDACTOR.text(text)
    assert f"[{kind}]" in clean or "[personal]" in clean
    assert not any(
        len(run) > 4 for run in "".join(c if c.isdigit() else " " for c in clean).split()
    )


@pytest.mark.parametrize(
    "text",
    [
        "110105199003070001 is no valid identity card",
        "order 2026113000001234 of 1764527497000",
        "HTTP 502 from cf-ray 8f3a21bc9d0e-FRA, request_id=req_8f3a21bc9d0e",
        "errcode 40163, code=40001, status 429, trace 4bf92f3577b34da6a3ce929d0e0e4736",
        "commit 43fc912ef59a83054ea7f6706df4d53a7dea4d80",
        "550e8400-e29b-41d4-a716-446655440000 not found",
        "Unexpected token: < in JSON at position 0",
        "max_tokens: 4096, total_tokens=12, next_page_token=abc123def456ghi789",
        "password: required; Invalid password: incorrect",
        "api_key = os.environ['X_KEY'], token: ${TOKEN}, secret=<your secret>, key = xxxxxxxxxxxxxxxxxxxxxxxx",
        'required: ["password", "email"]',
        "密码错误，请重试；令牌已过期",
        "Idempotency-Key: 2f1d7a70b1e84a0f9d0c",
        "Bearer authentication failed; Basic auth is off",
        "price 500, size 12345678, 2026-11-30T18:00:00.123456789Z",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Status and error codes, request ids, digests, pagination, placeholders and prose stay as they are."""
    assert REDACTOR.text(text) == text


def test_a_cut_private_key_goes_too() -> None:
    """A PEM block whose end is missing, and one with headers, leave nothing of the key."""
    secret, pieces = make(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,<HEX32>\n\n<b64_64>\n<b64_40>"
    )
    clean = REDACTOR.text("could not load " + secret)
    assert clean == "could not load [private_key]"
    assert pieces


def test_email_is_no_secret_unless_asked() -> None:
    """`personal=True` takes addresses out as well."""
    text = "mail ann.lee@mail.example today"
    assert REDACTOR.text(text) == text
    assert Redactor(personal=True).text(text) == "mail [email] today"


@pytest.mark.parametrize(
    ("toml", "line", "reason"),
    [
        ("\n[[rule]]\nid='a'\nkind='x_y'\ngate=['q']\npattern='q('\n", 2, "missing \\)"),
        ("[[rule]]\nid='a'\ngate=['q']\npattern='q'\n", 1, "missing 'kind'"),
        (
            "[[rule]]\nid='a'\nkind='xy'\ngate=['q']\npattern='q'\ncolour=1\n",
            1,
            "unknown key 'colour'",
        ),
        (
            "tokens = [\n{ kind='xy', gate='q', pattern='q', check='maybe' },\n]",
            2,
            "unknown check 'maybe'",
        ),
        ("[[rule]]\nid='a'\nkind='xy'\ngate=[]\npattern='q'\n", 1, "gate or needs"),
        ("[[rule]]\nid=\n", 2, "Invalid value"),
    ],
)
def test_a_wrong_rules_file_names_its_line(toml: str, line: int, reason: str) -> None:
    """`ConfigurationError` says file, line and what is wrong."""
    with pytest.raises(ConfigurationError, match=reason) as caught:
        parse_rules(toml, "mine.toml")
    assert (caught.value.file, caught.value.line) == ("mine.toml", line)
