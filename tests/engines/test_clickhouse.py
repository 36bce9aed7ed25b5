"""The journal in ClickHouse: the real engine, inside the process (chDB)."""

import gzip
import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlparse

import pytest

pytest.importorskip("chdb", reason="chdb is not installed: pip install -e '.[engines]'")

import failwise
from failwise.cli.main import main
from failwise.journal.journal import Journal
from failwise.journal.reader import open_reader
from failwise.testing import JournalConformance
from failwise.testing.journal_samples import claim_of, good, many, recovered
from failwise.vocabulary.errors import UsageError

_numbers = itertools.count()


class TestClickHouse(JournalConformance):
    """Claims live beside it, in SQLite."""

    @pytest.fixture(autouse=True)
    def _place(self, folder: Path, tmp_path: Path) -> Iterator[None]:
        self.folder, self.beside = folder, tmp_path
        self.made: list[Journal] = []
        yield
        for journal in self.made:
            journal.close()

    def make_journal(self, **options: Any) -> Journal:
        number = next(_numbers)
        options["claims"] = self.beside / f"{number}.db"
        return self._opened(f"chdb:///{self.folder}?database=t{number}", options)

    def again(self, journal: Journal, **options: Any) -> Journal:
        options["claims"] = journal._claims_target.address
        return self._opened(journal._target.address, options)

    def _opened(self, place: str, options: dict[str, Any]) -> Journal:
        made = Journal(place, **options)
        self.made.append(made)
        return made


Make = Callable[..., Journal]


