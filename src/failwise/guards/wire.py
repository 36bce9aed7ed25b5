"""One connection to a Redis or Valkey server, over which many decisions go in one round trip."""

import functools
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

from failwise.guards.names import Command, bulk
from failwise.vocabulary.errors import UsageError

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys", "unix")
SCRIPTS: Final = ("admit", "release", "beat", "look")


class Gone(Exception):
    """The server does not answer as it should, or not in time; the text says how."""


class Wire:
    """A connection that is opened when first needed and dropped at the first trouble.

    `slow`: seconds that one reply may take; `connect`: the same for connecting. `place` names the
    server for people, without its password. Not locked: one thread owns it. Raises `UsageError` for
    a URL that cannot work, or where the client package is missing.
    """

    def __init__(self, url: str, *, slow: float, connect: float) -> None:
        self.place = place_of(url)
        self._slow = slow
        self._options = _options(url, connect)
        self._connection: Any = None
        self._heads: dict[str, bytes] = {}

    @property
    def connected(self) -> bool:
        return self._connection is not None

    def open(self) -> None:
        """Connect, sign in and leave the scripts with the server. Raises `Gone`."""
        from redis.exceptions import RedisError

        options = dict(self._options)
        connection = options.pop("connection_class")(**options)
        try:
            connection.connect()
            for name in SCRIPTS:
                connection.send_command("SCRIPT", "LOAD", script(name), check_health=False)
                digest = bytes(connection.read_response(disable_decoding=True))
                self._heads[name] = bulk("EVALSHA", digest, 4)
        except (RedisError, OSError, ValueError) as error:
            connection.disconnect()
            raise Gone(said(error)) from error
        self._connection = connection

    def drop(self) -> None:
        """Close the connection; what was under way is lost."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def forget(self) -> None:
        """In a forked child: the connection is the parent's, nothing may be said on it."""
        self._connection = None

    def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Run scripts in order, in one round trip; their replies.

        A server that lost the scripts is sent them again. Raises `Gone`, after which the connection
        is closed and it is not known which of the commands were performed.
        """
        from redis.exceptions import NoScriptError, RedisError

        connection = self._connection
        try:
            self._send(
                [
                    b"*%d\r\n%b%b" % (3 + count, self._heads[name], rest)
                    for name, count, rest in commands
                ]
            )
            replies: list[Any] = []
            lost: list[int] = []
            for number in range(len(commands)):
                try:
                    replies.append(self._read())
                except NoScriptError:
                    lost.append(number)
                    replies.append(None)
            if lost:
                again = [commands[number] for number in lost]
                self._send(
                    [
                        b"*%d\r\n%b%b" % (3 + count, bulk("EVAL", script(name), 4), rest)
                        for name, count, rest in again
                    ]
                )
                for number in lost:
                    replies[number] = self._read()
        except (RedisError, OSError, ValueError) as error:
            self.drop()
            raise Gone(said(error)) from error
        except BaseException:
            self._connection = None
            connection.disconnect()
            raise
        return replies

    def remove(self, key: str, member: str) -> None:
        """Take a member out of a sorted set. Raises `Gone`."""
        from redis.exceptions import RedisError

        try:
            self._send([b"*3\r\n" + bulk("ZREM", key, member)])
            self._read()
        except (RedisError, OSError, ValueError) as error:
            self.drop()
            raise Gone(said(error)) from error

    def keys(self, pattern: str, limit: int) -> list[bytes]:
        """Names of keys, at most `limit`. Raises `Gone`."""
        from redis.exceptions import RedisError

        found: set[bytes] = set()
        cursor: bytes = b"0"
        try:
            while True:
                self._send([b"*6\r\n" + bulk("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)])
                cursor, names = self._read()
                found.update(names)
                if cursor == b"0" or len(found) >= limit:
                    return sorted(found)[:limit]
        except (RedisError, OSError, ValueError) as error:
            self.drop()
            raise Gone(said(error)) from error

    def _send(self, commands: Sequence[bytes]) -> None:
        self._connection.send_packed_command([b"".join(commands)], check_health=False)

    def _read(self) -> Any:
        connection = self._connection
        if not connection.can_read(timeout=self._slow):
            raise TimeoutError(f"no answer within {self._slow * 1000:g} ms")
        return connection.read_response(disable_decoding=True)


@functools.cache
def script(name: str) -> str:
    """The text of a script: what all begin with, then its own."""
    folder = resources.files("failwise.guards").joinpath("scripts")
    return "\n".join(folder.joinpath(f"{part}.lua").read_text("utf-8") for part in ("common", name))


def said(error: BaseException) -> str:
    """What an error says, on one bounded line and without what a URL may hold."""
    text = " ".join(str(error).split())
    text = re.sub(r"//[^/\s@]{0,500}@", "//", text)
    return f"{text[:200]}" if text else type(error).__name__


def place_of(url: str) -> str:
    """The server a URL names, for people: scheme, host, port, path; no user, password or options."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _options(url: str, connect: float) -> dict[str, Any]:
    """What the client's connection takes, from a URL. Raises `UsageError`."""
    scheme = url.partition("://")[0]
    if "://" not in url or scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        shown = place_of(url) if "://" in url else url.partition("@")[2] or url
        raise UsageError(f"guards={shown!r}: write a URL that begins with one of {known}")
    try:
        from redis.connection import Connection, parse_url
        from redis.exceptions import RedisError
    except ImportError as error:
        raise UsageError(
            "guards in Redis or Valkey need the package redis: pip install 'failwise[fleet]'"
        ) from error
    spelled = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    try:
        options = parse_url(spelled + url[len(scheme) :])  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise UsageError(f"guards={place_of(url)!r}: {said(error)}") from error
    path = urlsplit(url).path.strip("/")
    if scheme != "unix" and path and not path.isdigit():
        raise UsageError(
            f"guards={place_of(url)!r}: the path is the number of a database, such as /0"
        )
    options.setdefault("connection_class", Connection)
    options.setdefault("socket_timeout", connect)
    options.setdefault("socket_connect_timeout", connect)
    options.setdefault("protocol", 2)
    try:
        options["connection_class"](**{k: v for k, v in options.items() if k != "connection_class"})
    except (TypeError, ValueError, RedisError) as error:
        raise UsageError(f"guards={place_of(url)!r}: {said(error)}") from error
    return dict(options)
