"""Finding profiles, and users' own: they win, and a faulty file is named by file and line."""

import subprocess
import sys
from pathlib import Path

import pytest

from failwise.profiles import Document, Profiles, build, check
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.kinds import Category, Effect
from failwise.vocabulary.records import UNSET

SHOP = """\
schema: 1
id: shop
name: The shop
kind: api
detect:
  hosts: ["*.shop.example"]
  headers: [x-shop-id]
error_in: both
success:
  - {at: ok, equals: [true]}
fields:
  code: [reason]
  message: [say]
codes:
  - {code: seat_taken, http: 409, en: "Seat is taken", zh: "座位已被占用", as: business.seat_taken, transient: false, action: ask_model, effect: rejected}
  - {code: "slow_*", en: "Too fast", zh: "过于频繁", as: rate_limit.requests, transient: true, action: retry_exact, effect: rejected}
"""


def ids(document: Document, name: str | None = None, library: Profiles | None = None) -> list[str]:
    """The ids of what is found, in order."""
    return [profile.id for profile in (library or Profiles.default()).find(document, name)]


def test_the_named_profile_comes_first() -> None:
    """A tool's own `profile=` stands before what the host says."""
    seen = Document(status=400, host="api.stripe.com", body={})
    assert ids(seen) == ["stripe"]
    assert ids(seen, "slack") == ["slack", "stripe"]


def test_an_unknown_name_is_misuse() -> None:
    """A misspelt profile is refused with the nearest that exists."""
    with pytest.raises(UsageError, match="did you mean stripe"):
        Profiles.default().find(Document(), "strpe")


@pytest.mark.parametrize(
    ("host", "first"),
    [
        ("api.openai.com", "openai"),
        ("x.openai.azure.com", "azure_openai"),
        ("API.GitHub.com", "github"),
        ("api.stripe.com:443", "stripe"),
        ("maps.googleapis.com", "google_maps"),
        ("dashscope.aliyuncs.com", "dashscope"),
        ("ark.cn-beijing.volces.com", "volcengine_ark"),
        ("gitlab.example.org", "gitlab"),
        ("europe-west1-aiplatform.googleapis.com", "google"),
        ("qyapi.weixin.qq.com", "wecom"),
    ],
)
def test_by_host(host: str, first: str) -> None:
    """An exact host comes before a suffix, and a suffix before another glob."""
    assert ids(Document(status=400, host=host))[0] == first


@pytest.mark.parametrize(
    "host", ["evilapi.openai.com.attacker.example", "notslack.com", "github.com"]
)
def test_a_host_that_only_looks_alike_is_nobody(host: str) -> None:
    """A suffix counts at a dot only."""
    assert ids(Document(status=400, host=host)) == []


def test_by_header_body_and_text() -> None:
    """Weaker signs are found too, each marked by what it was."""
    library = Profiles.default()
    by_header = library.hits(Document(status=500, headers={"x-github-request-id": "A"}))
    assert [(hit.profile.id, hit.by) for hit in by_header] == [("github", "header")]
    by_body = library.hits(Document(status=400, body={"object": "error", "code": "x"}))
    assert ("notion", "body") in [(hit.profile.id, hit.by) for hit in by_body]
    by_text = library.hits(Document(text="curl: (6) Could not resolve host: api.example"))
    assert ("curl", "text") in [(hit.profile.id, hit.by) for hit in by_text]


def test_frameworks_edges_and_protocols_come_behind() -> None:
    """Who answered stands before what he answered with; bare statuses are never found."""
    seen = Document(
        status=422,
        host="api.github.com",
        headers={"server": "cloudflare", "cf-ray": "1"},
        body={"detail": [{"loc": ["a"], "msg": "m", "type": "missing"}]},
    )
    found = ids(seen)
    assert found[0] == "github"
    assert found.index("cloudflare") > 0
    assert found.index("fastapi") > 0
    assert "http_status" not in found
    assert Profiles.default().get("http_status") is not None


@pytest.mark.parametrize(
    "text",
    [
        "ERROR something went wrong",
        "Order 4291 created",
        "250 OK message queued",
        "EXCEPTION in thread main",
        "See HTTP/1.1 404 in the docs",
        "",
    ],
)
def test_words_alone_are_no_sign(text: str) -> None:
    """A text names a profile only where the profile knows the code in it."""
    assert ids(Document(text=text)) == []


def test_a_users_profile_is_found_and_read(tmp_path: Path) -> None:
    """A user's YAML works like ours, with a code of their own below a known category."""
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP, "utf-8")
    library = Profiles()
    assert library.add(path) == ("shop",)
    answer = Document(
        status=409, host="eu.shop.example", body={"reason": "seat_taken", "say": "Taken"}
    )
    (profile,) = library.find(answer)
    assert profile.own
    assert profile.success(Document(status=200, body={"ok": False})) is False
    reading = profile.read(answer)
    assert reading is not None
    assert reading.entry is not None
    assert reading.entry.as_code == "business.seat_taken"
    assert reading.entry.category is Category.BUSINESS
    glob = profile.read(Document(status=429, body={"reason": "slow_down_now"}))
    assert glob is not None
    assert glob.entry is not None
    assert glob.entry.as_code == "rate_limit.requests"


