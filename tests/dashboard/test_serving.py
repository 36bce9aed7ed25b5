"""How pages are served: once for all, again only where something changed, from journals of every shape."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from failwise import Runtime
from failwise.cli.configuration import read
from failwise.cli.dashboard import _journal
from failwise.dashboard import answers, app, overview, pages, rendering
from failwise.dashboard.view import PATHS
from failwise.journal.journal import Journal
from failwise.journal.reader import open_reader
from failwise.journal.rollups import DAY
from failwise.testing.journal_samples import bad, claim_of, good
from tests.dashboard.conftest import Opened, mark_of


@pytest.mark.parametrize("path", [*PATHS.values(), "/call?id=store-1", "/run?id=job-stopped"])
def test_what_has_not_changed_is_not_sent_again(played: Path, opened: Opened, path: str) -> None:
    """A page and its twin carry an entity tag; who has that version gets 304 and nothing more."""
    client = opened(played)
    client.get("/")  # from now on this browser is known
    inner, _, query = path.partition("?")
    twin = f"/api{inner if inner != '/' else '/overview'}?{query}"
    for address in (path, twin):
        first = client.get(address)
        tag = first.headers["etag"]
        again = client.get(address, headers={"if-none-match": tag})
        assert (again.status_code, again.content) == (304, b""), address
        assert again.headers["etag"] == tag
        assert again.headers["cache-control"] == "no-store"
        other = client.get(address, headers={"if-none-match": '"something-else"'})
        assert other.status_code == 200


def test_a_change_is_sent(journal: Path, opened: Opened) -> None:
    """After a person changed something the old tag no longer holds."""
    client = opened(journal)
    page = client.get("/effects")
    form = {"mark": mark_of(page.text), "do": "settle", "state": "done"}
    (row,) = client.get("/api/effects").json()["rows"]
    client.post("/change", data=form | {"id": row["key"], "next": "/effects"})
    again = client.get("/effects", headers={"if-none-match": page.headers["etag"]})
    assert again.status_code == 200
    assert "No effect is open" in again.text


def test_a_rendering_is_everybodys_and_a_mark_is_not(played: Path, opened: Opened) -> None:
    """Browsers share what is rendered; the mark in the forms is each one's own, and what stands for it
    meanwhile is shown to nobody."""
    dashboard = app(played)
    with (
        TestClient(dashboard, base_url="http://localhost") as one,
        TestClient(dashboard, base_url="http://localhost") as other,
    ):
        for client in (one, other):
            client.get("/")
        texts = [client.get("/effects") for client in (one, other)]
    marks = [mark_of(text.text) for text in texts]
    assert marks[0] != marks[1]
    assert texts[0].text.replace(marks[0], marks[1]) == texts[1].text
    assert texts[0].headers["etag"] != texts[1].headers["etag"]
    assert rendering.MARK not in texts[0].text + texts[1].text


async def test_a_hundred_viewers_are_one_question(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes while an answer is found and rendered waits for that one; none holds a thread."""
    asked: list[str] = []
    found, rendered = overview.overview, rendering.page

    def counted(*arguments: Any) -> Any:
        asked.append("journal")
        return found(*arguments)

    def drawn(*arguments: Any) -> Any:
        asked.append("page")
        return rendered(*arguments)

    monkeypatch.setattr(overview, "overview", counted)
    monkeypatch.setattr(rendering, "page", drawn)
    dashboard = app(played)
    statuses = await asyncio.gather(*(_status(dashboard, "/") for _ in range(100)))
    assert statuses == [200] * 100
    assert sorted(asked) == ["journal", "page"]


async def _status(dashboard: Any, path: str) -> int:
    found: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        found.append(message.get("status", 0))

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "scheme": "http", "http_version": "1.1", "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    }  # fmt: skip
    await dashboard(scope, receive, send)
    return found[0]


