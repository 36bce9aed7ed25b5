"""How a ClickHouse is spoken to: a server over HTTP(S), or the engine inside this process. By text."""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from failwise.journal.place import Target
from failwise.vocabulary.errors import ConfigurationError


class Client(Protocol):
    """One database of a ClickHouse, by text."""

    def query(self, sql: str) -> bytes:
        """The answer in the format ``JSONCompact``."""
        ...

    def command(self, sql: str) -> None: ...

    def insert(
        self, table: str, columns: Sequence[str], block: bytes, settings: Mapping[str, str]
    ) -> None:
        """`block` has the format ``JSONCompactEachRow``."""
        ...

    def close(self) -> None: ...


def connect(target: Target) -> Client:
    """A client of the database that a URL names; it is made where it is not there."""
    return _Embedded(target) if target.engine == "chdb" else _Remote(target)


def _database(name: str, target: Target) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ConfigurationError(
            f"database {name!r}: write letters, digits and _", file=target.shown
        )
    return name


class _Remote:
    """A server, over HTTP(S), by clickhouse-connect."""

    def __init__(self, target: Target) -> None:
        try:
            import clickhouse_connect
        except ImportError as error:
            raise ConfigurationError(
                "a journal in ClickHouse needs clickhouse-connect: "
                "pip install 'failwise[clickhouse]'"
            ) from error
        scheme, _, rest = target.address.partition("://")
        rest, _, query = rest.partition("?")
        front, _, path = rest.partition("/")
        user, _, place = front.rpartition("@")
        name, _, password = user.partition(":")
        host, _, port = place.partition(":")
        options = dict(parse_qsl(query))
        secure = scheme == "clickhouses" or options.pop("secure", "") in ("1", "true")
        database = _database(path or options.pop("database", "failwise"), target)
        if options:
            raise ConfigurationError(
                f"unknown option {next(iter(options))}: write secure or database",
                file=target.shown,
            )
        self._client: Any = clickhouse_connect.get_client(
            host=host or "localhost",
            port=int(port or (8443 if secure else 8123)),
            username=unquote(name) or "default",
            password=unquote(password),
            secure=secure,
            connect_timeout=5,
            send_receive_timeout=60,
            autogenerate_session_id=False,
            query_retries=0,
        )
        self._client.command(f"CREATE DATABASE IF NOT EXISTS {database}")
        self._client.database = database

    def query(self, sql: str) -> bytes:
        answer: bytes = self._client.raw_query(sql, fmt="JSONCompact")
        return answer

    def command(self, sql: str) -> None:
        self._client.command(sql)

    def insert(
        self, table: str, columns: Sequence[str], block: bytes, settings: Mapping[str, str]
    ) -> None:
        self._client.raw_insert(
            table,
            column_names=list(columns),
            insert_block=block,
            settings=dict(settings),
            fmt="JSONCompactEachRow",
        )

    def close(self) -> None:
        self._client.close()


_sessions: dict[str, tuple[Any, threading.Lock]] = {}
"""chDB has one engine in a process; it stays open as long as the process lives."""
_opening = threading.Lock()


def close_engines() -> None:
    """End the engine of this process, once what waits is written."""
    while _sessions:
        session, lock = _sessions.popitem()[1]
        with lock:
            session.close()


class _Embedded:
    """The engine inside this process: ``chdb:///directory?database=name``."""

    def __init__(self, target: Target) -> None:
        try:
            from chdb import session as engine
        except ImportError as error:
            raise ConfigurationError(
                "an embedded ClickHouse needs chdb: pip install 'failwise[engines]'"
            ) from error
        rest, _, query = target.address.partition("://")[2].partition("?")
        folder = rest[1:] if rest.startswith("//") else rest
        self._database = _database(dict(parse_qsl(query)).get("database", "failwise"), target)
        with _opening:
            if folder not in _sessions:
                open_engine: Any = engine.Session
                _sessions[folder] = open_engine(folder), threading.Lock()
        self._session, self._lock = _sessions[folder]
        self._run(f"CREATE DATABASE IF NOT EXISTS {self._database}")

    def _run(self, sql: str, format: str = "JSONCompact", *, use: bool = False) -> bytes:
        with self._lock:
            if use:
                self._session.query(f"USE {self._database}")
            answer: bytes = self._session.query(sql, format).bytes()
        return answer

    def query(self, sql: str) -> bytes:
        return self._run(sql, use=True)

    def command(self, sql: str) -> None:
        self._run(sql, use=True)

    def insert(
        self, table: str, columns: Sequence[str], block: bytes, settings: Mapping[str, str]
    ) -> None:
        said = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
        sql = f"INSERT INTO {table} ({', '.join(columns)}) SETTINGS {said} FORMAT JSONCompactEachRow\n"
        self._run(sql + block.decode(), use=True)

    def close(self) -> None:
        """The engine stays: it is the process's."""