def test_a_users_profile_takes_the_place_of_ours(tmp_path: Path) -> None:
    """The same id replaces ours, everywhere in that library and nowhere else."""
    mine = SHOP.replace("id: shop", "id: slack").replace("*.shop.example", "slack.com")
    (tmp_path / "slack.yaml").write_text(mine, "utf-8")
    library = Profiles()
    library.add(tmp_path)
    (profile,) = library.find(Document(status=409, host="slack.com", body={"reason": "seat_taken"}))
    assert profile.own
    assert profile.name == "The shop"
    assert library.find(Document(status=409, host="hooks.slack.com")) == ()
    ours = Profiles.default().get("slack")
    assert ours is not None
    assert not ours.own


def test_a_mapping_will_do() -> None:
    """A profile can be given as data; a fault in it is named."""
    library = Profiles()
    data, _ = build.load(SHOP)
    assert library.add(data) == ("shop",)
    with pytest.raises(ConfigurationError, match="nosuch"):
        library.add({**data, "kind": "nosuch"})


def test_the_shared_library_is_not_added_to() -> None:
    """What everyone shares is changed by nobody."""
    with pytest.raises(UsageError, match="shared"):
        Profiles.default().add("anywhere.yaml")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("kind: api", "kind: server", 4, "server"),
        ("as: business.seat_taken", "as: trouble.seat_taken", 15, "trouble.seat_taken"),
        ("action: retry_exact", "action: retry_after", 16, "retry_after"),
        ("action: ask_model", "action: retry_backoff", 15, "not transient"),
        ("[reason]", '["1nope"]', 12, "not a locator"),
        ("[reason]", '["text:(a+)+b"]', 12, "repeats a repetition"),
        ("[reason]", '["text:' + "a" * 600 + '"]', 12, "longer than"),
        ("seat_taken, http", 'seat_taken, match: "(a|a){1,60}b", http', 15, "hostile text"),
        ("name: The shop", "name: [", 5, "YAML"),
        ("kind: api", "kind: api\nkind: api", 5, "twice"),
        ("  - {at: ok, equals: [true]}", "  - &a {at: ok, equals: [true]}\n  - *a", 10, "aliases"),
        ("id: shop", "ident: shop", 1, "id"),
    ],
)
def test_a_fault_is_named_by_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, says: str
) -> None:
    """Each kind of fault is told with its line; nothing is added."""
    assert old in SHOP
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP.replace(old, new), "utf-8")
    library = Profiles()
    with pytest.raises(ConfigurationError) as caught:
        library.add(path)
    assert caught.value.file == str(path)
    assert caught.value.line == line
    assert says in str(caught.value)
    assert check(path)[0].startswith(f"{path}:{line}: ")
    assert library.get("shop") is None


def test_a_file_that_is_not_there() -> None:
    """A missing file is told, not raised as something else."""
    with pytest.raises(ConfigurationError, match="no such file"):
        Profiles().add("nowhere/shop.yaml")
    assert check("nowhere/shop.yaml") == ["nowhere/shop.yaml: no such file or folder"]


def test_own_profiles_come_before_ours() -> None:
    """Where a user's profile and one of ours fit the same answer, the user's is asked first."""
    library = Profiles()
    data, _ = build.load(SHOP)
    library.add(data)
    seen = Document(status=403, host="api.stripe.com", headers={"x-shop-id": "1"}, body=UNSET)
    assert ids(seen, library=library) == ["shop", "stripe"]
    reading = library.find(seen)[1].read(seen)
    assert reading is not None
    assert reading.entry is not None
    assert reading.entry.effect is Effect.REJECTED


def test_yaml_waits_for_a_users_file() -> None:
    """Looking a failure up loads neither YAML nor a validator, nor asyncio nor an XML reader."""
    script = (
        "import sys\n"
        "from failwise.profiles import Document, Profiles, library\n"
        "if library._compiled('index.json') is None: print('unbuilt'); sys.exit()\n"
        "answer = Document(status=402, host='api.stripe.com', body={'error': {'code': 'card_declined'}})\n"
        "[profile] = Profiles.default().find(answer)\n"
        "assert profile.read(answer).entry is not None\n"
        "print(sorted({'yaml', 'jsonschema_rs', 'asyncio', 'xml', 'tomllib'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    if done.stdout.strip() == "unbuilt":
        pytest.skip("never built here: the sources are used")
    assert done.stdout.strip() == "[]"
