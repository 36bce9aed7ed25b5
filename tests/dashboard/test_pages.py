"""Every page, its JSON twin, and what a person finds on them."""

import html
import re
import tomllib
from contextlib import closing
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from failwise import Runtime
from failwise.dashboard.view import PATHS
from failwise.journal.journal import Journal
from failwise.vocabulary.kinds import Category
from tests.dashboard.conftest import Opened, mark_of
from tests.dashboard.seed import HOSTILE, QUICK


def links(page: str, path: str) -> list[str]:
    """The links of a page that lead to a path, in order."""
    found = [html.unescape(one) for one in re.findall(r'href="([^"]+)"', page)]
    return [one for one in found if urlsplit(one).path == path]


def words(page: str) -> str:
    """The text of a page's content."""
    main = page.partition("<main")[2].partition("</main>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


@pytest.fixture
def client(played: Path, opened: Opened) -> TestClient:
    return opened(played)


@pytest.mark.parametrize("path", [*PATHS.values(), "/tools?sort=p99_ms", "/clusters?muted=1"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_page_has_a_twin(client: TestClient, path: str, lang: str) -> None:
    """Each page renders in both languages and links to the same as JSON, in which nothing is lost."""
    page = client.get(path, params={"lang": lang, **_parameters(path)})
    assert page.status_code == 200, page.text
    (twin,) = re.findall(r'href="(/api/[^"]*)"', page.text)
    data = client.get(html.unescape(twin))
    assert data.status_code == 200
    assert isinstance(data.json(), dict)
    assert f'lang="{"zh-Hans" if lang == "zh" else "en"}"' in page.text


def _parameters(path: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}


def test_both_languages_say_the_same_things() -> None:
    """Each sentence and name stands in both, with the same facts in it."""
    text = resources.files("failwise.dashboard").joinpath("words.toml").read_text("utf-8")
    data = tomllib.loads(text)

    def shape(table: dict[str, Any]) -> dict[str, Any]:
        return {
            name: shape(value) if isinstance(value, dict) else set(re.findall(r"{\w+}", value))
            for name, value in table.items()
        }

    assert shape(data["en"]) == shape(data["zh"])
    assert set(data["en"]["category"]) == set(Category)


def test_the_overview_counts(client: TestClient) -> None:
    """The figures of the first page are those of the journal."""
    data = client.get("/api/overview").json()
    total = data["total"]
    assert total["calls"] == 24
    assert total["successes"] + total["failures"] == total["calls"]
    assert total["degraded"] == 1
    assert total["recovered"] == 2  # the stock, and the order that was found
    assert data["open_effects"] == 1
    assert sum(point["calls"] for point in data["course"]) == total["calls"]
    assert sum(sum(row["hours"]) for row in data["heat"]["rows"]) == total["failures"]
    page = words(client.get("/").text)
    for sentence in ("Success rate", "Effects to settle", "It happened", "certificate has expired"):
        assert sentence in page


def test_certificate_in_two_clicks(client: TestClient) -> None:
    """From the overview: which certificate expired, and since when."""
    overview = client.get("/").text
    assert re.search(r"certificate has expired.*?expired 20\d\d-\d\d-\d\d", words(overview))
    pages = [client.get(one).text for one in links(overview, "/cluster")]
    (page,) = [one for one in pages if "security.certificate_expired" in words(one)[:200]]
    assert re.search(r"not_after 20\d\d-\d\d-\d\dT", words(page))
    call = client.get(links(page, "/call")[0]).text
    assert "exchange_rate" in words(call)
    assert "expired_since" in call


def test_lost_order_in_one_click(client: TestClient) -> None:
    """From the overview: the order whose answer was lost, and that it exists."""
    overview = client.get("/").text
    lost = words(overview).partition("Answers that were lost")[2]
    assert re.search(r"create_order It happened checked", lost)
    assert "pay Not known: look it up" in lost
    call = next(
        page
        for page in (client.get(one).text for one in links(overview, "/call"))
        if "create_order" in words(page)[:40]
    )
    assert "it had happened" in words(call)
    assert "R-1001" in words(call)


def test_why_the_chain_stopped_in_two_clicks(client: TestClient) -> None:
    """From the overview: the run that was stopped, by which call, and why that one failed."""
    overview = client.get("/").text
    (run,) = links(overview, "/run")
    tree = client.get(run).text
    text = words(tree)
    assert text.count("not sent, because read_customer ended with auth.forbidden") == 2
    cause = next(one for one in links(tree, "/call") if "c-1" in one)
    assert "not this one" in words(client.get(cause).text)


def test_the_most_retries_at_once(client: TestClient) -> None:
    """From the overview: which upstream got the most retries, and what they were worth."""
    overview = words(client.get("/").text).partition("Upstreams with the most retries")[2]
    assert "find_store.example 1 3 0 3" in overview  # calls, retries, worth it, in vain
    assert "check_stock.example 3 2 2 0" in overview
    rows = client.get("/api/upstreams").json()["rows"]
    assert rows[0]["name"] == "find_store.example"  # sorted by retries, unless told otherwise
    worth = {row["name"]: (row["retries"], row["cured"], row["wasted"]) for row in rows}
    assert worth["find_store.example"] == (3, 0, 3)
    assert worth["check_stock.example"] == (2, 2, 0)
    assert "2 (100 %)" in words(client.get("/upstreams").text)


def test_one_call_says_everything(client: TestClient) -> None:
    """Time line, attempts with their reasons, evidence, rules, words, and how to reproduce it."""
    page = client.get("/call", params={"id": "store-1"}).text
    data = client.get("/api/call", params={"id": "store-1"}).json()
    parts = [part["what"] for part in data["timeline"]]
    assert parts.count("failed") == 4
    assert "wait" in parts
    assert all(part["from"] <= part["to"] for part in data["timeline"])
    assert len(data["attempts"]) == 4
    assert data["told"]["model"]["en"].startswith("FAILED: tool find_store")
    assert "find_store" in data["told"]["user"]["zh"]
    text = words(page)
    for sentence in (
        "Where the time went",
        "Rules that spoke",
        "What the model saw",
        "failwise explain",
    ):
        assert sentence in text
    assert data["attempts"][0]["reason"] in text


def test_a_fallback_stands_below_its_call(client: TestClient) -> None:
    """A run shows who called whom, and the parent names its children."""
    rows = client.get("/api/run", params={"id": "job-fallback"}).json()["rows"]
    assert [(row["tool"], row["depth"]) for row in rows] == [
        ("search_live", 0),
        ("search_cache", 1),
    ]
    data = client.get("/api/call", params={"run": "job-fallback", "id": "live-1"}).json()
    assert [child["tool"] for child in data["children"]] == ["search_cache"]
    assert data["call"]["repairs"] > 0


@pytest.mark.parametrize(
    ("filters", "tools"),
    [
        ({"tool": "pay"}, {"pay"}),
        ({"run": "job-stopped"}, {"read_customer", "send_voucher", "archive_customer"}),
        ({"code": "runtime.chain_aborted"}, {"send_voucher", "archive_customer"}),
        ({"text": "NOT THIS ONE"}, {"read_customer"}),
        ({"effect": "unknown", "success": "no"}, {"pay"}),
        ({"verified": "yes"}, {"create_order"}),
        ({"upstream": "search.example"}, {"search"}),
        ({"http_status": "400"}, {"read_review"}),
        ({"text": "nobody said this"}, set()),
    ],
)
def test_calls_are_found(client: TestClient, filters: dict[str, str], tools: set[str]) -> None:
    """Filters stand in the address, alone or together."""
    rows = client.get("/api/calls", params=filters).json()["rows"]
    assert {row["tool"] for row in rows} == tools
    assert client.get("/calls", params=filters).status_code == 200


def test_pages_of_calls_follow_each_other(played: Path, client: TestClient) -> None:
    """Going on from page to page shows every call once, newest first."""
    from failwise.dashboard.asked import Asked
    from failwise.dashboard.search import found_calls
    from failwise.journal.reader import Filter, open_reader

    with open_reader(played) as reader:
        everything = [row["id"] for row in reader.calls(limit=1_000)]
        seen: list[int] = []
        before = None
        while True:
            found = found_calls(reader, Asked("all", None, None, Filter(), {}, before), 7)
            seen += [row["id"] for row in found.rows]
            before = found.following
            if before is None:
                break
    assert seen == everything
    assert client.get("/calls", params={"before": "nonsense"}).status_code == 400


def test_a_search_looks_at_a_bounded_number(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that finds little says how far it looked; the next ones find the rest, each call once."""
    from failwise.dashboard import search
    from failwise.dashboard.asked import Asked
    from failwise.journal.reader import Filter, open_reader

    monkeypatch.setattr(search, "LOOKED_AT", 5)
    with open_reader(played) as reader:
        wanted = {row["id"] for row in reader.calls(Filter(tool="search"), limit=1_000)}
        seen: list[int] = []
        before, pages = None, 0
        while pages < 50:
            asked = Asked("all", None, None, Filter(tool="search"), {}, before)
            found = search.found_calls(reader, asked, 50)
            seen += [row["id"] for row in found.rows]
            before, pages = found.following, pages + 1
            if before is None:
                break
            assert found.searched_to is not None
    assert pages > 3
    assert len(seen) == len(set(seen))
    assert set(seen) == wanted


def test_empty_journals_say_what_to_do(tmp_path: Path, opened: Opened) -> None:
    """Nothing recorded, nothing in this period, nothing open: the page says what comes next."""
    with closing(Journal(tmp_path / "empty.db")) as journal:
        journal.rows("SELECT 1")
        client = opened(journal)
        assert "failwise demo" in words(client.get("/?period=all").text)
        assert "everything that was recorded" in words(client.get("/").text)
        assert "No effect is open" in words(client.get("/effects").text)
        for path in PATHS.values():
            assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    "address",
    ["/call?id=nobody", "/run?id=nobody", "/cluster?id=nobody", "/no/such/page", "/static/words.toml",
     "/static/..%2Fwords.toml"],
)  # fmt: skip
def test_what_is_not_there(client: TestClient, address: str) -> None:
    """404, with the way back."""
    answer = client.get(address)
    assert answer.status_code == 404
    assert "To the overview" in answer.text


@pytest.mark.parametrize(
    "address",
    ["/?period=2y", "/calls?success=perhaps", "/calls?http_status=12", "/?since=soon", "/tools?sort=x",
     "/?since=nan", "/calls?before=1-"],
)  # fmt: skip
def test_addresses_that_mean_nothing(client: TestClient, address: str) -> None:
    """400 that says what can be written, on the page and on its twin."""
    assert client.get(address).status_code == 400
    path, _, query = address.partition("?")
    twin = client.get(f"/api{path if path != '/' else '/overview'}?{query}")
    assert twin.status_code == 400
    assert twin.json()["error"]


def test_texts_of_strangers_stay_texts(client: TestClient) -> None:
    """Markup is shown, not obeyed; marks that turn the direction are spelt out; words are bounded."""
    page = client.get("/call", params={"id": "hostile-1"}).text
    assert "<script>document" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page
    assert "⟨U+202E⟩" in page
    assert "{{ 7 * 7 }}" in html.unescape(page)
    assert HOSTILE not in html.unescape(page)
    for path in ("/", "/clusters", "/calls"):
        text = client.get(path).text
        assert "<script>document" not in text
        assert "\u202e" not in text


class _Checker(HTMLParser):
    """Collects what a page does wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.labels: set[str] = set()
        self.fields: list[dict[str, str | None]] = []
        self.tables = self.captions = self.headings = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        have = dict(attributes)
        if "style" in have or tag == "style" or (tag == "script" and not have.get("src")):
            self.faults.append(f"inline {tag}: {have}")
        self.faults += [f"{tag} {name}" for name in have if name.startswith("on")]
        for name in ("src", "href", "action"):
            if (have.get(name) or "").partition(":")[0] in ("http", "https", "data", "javascript"):
                self.faults.append(f"{tag} {name} leads elsewhere: {have[name]}")
        if tag == "label":
            self.labels.add(have.get("for") or "")
        if tag in ("input", "select") and have.get("type") != "hidden":
            self.fields.append(have)
        if tag == "th" and "scope" not in have:
            self.faults.append("th without scope")
        if tag == "svg" and not have.get("aria-label"):
            self.faults.append("svg without words")
        self.tables += tag == "table"
        self.captions += tag == "caption"
        self.headings += tag == "h1"


@pytest.mark.parametrize("path", [*PATHS.values(), "/call?id=store-1", "/run?id=job-stopped"])
def test_pages_can_be_read_by_everybody(client: TestClient, path: str) -> None:
    """Nothing inline, nothing from elsewhere; labels, captions, heads with their scope, one heading."""
    page = client.get(path).text
    checker = _Checker()
    checker.feed(page)
    assert checker.faults == []
    assert checker.tables == checker.captions
    assert checker.headings == 1
    assert {field.get("id") for field in checker.fields} <= checker.labels
    assert 'class="skip" href="#content"' in page


def test_clusters_are_curated(journal: Path, opened: Opened) -> None:
    """A name, a merge, a split, silence: kept in the journal, and seen at once."""
    client = opened(journal)
    rows = client.get("/api/clusters").json()["rows"]
    one, other = rows[0]["id"], rows[1]["id"]
    page = client.get("/cluster", params={"id": one}).text

    def do(**fields: str) -> None:
        form = {"mark": mark_of(page), "next": "/clusters", **fields}
        answer = client.post("/change", data=form, follow_redirects=False)
        assert answer.status_code == 303, answer.text

    do(do="name", id=one, name="  the  gateway ")
    named = client.get("/api/cluster", params={"id": one}).json()["cluster"]
    assert named["name"] == "the gateway"
    do(do="merge", id=one, others=other)
    assert len(client.get("/api/clusters").json()["rows"]) == len(rows) - 1
    merged = client.get("/api/cluster", params={"id": one}).json()["cluster"]
    do(do="split", id=one, fingerprint=merged["fingerprints"][-1])
    assert len(client.get("/api/clusters").json()["rows"]) == len(rows)
    do(do="mute", id=one)
    quiet = client.get("/api/clusters").json()
    assert one not in [row["id"] for row in quiet["rows"]]
    assert quiet["muted"] == 1
    do(do="unmute", id=one)
    assert client.get("/api/clusters").json()["muted"] == 0


def test_an_effect_is_settled(journal: Path, opened: Opened) -> None:
    """A person says what became of it; then it is gone from the list, and cannot be said twice."""
    client = opened(journal)
    (row,) = client.get("/api/effects").json()["rows"]
    assert row["tool"] == "pay"
    page = client.get("/effects").text
    assert "89" in words(page)
    form = {"mark": mark_of(page), "do": "settle", "id": row["key"], "state": "done"}
    answer = client.post("/change", data=form | {"next": "/effects"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/effects")
    assert client.get("/api/effects").json()["rows"] == []
    assert client.get("/api/overview").json()["open_effects"] == 0
    assert client.post("/change", data=form | {"state": "not_done"}).status_code == 400
    found = client.get("/api/call", params={"run": "job-pay", "id": "pay-1"}).json()
    assert found["claim"]["state"] == "done"


def test_beside_the_runtime(opened: Opened) -> None:
    """In the process that makes the calls: circuits and budgets as they are now, and repairs in full."""
    with Runtime(":memory:", policy=QUICK) as runtime:
        client = opened(None, runtime=runtime)

        @runtime.tool(read_only=True, upstream="shop")
        def stock(sku: str, password: str = "") -> int:
            raise ConnectionRefusedError(111, "refused")

        for number in range(8):
            arguments = "{'sku': 'A-1', 'password': 'hunter2-hunter2'}"
            runtime.call_sync("stock", arguments, call_id=f"s-{number}")
        (row,) = client.get("/api/upstreams").json()["rows"]
        (guards,) = row["guards"]
        assert guards["circuit"] == "open"
        text = words(client.get("/upstreams").text)
        assert "open: nothing is sent" in text
        assert re.search(r"retry budget \d+ of \d+", text)
        data = client.get("/api/call", params={"id": "s-0"}).json()
        assert data["repairs"]
        page = client.get("/call", params={"id": "s-0"}).text
        assert "<del>" in page
        assert "hunter2" not in page


def test_large_journals_have_clusters_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are too many failures to tell everything at once, counts and hours are the same."""
    from failwise.dashboard import kinds

    call = client.get("/call", params={"id": "rate-1"}).text
    (address,) = links(call, "/cluster")
    full = client.get(f"/api{address}").json()
    monkeypatch.setattr(kinds, "_FULL", 0)
    short = client.get(f"/api{address}&again=1").json()
    assert (full["trends"], short["trends"]) == (True, False)
    assert short["cluster"]["count"] == full["cluster"]["count"] == 1
    assert short["cluster"]["hours"] == full["cluster"]["hours"]
    assert sum(short["cluster"]["course"]) == 1
    assert "certificate has expired" in words(client.get(address).text)