async def test_one_who_goes_away_ends_nobody_elses_waiting(played: Path) -> None:
    """A viewer who closes the page while it is found takes the answer from nobody."""
    dashboard = app(played)
    leaving = asyncio.ensure_future(_status(dashboard, "/"))
    staying = asyncio.ensure_future(_status(dashboard, "/"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == 200


def test_a_call_is_looked_for_in_a_bounded_way(
    played: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its id alone an old success is not looked for in everything; with its run it is found."""
    from failwise.dashboard import search

    monkeypatch.setattr(search, "LOOKED_AT", 3)
    client = opened(played)
    run = client.get("/api/calls", params={"tool": "search"}).json()
    assert client.get("/call", params={"id": "search-0"}).status_code == 404
    assert (
        client.get("/call", params={"id": "store-1"}).status_code == 200
    )  # failures have an index
    assert client.get("/call", params={"id": "rate-1"}).status_code == 200
    assert client.get("/call", params={"id": "live-1", "run": "job-fallback"}).status_code == 200
    assert run["searched_to"]


# -- claims elsewhere --------------------------------------------------------------------------------


@pytest.fixture
def apart(tmp_path: Path) -> tuple[Path, Path]:
    """A journal whose claims are kept in another file, with an effect that is open."""
    places = tmp_path / "calls.db", tmp_path / "claims.db"
    with closing(Journal(places[0], claims=places[1])) as journal:
        assert journal.claim(claim_of("1")).result(10).state == "granted"
        journal.settle(claim_of("1").key, "unknown")
        journal.put(good())
        assert journal.flush(10)
    return places


def test_claims_are_read_where_they_are_kept(apart: tuple[Path, Path], opened: Opened) -> None:
    """Open effects of another store are shown, and settled there."""
    calls, claims = apart
    assert opened(calls).get("/api/effects").json()["rows"] == []
    client = opened(calls, claims=claims, clock=lambda: 1_800_000_100.0)
    (row,) = client.get("/api/effects").json()["rows"]
    assert client.get("/api/overview", params={"period": "all"}).json()["open_effects"] == 1
    page = client.get("/effects").text
    form = {"mark": mark_of(page), "do": "settle", "id": row["key"], "state": "not_done"}
    client.post("/change", data=form | {"next": "/effects"})
    assert client.get("/api/effects").json()["rows"] == []


def test_the_configuration_says_where_claims_are(apart: tuple[Path, Path], tmp_path: Path) -> None:
    """``[journal] claims`` is about the journal of that section; ``--claims`` about the one named."""
    calls, claims = apart
    file = tmp_path / "failwise.toml"
    file.write_text('[journal]\npath = "calls.db"\nclaims = "claims.db"\n', "utf-8")
    settings = read(str(file))
    assert _journal(None, None, settings) == {"journal": str(calls), "claims": str(claims)}
    assert _journal(str(calls), None, settings)["claims"] is None
    assert _journal(str(calls), "x.db", settings)["claims"] == "x.db"
    assert _journal(None, "y.db", settings)["claims"] == "y.db"


# -- what a journal keeps of repairs -----------------------------------------------------------------


def test_repairs_are_shown_as_a_difference(tmp_path: Path, opened: Opened) -> None:
    """From the journal alone, whoever made the calls: before and after, without secrets."""
    path = tmp_path / "repairs.db"
    with closing(Journal(path)) as journal, Runtime(journal) as runtime:

        @runtime.tool(read_only=True)
        def book(count: int, password: str, name: str = "") -> str:
            return name

        runtime.call_sync(
            "book", {"count": "4", "password": "hunter2-hunter2", "name": "<b>x</b>"}, call_id="b-1"
        )
        runtime.call_sync("book", '{"count": 2, "password": "hunter2-hunter2",}', call_id="b-2")
    client = opened(path)
    params = {"period": "all"}
    shown = 0
    for call in ("b-1", "b-2"):
        data = client.get("/api/call", params={"id": call} | params).json()
        assert len(data["repairs"]) == data["call"]["repairs"] > 0
        page = client.get("/call", params={"id": call}).text
        assert page.count("<del>") == page.count("<ins>") == len(data["repairs"])
        assert "hunter2" not in page + json.dumps(data)
        shown += len(data["repairs"])
    assert shown >= 2
    (count,) = [
        one
        for one in client.get("/api/call", params={"id": "b-1"}).json()["repairs"]
        if one["path"] == "/count"
    ]
    assert (count["before"], count["after"]) == ("4", 4)


# -- filters -----------------------------------------------------------------------------------------


def test_a_filter_goes_along_and_can_be_taken_away(played: Path, opened: Opened) -> None:
    """Verdict, clusters and figures are those of the calls that fit; the navigation keeps the filter, a
    click takes it away."""
    client = opened(played)
    data = client.get("/api/overview", params={"tool": "pay"}).json()
    assert data["total"]["calls"] == data["total"]["failures"] == 1
    assert [row["code"] for row in data["clusters"]["rows"]] == ["network.gateway_timeout"]
    assert "gateway_timeout" in data["clusters"]["verdict"]["en"]
    assert data["open_effects"] == 1
    assert [row["tool"] for row in data["lost"]] == ["pay"]
    page = client.get("/", params={"tool": "pay"}).text
    assert 'href="/clusters?tool=pay"' in page
    assert 'class="chip" href="/"' in page
    assert 'href="/effects"' in page
    kinds = client.get("/api/clusters", params={"category": "network"}).json()
    assert {row["category"] for row in kinds["rows"]} == {"network"}
    assert kinds["kinds"] == 2
    nothing = client.get("/api/overview", params={"success": "yes"}).json()
    assert nothing["clusters"]["rows"] == []
    category = client.get("/api/overview", params={"category": "network"}).json()
    assert (category["open_effects"], category["prevented"]) == (None, None)  # claims have none
    assert "Repeats prevented" not in client.get("/", params={"category": "network"}).text


@pytest.mark.parametrize(
    "where",
    [{"run": "job-pay"}, {"effect": "unknown"}, {"text": "no answer"}, {"model": "nobody"}],
    ids=str,
)
def test_filters_that_need_the_calls(played: Path, opened: Opened, where: dict[str, str]) -> None:
    """What no rollup can answer is counted from the calls: clusters and figures agree."""
    client = opened(played)
    data = client.get("/api/overview", params=where).json()
    counted = sum(row["count"] for row in data["clusters"]["rows"])
    assert counted == data["total"]["failures"]
    for path in ("/", "/clusters", "/tools", "/upstreams"):
        assert client.get(path, params=where).status_code == 200


# -- days that are summed up -------------------------------------------------------------------------


def _old(path: Path, now: float) -> None:
    with closing(Journal(path, retention_days=90)) as journal:
        for day in range(20):
            journal.put(good(f"c{day}", timestamp=now - day * DAY))
            journal.put(bad(f"b{day}", timestamp=now - day * DAY))
        assert journal.flush(10)
        journal.write([("DELETE FROM spans", ())])  # as one that was recorded before there were any


def test_older_journals_are_summed_up_behind_the_scenes(tmp_path: Path) -> None:
    """Whoever looks sums up the days that are over; pages say the same before and after."""
    import time

    path, now = tmp_path / "old.db", time.time()
    _old(path, now)
    readers = answers.Readers(path)
    with TestClient(app(path), base_url="http://localhost") as client:
        before = client.get("/api/overview", params={"period": "30d"}).json()
        readers.sum_up()
        readers.close()
        with open_reader(path) as reader:
            assert len(reader.good_spans()) >= 19
        after = client.get("/api/overview", params={"period": "30d", "again": "1"}).json()
    for name in ("total", "course", "categories", "heat"):
        assert after[name] == before[name]
    assert before["total"]["calls"] == 40


def test_periods_of_days_begin_with_a_day() -> None:
    """Hours begin with an hour, days with a day, so that the first column is as whole as the others."""
    from failwise.dashboard.asked import asked

    now = 1_800_012_345.0
    assert asked({"period": "24h"}, now).since == (now - DAY) // 3_600 * 3_600
    for period, days in (("7d", 7), ("30d", 30)):
        since = asked({"period": period}, now).since
        assert since is not None
        assert since % DAY == 0
        assert days * DAY <= now - since < (days + 1) * DAY


def test_connections_end_with_the_server(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dashboard that a server serves by itself closes what it opened, also what is lent just then."""
    closed: list[object] = []
    original: Callable[..., None] = answers.Reader.close

    def close(self: Any) -> None:
        closed.append(self)
        original(self)

    monkeypatch.setattr(answers.Reader, "close", close)
    readers = answers.Readers(played)
    with readers.lent() as first, readers.lent() as second:
        pass
    with readers.lent() as lent:
        readers.close()
        assert len(closed) == 1
    assert set(map(id, closed)) == {id(first), id(second)}
    assert lent in (first, second)
    assert pages.FRESH <= 2
