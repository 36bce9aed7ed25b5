"""Who may come in, and what a browser is told to forbid."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from failwise.dashboard import app
from failwise.dashboard.gate import HEADERS
from failwise.vocabulary.errors import UsageError
from tests.dashboard.conftest import Opened, mark_of

TOKEN, RAW = "a-token-of-some-length", "another-token-of-that-length"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("127.0.0.1:8770", 200), ("[::1]:8770", 200), ("evil.example", 421),
        ("localhost.evil.example", 421), ("", 421), ("127.0.0.1.nip.io:8770", 421),
    ],
)  # fmt: skip
def test_only_its_own_host_is_answered(
    played: Path, opened: Opened, host: str, status: int
) -> None:
    """A page of another name that resolves to this machine gets nothing: not one file, not one count."""
    client = opened(played)
    for path in ("/", "/api/overview", "/static/dashboard.css", "/sign-in", "/live-nothing"):
        found = client.get(path, headers={"host": host}).status_code
        assert found in ((200, 404) if status == 200 else (421, 404)), path
    assert client.get("/", headers={"host": host}).status_code == status


def test_names_need_a_token(played: Path, opened: Opened) -> None:
    """Beyond this machine there is a token, or the word that somebody else checks."""
    with pytest.raises(UsageError, match="token"):
        app(played, hosts=["ops.example"])
    with pytest.raises(UsageError, match="16 characters"):
        app(played, token="short")
    with pytest.raises(UsageError, match="another one"):
        app(played, token=TOKEN, raw_token=TOKEN)
    client = opened(played, host="ops.example:8443", hosts=["ops.example:8443"], signed_in=True)
    assert client.get("/").status_code == 200
    other = opened(played, host="ops.example:9999", hosts=["ops.example:8443"], signed_in=True)
    assert other.get("/").status_code == 421


def test_every_answer_carries_the_policy(played: Path, opened: Opened) -> None:
    """The same strict headers on pages, data, files, refusals; nothing inline, nothing from elsewhere."""
    client = opened(played)
    for path in ("/", "/api/calls", "/static/dashboard.js", "/no", "/?period=x"):
        answer = client.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, path
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert client.get("/").headers["cache-control"] == "no-store"
    assert client.get("/", headers={"host": "evil.example"}).headers["x-frame-options"] == "DENY"


def test_a_token_opens_the_pages(played: Path, opened: Opened) -> None:
    """Without it nothing is shown; with it a cookie that no script can read; wrong ones are refused."""
    client = opened(played, token=TOKEN)
    for path in ("/", "/calls", "/api/overview", "/live"):
        answer = client.get(path, follow_redirects=False)
        assert answer.status_code in (303, 401), path
        assert "calls" not in answer.text.lower()
    page = client.get("/calls?tool=pay")
    assert page.url.path == "/sign-in"
    form = {"mark": mark_of(page.text), "next": "/calls?tool=pay"}
    wrong = client.post("/sign-in", data=form | {"token": TOKEN + "x"})
    assert wrong.status_code == 403
    assert "not right" in wrong.text
    right = client.post("/sign-in", data=form | {"token": TOKEN}, follow_redirects=False)
    assert (right.status_code, right.headers["location"]) == (303, "/calls?tool=pay")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert client.get("/calls").status_code == 200
    client.post("/sign-out", data={"mark": mark_of(client.get("/calls").text)})
    assert client.get("/api/calls").status_code == 401


@pytest.mark.parametrize(
    "told", ["", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"]
)
def test_programs_tell_the_token(played: Path, opened: Opened, told: str) -> None:
    """``Authorization: Bearer`` for programs; anything else is 401."""
    client = opened(played, token=TOKEN)
    headers = {"authorization": told.encode()}
    assert client.get("/api/overview", headers=headers).status_code == 401
    right = client.get("/api/overview", headers={"authorization": f"Bearer {TOKEN}"})
    assert right.status_code == 200


def test_raw_answers_need_the_second_token(played: Path, opened: Opened) -> None:
    """The first token does not open them; without a second one nobody sees them."""
    parameters = {"id": "pay-1", "at": _began(opened(played), "pay-1")}
    assert opened(played).get("/api/call/raw", params=parameters).status_code == 404
    client = opened(played, token=TOKEN, raw_token=RAW)
    first = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/call/raw", params=parameters, headers=first).status_code == 401
    page = client.get("/sign-in")
    client.post("/sign-in", data={"mark": mark_of(page.text), "token": TOKEN})
    asked = client.get("/call/raw", params=parameters)
    assert "second token" in asked.text
    form = {"mark": mark_of(asked.text), "token": RAW, "next": str(asked.url.params["next"])}
    shown = client.post("/sign-in?door=raw", data=form)
    assert shown.url.path == "/call/raw"
    assert "no answer" in shown.text


def _began(client: TestClient, call_id: str) -> float:
    began: float = client.get("/api/call", params={"id": call_id}).json()["call"]["started"]
    return began


@pytest.mark.parametrize("place", ["https://evil.example", "null", "http://localhost:1"])
def test_forms_of_others_change_nothing(journal: Path, opened: Opened, place: str) -> None:
    """A form needs this origin, and the mark that was made for this browser."""
    client = opened(journal)
    (row,) = client.get("/api/effects").json()["rows"]
    mark = mark_of(client.get("/effects").text)
    form = {"do": "settle", "id": row["key"], "state": "done"}
    from_there = client.post("/change", data=form | {"mark": mark}, headers={"origin": place})
    assert from_there.status_code == 403
    for wrong in ({}, {"mark": ""}, {"mark": mark[:-1]}, {"mark": "é"}):
        assert client.post("/change", data=form | wrong).status_code == 403
    stranger = opened(journal)
    assert stranger.post("/change", data=form | {"mark": mark}).status_code == 403
    assert client.post("/change", content=b"x" * 100_000).status_code == 413
    assert client.get("/change").status_code == 405
    assert len(client.get("/api/effects").json()["rows"]) == 1


def test_read_only_changes_nothing(journal: Path, opened: Opened) -> None:
    """There are no forms, and what is sent all the same is refused."""
    client = opened(journal, read_only=True)
    assert '<form class="inline"' not in client.get("/effects").text
    (row,) = client.get("/api/effects").json()["rows"]
    form = {"do": "settle", "id": row["key"], "state": "done"}
    assert client.post("/change", data=form).status_code == 403
    assert len(client.get("/api/effects").json()["rows"]) == 1


@pytest.mark.parametrize(
    "following", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"]
)
def test_nothing_leads_elsewhere(journal: Path, opened: Opened, following: str) -> None:
    """Where a form goes on is a path of this dashboard."""
    client = opened(journal)
    (row,) = client.get("/api/effects").json()["rows"]
    mark = mark_of(client.get("/effects").text)
    form = {"mark": mark, "do": "settle", "id": row["key"], "state": "done", "next": following}
    answer = client.post("/change", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_it_is_mounted_below_a_path(played: Path) -> None:
    """Inside another application, or behind a proxy that serves it under a prefix, all links fit."""
    outer = Starlette(routes=[Mount("/ops/failwise", app=app(played))])
    with TestClient(outer, base_url="http://localhost") as client:
        page = client.get("/ops/failwise/").text
        links = re.findall(r'(?:href|src|action)="(/[^"]*)"', page)
        assert links
        assert all(link.startswith("/ops/failwise/") for link in links)
        for link in {link.partition("?")[0] for link in links}:
            assert client.get(link).status_code in (200, 404), link
        assert client.get("/ops/failwise/api/overview").json()["total"]["calls"]
    prefixed = TestClient(app(played), base_url="http://localhost", root_path="/p")
    assert 'href="/p/static/' in prefixed.get("/p/").text


def test_what_was_chosen_is_remembered(played: Path, opened: Opened) -> None:
    """Language and look come from the address, then the cookie, then the browser."""
    client = opened(played)
    assert 'lang="zh-Hans"' in client.get("/", headers={"accept-language": "zh-CN,en"}).text
    assert 'lang="en"' in client.get("/").text
    client.get("/?lang=zh&theme=dark")
    page = client.get("/calls").text
    assert 'lang="zh-Hans"' in page
    assert 'data-theme="dark"' in page
    assert "theme=" not in re.findall(r'class="brand"|<nav.*?</nav>', page, re.DOTALL)[1]


async def test_live_updates_are_put_together() -> None:
    """Viewers share one look at the journal; many changes between two looks are one line to each."""
    from failwise.dashboard.live import Live

    state, looks = [0], [0]

    def look() -> Any:
        looks[0] += 1
        return state[0]

    live = Live(look, every=0.01)
    viewers = [live.lines() for _ in range(20)]
    for viewer in viewers:
        assert "changes" in await anext(viewer)
    before = looks[0]
    while looks[0] < before + 2:
        await asyncio.sleep(0.005)
    for _ in range(100):
        state[0] += 1
    lines = await asyncio.wait_for(asyncio.gather(*(anext(viewer) for viewer in viewers)), 5)
    assert all(line.startswith("event: change") for line in lines)
    for viewer in viewers:
        await viewer.aclose()  # type: ignore[attr-defined]
    assert not live.full
    asked = looks[0]
    await asyncio.sleep(0.05)
    assert looks[0] <= asked + 1  # nobody watches: nobody looks


def test_one_answer_for_all_who_ask() -> None:
    """What many ask within a moment is asked of the journal once; an error is not remembered."""
    import threading

    from failwise.dashboard.answers import Answers

    now, asked = [0.0], []
    answers = Answers(lambda: now[0])
    gate = threading.Event()

    def slow() -> int:
        gate.wait(5)
        asked.append(1)
        return len(asked)

    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(answers.get("key", slow, 1.0)))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(5)
    assert found == [1] * 10
    now[0] = 2.0
    assert answers.get("key", slow, 1.0) == 2
    with pytest.raises(ZeroDivisionError):
        answers.get("other", lambda: 1 / 0, 1.0)
    assert answers.get("other", lambda: 7, 1.0) == 7
    for number in range(1_000):
        answers.get(number, lambda: 0, 1.0)
    assert len(answers._known) <= 256


def test_a_slow_answer_is_renewed_behind_the_scenes() -> None:
    """Who asks after its time gets the old one at once, and the next one the new one."""
    import threading

    from failwise.dashboard.answers import Answers

    now, asked = [0.0], []
    renewed = threading.Event()
    answers = Answers(lambda: now[0])

    def slow() -> int:
        asked.append(1)
        now[0] += 2.0
        if len(asked) > 1:
            renewed.set()
        return len(asked)

    assert answers.get("key", slow, 1.0) == 1
    now[0] += 10.0
    assert answers.get("key", slow, 1.0) == 1
    assert renewed.wait(5)
    for _ in range(500):
        if answers.get("key", slow, 1.0) == 2:
            break
        renewed.wait(0.01)
    assert answers.get("key", slow, 1.0) == 2
    assert len(asked) == 2
    answers.forget()
    assert answers.get("key", slow, 1.0) == 3
    now[0] += 1_000.0
    assert answers.get("key", slow, 1.0) == 4  # too old for anybody
