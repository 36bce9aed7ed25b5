"""``failwise call``: a user's own tools and calls against a real server on loopback."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from failwise.faults import Fault, FaultServer, Reply, Request
from tests.cli.conftest import Failwise

CONFIGURATION = """
[journal]
path = "journal.db"

[policy]
preset = "interactive"
[policy.network]
base = 0.01

[credentials.shop]
env = "CLI_TEST_SHOP"

[tools.search]
url = "{server}/search"
query = {{ q = "{{query}}" }}
read_only = true

[tools.order]
method = "POST"
url = "{server}/orders"
body = {{ item = "{{item}}" }}
credential = "shop"

[tools.twice]
function = "cli_test_mine:twice"
"""
MODULE = "def twice(n: int) -> int:\n    return 2 * n\n"
TOKEN = "token-of-the-shop-4711"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, a module and a place for the journal."""
    (tmp_path / "failwise.toml").write_text(
        CONFIGURATION.format(server=server.url()), encoding="utf-8"
    )
    (tmp_path / "cli_test_mine.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setenv("CLI_TEST_SHOP", TOKEN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calls(house: Path, *lines: object) -> str:
    file = house / "calls.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(file)


def test_calls_run_and_each_attempt_is_told(
    failwise: Failwise, house: Path, server: FaultServer
) -> None:
    """A 502 then a success: the attempt with its reason, then the result, then the table."""
    server.route("GET", "/search", [Fault.status(502), Fault.json({"items": []})])
    file = calls(house, {"tool": "search", "arguments": {"query": "shoes"}, "call_id": "c1"})
    ended = failwise("call", file)
    assert ended.code == 0, ended
    assert "attempt 1: network.bad_gateway (502) → retry_backoff" in ended.out
    assert "transient and repeating is safe" in ended.out
    assert "done, recovered" in ended.out
    assert "1 of 1 calls succeeded; requests sent: 2" in ended.out
    assert (house / "journal.db").is_file()


def test_functions_get_the_models_raw_text(failwise: Failwise, house: Path) -> None:
    """A Python function beside the configuration is found; raw text is repaired, unknown tools told."""
    file = calls(
        house,
        {"tool": "twice", "arguments": "{'n': '4'}"},
        {"tool": "twise", "arguments": {}},
    )
    ended = failwise("call", file, "--json")
    first, second = (json.loads(line) for line in ended.out.splitlines())
    assert (first["success"], first["value"], first["call_id"]) == (True, 8, "line-1")
    assert first["repairs"]
    assert second["error_code"] == "model_output.unknown_tool"
    assert ended.code == 1


def test_a_failed_call_is_told_in_chinese(
    failwise: Failwise, house: Path, server: FaultServer
) -> None:
    """A write that may have happened is sent once; the person is told so; exit code 1."""
    server.route("POST", "/orders", Fault.status(500))
    file = calls(house, {"tool": "order", "arguments": {"item": "x"}})
    ended = failwise("call", file, "--lang", "zh")
    assert ended.code == 1
    assert "可能已经生效" in ended.out
    assert server.count("/orders") == 1


def test_credentials_come_from_the_environment_and_stay_hidden(
    failwise: Failwise, house: Path, server: FaultServer
) -> None:
    """The token is sent, and appears in no output and no record, even where the server echoes it."""
    server.route("POST", "/orders", Fault.json({"error": f"bad token {TOKEN}"}, 422))
    file = calls(house, {"tool": "order", "arguments": {"item": "x"}})
    outs = failwise("call", file).out + failwise("call", file, "--json").out
    assert server.requests[0].bearer == TOKEN
    assert TOKEN not in outs
    for part in house.glob("journal.db*"):
        assert TOKEN.encode() not in part.read_bytes()


def test_a_named_run_does_nothing_twice(
    failwise: Failwise, house: Path, server: FaultServer
) -> None:
    """The same file under the same --run: the order is on the server's ledger once."""
    server.route("POST", "/orders", Fault.effect("order", Fault.json({"id": 1})))
    file = calls(house, {"tool": "order", "arguments": {"item": "x"}})
    codes = [failwise("call", file, "--run", "job-7").code for _ in range(2)]
    assert codes == [0, 0]
    assert server.ledger.count("order") == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "a JSON list"),
        ('{"tool": "search", "argument": {}}', "did you mean 'arguments'?"),
        ('{"arguments": {}}', '"tool" must name a tool'),
        ('{"tool": "search", "arguments": 5}', '"arguments" must be'),
        ('{"tool": "search", "call_id": 5}', '"call_id" must be a text'),
        ('{"tool": "search", "deadline": -1}', '"deadline" must be'),
        ('{"tool": "search", "call_id": "one"}', "stands on line 1 already"),
    ],
)
def test_a_wrong_line_is_named_before_anything_is_sent(
    failwise: Failwise, house: Path, server: FaultServer, line: str, told: str
) -> None:
    """One wrong line: file, line and what to write; no call of the file is sent."""
    file = house / "calls.jsonl"
    good = '{"tool": "search", "arguments": {"query": "q"}, "call_id": "one"}\n'
    file.write_text(good + "\n" + line + "\n", encoding="utf-8")
    ended = failwise("call", str(file))
    assert ended.code == 2
    assert ended.err.startswith(f"failwise: {file}:3: ")
    assert told in ended.err
    assert server.count() == 0