@pytest.fixture
def make(folder: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes journals in a database of the test's own, and closes them."""
    made: list[Journal] = []
    place = f"chdb:///{folder}?database=u{next(_numbers)}"

    def build(**options: Any) -> Journal:
        options.setdefault("claims", tmp_path / "claims.db")
        journal = Journal(options.pop("place", place), **options)
        made.append(journal)
        return journal

    yield build
    for journal in made:
        journal.close()


def test_claims_are_refused_and_kept_beside(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named as a place for claims it is refused; without a name claims go into a local file."""
    journal = make()
    with pytest.raises(UsageError, match="cannot grant one of two"):
        Journal("clickhouse://host/db", claims="chdb:///x")
    with pytest.raises(UsageError, match="say Journal"):
        journal._writer.store.resolve("key", "done")
    monkeypatch.chdir(tmp_path)
    beside = make(claims=None)
    assert beside.claim(claim_of("1")).result(20).state == "granted"
    assert (tmp_path / ".failwise" / "claims.db").is_file()


def test_a_runtime_records_into_it(make: Make) -> None:
    """Calls, failures and claims of a real runtime, read by the same reader."""
    journal = make()
    runtime = failwise.Runtime(journal)

    @runtime.tool
    def order(sku: str) -> str:
        if sku == "none":
            raise failwise.ToolError("no such thing", code="business.not_found", effect="rejected")
        return sku

    with runtime.run(id="job") as run:
        assert run.call_sync("order", {"sku": "a"}, call_id="c1").success
        assert not run.call_sync("order", {"sku": "none"}, call_id="c2").success
        assert run.call_sync("order", {"sku": "a"}, call_id="c1").value == "a"
    with open_reader(journal) as reader:
        (total,) = reader.figures()
        assert (total["calls"], total["refusals"]) == (3, 1)
        assert reader.prevented() == [{"state": "done", "calls": 1}]
        found = reader.call("c2")
        assert found is not None
        assert found["code"] == "business.not_found"


def test_rows_expire_by_themselves(make: Make) -> None:
    """Each table's time to live follows what is kept, also when that changes."""
    for days in (30, 9):
        journal = make(retention_days=days, figures_days=90)
        journal.put(good())
        assert journal.flush(20)
        for table, kept in (("calls", days), ("attempts", days), ("rollup_calls", 90)):
            (row,) = journal.rows(
                "SELECT create_table_query AS q FROM system.tables"
                " WHERE database = currentDatabase() AND name = ?",
                (table,),
            )
            assert f"toIntervalDay({kept})" in row["q"]
            assert "PARTITION BY" in row["q"] or table.startswith("rollup")
        journal.close()


def test_a_batch_of_unknown_fate_counts_once(make: Make) -> None:
    """The answer to an insert is lost, before it counted or after: it is sent again as it was, and
    neither calls nor counts are doubled."""
    journal = make()
    journal.put(good("first"))
    assert journal.flush(20)
    store: Any = journal._writer.store
    for number, arrived in enumerate((True, False, True)):
        inner = store.client()

        class Losing:
            """A client that loses the answer to an insert."""

            def __init__(self, inner: Any, *, arrived: bool) -> None:
                self.inner, self.arrived = inner, arrived

            def __getattr__(self, name: str) -> Any:
                return getattr(self.inner, name)

            def insert(self, *given: Any) -> None:
                if self.arrived:
                    self.inner.insert(*given)
                raise ConnectionResetError("the answer was lost")

        with journal._writer.door:
            store._client = Losing(inner, arrived=arrived)
        for call in range(10):
            journal.put(recovered(f"{number}-{call}"))
        until = time.monotonic() + 20
        while not journal.flush() and time.monotonic() < until:
            time.sleep(0.05)
    reader = open_reader(journal)
    assert journal.rows("SELECT count(DISTINCT call_id) AS a, count(*) AS b FROM calls") == [
        (31, 31)
    ]
    assert [row["calls"] for row in reader.figures()] == [31]
    assert [row["attempts"] for row in reader.attempts()] == [30]


def test_a_journal_moves_there_and_back(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a file into ClickHouse and back: every count, of calls that are gone too, and every call."""
    first, back = tmp_path / "a.db", str(tmp_path / "b.db")
    journal = Journal(first, retention_rows=100)
    for result in many(300):
        journal.put(result)
    journal.claim(claim_of("1")).result(20)
    journal.settle(claim_of("1").key, "unknown")
    while journal.prune():
        pass
    journal.close()
    there = f"chdb:///{folder}?database=u{next(_numbers)}"
    beside = str(tmp_path / "claims.db")
    assert main(["journal", "move", str(first), there, "--claims", beside]) == 0
    assert main(["journal", "check", there]) == 0
    assert main(["journal", "move", there, back, "--claims-from", beside]) == 0
    capsys.readouterr()
    figures = []
    for place in (str(first), there, back):
        with open_reader(place) as reader:
            figures.append(
                [
                    row | {name: round(row[name], 3) for name in ("duration_ms", "waited_ms")}
                    for row in reader.figures(by=("tool", "code", "hour"))
                ]
            )
            assert len(reader.calls(limit=1_000)) == 100
    assert figures[0] == figures[1] == figures[2]
    with open_reader(back) as reader:
        assert [one["key"] for one in reader.open_effects()] == [claim_of("1").key]


class _Server(BaseHTTPRequestHandler):
    """ClickHouse's HTTP interface over the engine inside this process."""

    engine: Any
    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        asked = dict(parse_qsl(urlparse(self.path).query))
        self.seen.append(asked.get("database", ""))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        sql = (asked.pop("query", "") + "\n").lstrip("\n") + body.decode("utf-8", "surrogateescape")
        if "insert_deduplication_token" in asked:
            names = ("insert_deduplication_token", "max_partitions_per_insert_block",
                     "deduplicate_blocks_in_dependent_materialized_views")  # fmt: skip
            settings = ", ".join(f"{name} = '{asked[name]}'" for name in names)
            sql = re.sub(r"\s+FORMAT\s", f" SETTINGS {settings} FORMAT ", sql, count=1)
        try:
            self.engine._session.query(f"USE {asked.get('database') or 'default'}")
            form = re.search(r"FORMAT\s+(\w+)\s*$", sql)
            answer = self.engine._session.query(sql, form[1] if form else "TabSeparated").bytes()
            self.send_response(200)
        except Exception as error:
            answer = str(error).encode()
            self.send_response(500)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""


def test_the_client_of_a_server_speaks_its_interface(folder: Path, make: Make) -> None:
    """clickhouse-connect, over real HTTP, to an engine that is real: tables, inserts, questions."""
    pytest.importorskip("clickhouse_connect", reason="clickhouse-connect is not installed")
    from failwise.journal import clickhouse_client as clickhouse
    from failwise.journal.place import locate

    _Server.engine = clickhouse.connect(locate(f"chdb:///{folder}?database=served"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        name = f"v{next(_numbers)}"
        journal = make(place=f"clickhouse://me:s3cr3t@127.0.0.1:{server.server_port}/{name}")
        assert "s3cr3t" not in journal.place
        for result in many(200):
            journal.put(result)
        assert journal.flush(30)
        reader = open_reader(journal)
        assert sum(row["calls"] for row in reader.figures(by=("tool",))) == 200
        assert len(list(reader.failures())) == sum(row["failures"] for row in reader.figures())
        assert name in _Server.seen
        journal.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_exit_of_the_interpreter_flushes(tmp_path: Path) -> None:
    """What was put right before the end of a script is there afterwards; the engine ends in order."""
    place = f"chdb:///{tmp_path}/engine"
    script = (
        "import sys; from failwise.journal.journal import Journal;"
        "from failwise.testing.journal_samples import good;"
        "journal = Journal(sys.argv[1], claims=sys.argv[2]);"
        "[journal.put(good(str(n))) for n in range(100)]"
    )
    read = (
        "import sys; from failwise.journal.reader import open_reader;"
        "reader = open_reader(sys.argv[1], sys.argv[2]); print(reader.figures()[0]['calls'])"
    )
    for text, said in ((script, ""), (read, "100\n")):
        done = subprocess.run(
            [sys.executable, "-c", text, place, str(tmp_path / "claims.db")],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        assert (done.stdout, done.stderr) == (said, "")
