"""Pages under a 200: a login in place of the answer is none; a page that was wanted is one."""

from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import pytest
import requests

import failwise
from failwise.evidence.pages import asked_for, asks_to_sign_in, is_login, leads_to_login
from failwise.faults import FaultServer, Reply

LOGIN = (
    "<!doctype html><html><head><title>Sign in</title></head><body><form method='post'>"
    "<input name='user'><input type='password' name='secret'></form></body></html>"
)
LOGIN_ZH = (
    "<html><head><title>统一身份认证</title></head><body>请登录<input type=password></body></html>"
)
ARTICLE = "<html><head><title>How to sign in</title></head><body><p>Enter your password.</p></body></html>"

SHOP = LOGIN.replace("Sign in", "Garden tools - The Shop").replace("<form", "<p>Spades</p><form")
"""A page of its own, with a box to sign in."""


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        for page in ("/page", "/api/items", "/login"):
            running.route("GET", page, _html(LOGIN))
        running.route("GET", "/zh/v2/items", _html(LOGIN_ZH))
        running.route("GET", "/article", _html(ARTICLE))
        running.route("GET", "/api/article", _html(ARTICLE))
        running.route("GET", "/shop", _html(SHOP))
        running.route("GET", "/account", Reply(302, {"Location": "/login?next=/account"}))
        running.route("GET", "/old", Reply(302, {"Location": "/article"}))
        yield running


def _html(text: str) -> Reply:
    return Reply(200, {"content-type": "text/html; charset=utf-8"}, text.encode())


def fetch_httpx(url: str) -> Any:
    return httpx.get(url, trust_env=False, follow_redirects=True)


def fetch_requests(url: str) -> Any:
    return requests.get(url, timeout=5)


async def fetch_aiohttp(url: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        await response.read()
        return response


CLIENTS = pytest.mark.parametrize("fetch", [fetch_httpx, fetch_requests, fetch_aiohttp])


async def code_of(fetch: Any, url: str) -> str | None:
    with failwise.Runtime(":memory:") as rt:
        rt.add(fetch, name="fetch", read_only=True)
        result = await rt.call("fetch", {"url": url})
    return result.failure.code if result.failure else None


@CLIENTS
@pytest.mark.parametrize("path", ["/api/items", "/zh/v2/items", "/account", "/page"])
async def test_a_login_in_place_of_an_answer(server: FaultServer, fetch: Any, path: str) -> None:
    """Of an API's address, at the end of redirects, and of a page that is none: the credential does not
    hold."""
    assert await code_of(fetch, server.url(path)) == "auth.invalid_credential"


@CLIENTS
@pytest.mark.parametrize("path", ["/login", "/article", "/api/article", "/old", "/shop"])
async def test_a_page_that_was_fetched(server: FaultServer, fetch: Any, path: str) -> None:
    """A tool that fetches pages gets them: logins that were asked for, articles about logins."""
    assert await code_of(fetch, server.url(path)) is None


@pytest.mark.parametrize(
    ("expects", "path", "code"),
    [
        ("text/html", "/page", None),
        ("text/html", "/api/items", None),
        ("text/csv", "/page", "auth.invalid_credential"),
        ("text/csv", "/article", "parsing.html_instead_of_json"),
        ("application/json", "/page", "parsing.html_instead_of_json"),
    ],
)
def test_what_a_tool_declares(
    server: FaultServer, expects: str, path: str, code: str | None
) -> None:
    """`HttpTool(expects=)`: html is content where it is promised, and nowhere else."""
    with failwise.Runtime(":memory:", policy={"parsing": {"retries": 0}}) as rt:
        rt.add(failwise.HttpTool("fetch", "GET", server.url(path), expects=expects))
        failure = rt.call_sync("fetch").failure
    assert (failure.code if failure else None) == code


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ((None, None, "https://shop.example/index"), None),
        ((None, "*/*", "https://shop.example/v1/orders"), "api"),
        ((None, None, "https://api.shop.example/orders"), "api"),
        ((None, None, "https://shop.example/data.json"), "api"),
        ((None, "application/json", "https://shop.example/"), "data"),
        ((None, "text/html,application/xhtml+xml,*/*;q=0.8", "https://shop.example/api/x"), "page"),
        (("text/csv", None, None), "data"),
        ((None, None, "https://apiary.example/rapid/restaurant"), None),
        ((None, None, "https://[bad"), None),
    ],
)
def test_what_was_asked_for(arguments: tuple[Any, Any, Any], asked: str | None) -> None:
    """By promise, by ``Accept``, by address, in that order."""
    assert asked_for(*arguments) == asked


def test_what_is_a_login() -> None:
    """A password to fill in and words that ask for it; a redirect to where people sign in."""
    assert asks_to_sign_in("Sign in", LOGIN)
    assert asks_to_sign_in(None, LOGIN_ZH)
    assert not asks_to_sign_in("How to sign in", ARTICLE)
    assert leads_to_login("https://a.example/x", "https://sso.a.example/")
    assert leads_to_login("https://a.example/x", "https://a.example/account/login?next=x")
    assert not leads_to_login("https://a.example/login", "https://a.example/login/")
    assert not leads_to_login("https://a.example/x", "https://a.example/blogin")
    assert not leads_to_login(None, "https://a.example/login")


@pytest.mark.parametrize(
    "title",
    [
        "Log in", "Login", "Sign in · Acme", "Acme | Log in", "Sign in to Acme Cloud", "Log In ‹ Blog — WordPress", "Grafana - Login",
        "登录", "用户登录", "请登录 - 运营平台", "综合管理系统登录", "统一身份认证平台", "ログイン | 管理画面",
    ],
)  # fmt: skip
def test_titles_of_logins(title: str) -> None:
    """A page with a password to fill in whose title, or a part of it, is that of a login."""
    assert is_login(title, LOGIN)
    assert not is_login(title, ARTICLE), "nothing to fill in"


@pytest.mark.parametrize(
    "title",
    [
        "How to log in", "Cannot log in | Help", "Failed to sign in: what now", "Designing a login form", "Log in events, explained",
        "如何登录", "登录接口文档", "怎么登录系统 - 帮助中心", "Garden tools", "Blogin", "", None,
    ],
)  # fmt: skip
def test_titles_of_pages_about_logins(title: str | None) -> None:
    """A page about logins is content, though it shows a form; so is one with its code."""
    assert not is_login(title, LOGIN)
    assert not is_login("Log in", LOGIN.replace("<form", "<pre>&lt;form&gt;</pre><form"))
