"""Secrets that the name or the place beside them tells."""

import pytest

from failwise.redaction import Redactor
from tests.redaction.samples import basic, make

REDACTOR = Redactor()
KEY = make("<an32>", 7)[0]
WORD = "hunter" + "2x"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc", "Authorization: Bearer ****"),
        ("authorization=Bearer%20" + KEY, "authorization=Bearer%20****"),
        ("Authorization: Basic " + basic("ann", WORD) + " -> 401", "Authorization: Basic **** -> 401"),
        (f'{{"Authorization": "Bearer {KEY}", "a": 1}}', '{"Authorization": "Bearer ****", "a": 1}'),
        (f"[(b'authorization', b'Bearer {KEY}')]", "[(b'authorization', b'Bearer ****')]"),
        (f'curl -H "Authorization: Token {KEY}" https://a.example', 'curl -H "Authorization: Token ****" https://a.example'),
        (f'Proxy-Authorization: Digest username="u", response="{KEY}"', "Proxy-Authorization: Digest ****"),
        (f"Authorization: AWS4-HMAC-SHA256 Credential=AB/2026/x, SignedHeaders=host, Signature={KEY}", "Authorization: AWS4-HMAC-SHA256 ****"),
        ("https://a.example/cb?sign=abc&status=401", "https://a.example/cb?sign=****&status=401"),
        (f"/b/o?X-Amz-Expires=300&X-Amz-Signature={KEY}", "/b/o?X-Amz-Expires=300&X-Amz-Signature=****"),
        (f"blob?sv=2026&sig={KEY}%3D&se=2026", "blob?sv=2026&sig=****&se=2026"),
        (f"redirect_uri=https%3A%2F%2Fa.example%3Ftoken%3D{KEY}", "redirect_uri=https%3A%2F%2Fa.example%3Ftoken%3D****"),
        (f"https://a.example/cb#access_token={KEY}&state=1", "https://a.example/cb#access_token=****&state=1"),
        ("302 to /login;jsessionid=A1B2C3D4", "302 to /login;jsessionid=****"),
        ("?q=shoes&key=shoes", "?q=shoes&key=shoes"),
        ("Cookie: theme=dark; sid=abc", "Cookie: theme=****; sid=****"),
        ("Set-Cookie: sid=abc; Path=/; HttpOnly", "Set-Cookie: sid=****; Path=/; HttpOnly"),
        (f"postgres://app:{WORD}@db.example:5432/orders", "postgres://app:****@db.example:5432/orders"),
        (f"redis://:{WORD}@cache.example", "redis://:****@cache.example"),
        (f"amqp://a:p@ss{WORD}@mq.example", "amqp://a:****@mq.example"),
        (f"app:{WORD}@tcp(127.0.0.1:3306)/orders", "app:****@tcp(127.0.0.1:3306)/orders"),
        (f"Server=a;Uid=b;Pwd={WORD};Database=c", "Server=a;Uid=b;Pwd=****;Database=c"),
        (f'codecov_token = "{KEY}"', 'codecov_token = "[secret]"'),
        (f"snykKey := '{KEY}'", "snykKey := '[secret]'"),
        (f"DISCORD_SECRET={KEY} is not valid", "DISCORD_SECRET=[secret] is not valid"),
        (f":password=>'{WORD}'", ":password=>'[password]'"),
        (f'password: str = "{WORD}"', 'password: str = "[password]"'),
        (f'{{"body": "{{\\"password\\": \\"{WORD}\\"}}"}}', '{"body": "{\\"password\\": \\"[password]\\"}"}'),
        (f"<xml><sign><![CDATA[{KEY}]]></sign></xml>", "<xml><sign><![CDATA[[secret]]]></sign></xml>"),
        (f"<password>{WORD}</password>", "<password>[password]</password>"),
        (f"tool --password {WORD} --verbose", "tool --password [password] --verbose"),
        (f"curl -u admin:{WORD} https://a.example", "curl -u admin:**** https://a.example"),
        (f"user[password]={WORD}&x=1", "user[password]=****&x=1"),
        (f'name="password"\r\n\r\n{WORD}\r\n--x', 'name="password"\r\n\r\n[password]\r\n--x'),
        (f"密码：{WORD}，请重试", "密码：[password]，请重试"),
        (f"登录密码是{WORD}。", "登录密码是[password]。"),
        (f"访问令牌＝{KEY}", "访问令牌＝[secret]"),
        (f"the password is {WORD} now", "the password is [password] now"),
        ('验证码：123456', "验证码：[code]"),
        (f'{{"name": "X-Api-Key", "value": "{KEY}"}}', '{"name": "X-Api-Key", "value": "[secret]"}'),
    ],
)  # fmt: skip
def test_what_the_place_tells_goes_and_the_rest_stays(text: str, clean: str) -> None:
    """Only the secret is replaced: scheme words, cookie names, paths and codes stay readable."""
    assert REDACTOR.text(text) == clean
    assert REDACTOR.text(clean) == clean


def test_headers_by_name() -> None:
    """Names decide; a redirect keeps host and path, a request id stays."""
    headers = {
        "Authorization": "Bearer abc",
        "X-Api-Key": "k",
        "Cookie": "sid=1",
        "Location": "https://a.example/login;jsessionid=AB12?next=/x",
        "X-Request-Id": "req_8f3a21bc9d0e",
        "Content-Type": "text/html",
    }
    assert REDACTOR.headers(headers) == {
        "Authorization": "Bearer ****",
        "X-Api-Key": "****",
        "Cookie": "sid=****",
        "Location": "https://a.example/login;jsessionid=****?next=/x",
        "X-Request-Id": "req_8f3a21bc9d0e",
        "Content-Type": "text/html",
    }
    assert (
        REDACTOR.url("https://u:p1@a.example/x?token=abc1")
        == "https://u:****@a.example/x?token=****"
    )