def test_calls_come_by_pipe_too(failwise: Failwise, house: Path) -> None:
    """``-`` reads the calls from standard input; none at all is said."""
    ended = failwise("call", "-", stdin='{"tool": "twice", "arguments": {"n": 2}}\n')
    assert (ended.code, "1 of 1" in ended.out) == (0, True)
    assert "holds no calls" in failwise("call", "-", stdin="\n").out


def test_the_journal_is_reported_and_settled(
    failwise: Failwise, house: Path, server: FaultServer
) -> None:
    """What a call left in doubt is listed by effects, settled by a short key, and gone; reported."""
    server.route("POST", "/orders", Fault.status(500))
    failwise("call", calls(house, {"tool": "order", "arguments": {"item": "x"}}), "--run", "j")
    journal = str(house / "journal.db")
    (effect,) = (
        json.loads(line)
        for line in failwise("effects", "--journal", journal, "--json").out.splitlines()
    )
    assert (effect["tool"], effect["run_id"]) == ("order", "j")
    assert effect["key"] in failwise("effects", "list", "--journal", journal).out
    short = effect["key"][:8]
    ended = failwise("effects", "settle", "--journal", journal, short, "done", "--lang", "zh")
    assert (ended.code, "done" in ended.out) == (0, True)
    assert "nothing is in doubt" in failwise("effects", "--journal", journal).out
    ended = failwise("effects", "settle", short, "done", "--journal", journal)
    assert (ended.code, ended.err.startswith("failwise: ")) == (2, True)
    report = json.loads(failwise("report", journal, "--json", "--since", "1h").out)
    assert report["total"]["calls"] == 1
    assert "调用" in failwise("report", journal, "--lang", "zh").out


@pytest.mark.parametrize("command", [("report",), ("effects", "--journal")])
def test_looking_never_makes_a_journal(
    failwise: Failwise, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """An empty file, a text, another program's database: told, and left as they were."""
    empty, text, other = (tmp_path / name for name in ("empty.md", "text.md", "other.db"))
    empty.write_bytes(b"")
    text.write_text("# A text\n", encoding="utf-8")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE users (name)")
    connection.commit()
    connection.close()
    for file in (empty, text, other):
        before = file.read_bytes()
        ended = failwise(*command, str(file))
        assert ended.code == 2
        assert "not a journal" in ended.err
        assert file.read_bytes() == before
    ended = failwise(*command, str(tmp_path / "none.db"))
    assert (ended.code, "no journal here" in ended.err) == (2, True)
    assert sorted(tmp_path.iterdir()) == sorted((empty, text, other))


ARGUMENTS = """
[arguments]
repair = "{repair}"
{fixer}
[tools.weather]
url = "{server}/weather"
schema = {{ type = "object", properties = {{ city_code = {{ type = "string" }} }} }}
"""
FIXER = "def fix(tool, arguments, failure):\n    return {**arguments, 'city_code': '010'}\n"


@pytest.mark.parametrize(
    ("repair", "fixer", "sent"),
    [
        ("confirm", "", ["12"]),
        ("auto", "", ["12", "012"]),
        ("confirm", 'fixer = "cli_test_fixer:fix"', ["12", "010"]),
        ("off", 'fixer = "cli_test_fixer:fix"', ["12"]),
    ],
)
def test_repair_and_fixer_of_the_file_hold_for_its_tools(
    failwise: Failwise, house: Path, server: FaultServer, repair: str, fixer: str, sent: list[str]
) -> None:
    """``[arguments]``: what happens to a guess where nobody sits at a terminal."""

    def weather(request: Request, number: int) -> Reply:
        code = request.query["city_code"]
        if len(code) == 3:
            return Fault.json({"degrees": 21})
        return Fault.json({"error": f"city_code must be 3 digits, got '{code}'"}, 400)

    server.route("GET", "/weather", weather)
    (house / "cli_test_fixer.py").write_text(FIXER, encoding="utf-8")
    (house / "failwise.toml").write_text(
        ARGUMENTS.format(repair=repair, fixer=fixer, server=server.url()), encoding="utf-8"
    )
    ended = failwise("call", calls(house, {"tool": "weather", "arguments": {"city_code": "12"}}))
    assert ended.code == (0 if len(sent) == 2 else 1), ended
    assert [request.query["city_code"] for request in server.requests] == sent


@pytest.mark.parametrize(
    ("option", "text"), [("--since", "yesterday"), ("--until", "24 hours"), ("--since", "5y")]
)
def test_a_moment_nobody_understands_is_said(
    failwise: Failwise, house: Path, option: str, text: str
) -> None:
    """Which option, and how a moment is written."""
    failwise("call", "-", stdin='{"tool": "twice", "arguments": {"n": 2}}\n')
    ended = failwise("report", str(house / "journal.db"), option, text)
    assert ended.code == 2
    assert option in ended.err
    assert "24h" in ended.err
