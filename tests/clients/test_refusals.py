"""What clients refuse themselves before anything is sent, streams that are misused, batches of which a part
failed: the exceptions of the packages, raised by them."""

import importlib
import inspect
import json
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import boto3
import botocore.session
import bson
import httpx
import kafka
import kafka.errors
import openai
import paramiko
import pydantic
import pytest
import redis
import sqlalchemy
import sqlalchemy.exc
from bson.objectid import ObjectId
from elasticsearch import Elasticsearch, helpers
from kafka.consumer.subscription_state import SubscriptionState
from pymongo.errors import BulkWriteError
from sqlalchemy.orm import Session, registry

from failwise.classify import classify_exception
from failwise.faults import FaultServer, Reply
from tests.clients.provoking import judged, peer, raised, refused_port, replying

JSON = {"content-type": "application/json"}


# -- databases


@pytest.fixture
def shelf() -> sqlalchemy.Engine:
    """A database in memory with one table."""
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("create table part (id integer primary key, n int not null)")
        )
    return engine


def test_sqlalchemy_binds(shelf: sqlalchemy.Engine) -> None:
    """Values that do not fit never reach the database."""
    with shelf.connect() as connection:
        bound = sqlalchemy.select(sqlalchemy.bindparam("at", type_=sqlalchemy.DateTime))
        judged(raised(lambda: connection.execute(bound, {"at": "soon"})), "invalid_request.parameter", "not_sent")  # fmt: skip
        missing = sqlalchemy.text("select :a")
        judged(
            raised(lambda: connection.execute(missing, {"b": 1})),
            "invalid_request.missing_parameter|invalid_request.parameter",
            "not_sent",
        )
        row = connection.execute(sqlalchemy.text("select 1 as a")).one()
        judged(raised(lambda: row._mapping["b"]), "tool.exception", "unknown")


def test_sqlalchemy_after_a_failed_flush(shelf: sqlalchemy.Engine) -> None:
    """The session must be rolled back first; nothing of the new statement was sent."""

    class Part:
        id: int

    table = sqlalchemy.Table("part", sqlalchemy.MetaData(), autoload_with=shelf)
    registry().map_imperatively(Part, table)
    with Session(shelf) as session:
        part = Part()
        part.id = 1
        session.add(part)
        raised(session.flush)
        error = raised(lambda: session.execute(sqlalchemy.text("select 1")))
    assert isinstance(error, sqlalchemy.exc.PendingRollbackError)
    judged(error, "business.precondition", "rejected")


def test_sqlite_parameters(tmp_path: Path) -> None:
    """Too many, too few, and of a kind that SQLite has not; nothing ran."""
    base = sqlite3.connect(":memory:")
    judged(
        raised(lambda: base.execute("select ?", (1, 2))), "invalid_request.parameter", "not_sent"
    )
    judged(
        raised(lambda: base.execute("select ?", (object(),))), "invalid_request.parameter", "not_sent|rejected"
    )  # fmt: skip
    base.close()
    judged(raised(lambda: base.execute("select 1")), "tool.exception", "not_sent")


def test_bson() -> None:
    """Documents that cannot be written, ids that are none, bytes that are no document."""
    judged(raised(lambda: bson.encode({"a": object()})), "invalid_request.parameter", "not_sent")
    judged(raised(lambda: ObjectId("7")), "invalid_request.parameter", "not_sent")
    judged(raised(lambda: bson.decode(b"\5\0\0")), "parsing.schema_mismatch", "unknown")


def test_redis_itself() -> None:
    """No node of a cluster, an answer in no form that Redis has."""
    cluster = raised(
        lambda: redis.RedisCluster(
            host="127.0.0.1", port=refused_port(), socket_connect_timeout=0.3
        )
    )
    assert isinstance(cluster, redis.exceptions.RedisClusterException)
    judged(cluster, "network.connect_refused|network.unreachable", "not_sent")
    misuse = raised(lambda: redis.RedisCluster(host="127.0.0.1", port=refused_port(), db=1))
    judged(misuse, "invalid_request.parameter", "not_sent")
    with peer(replying(lambda sent: b"?what\r\n")) as port:
        client = redis.Redis(port=port, protocol=2, lib_name=None, lib_version=None)
        judged(raised(lambda: client.incr("a")), "network.protocol", "unknown")


# -- batches


def test_bulk_of_a_search_engine(faults: FaultServer) -> None:
    """One of two was indexed: a part failed, and the whole is never repeated."""
    failed = {"type": "document_parsing_exception", "reason": "bad"}
    items = [{"index": {"_index": "a", "_id": "1", "status": 201}},
             {"index": {"_index": "a", "_id": "2", "status": 400, "error": failed}}]  # fmt: skip
    body = json.dumps({"errors": True, "took": 1, "items": items}).encode()
    for method in ("POST", "PUT"):
        faults.route(
            method, "/_bulk", Reply(200, {**JSON, "x-elastic-product": "Elasticsearch"}, body)
        )
    client = Elasticsearch(faults.url(""))
    error = raised(lambda: helpers.bulk(client, [{"_index": "a", "_id": n} for n in (1, 2)]))
    failure = judged(error, "business.partial", "unknown")
    assert failure.transient is False


def test_bulk_write_of_mongo() -> None:
    """One of two was inserted before the duplicate: not a plain "exists already, nothing done"."""
    details = {
        "writeErrors": [{"index": 1, "code": 11000, "errmsg": "E11000 duplicate key error"}],
        "writeConcernErrors": [], "nInserted": 1, "nUpserted": 0, "nMatched": 0, "nModified": 0,
        "nRemoved": 0, "upserted": [],
    }  # fmt: skip
    judged(BulkWriteError(details), "business.partial", "unknown")


# -- HTTP streams


def _read(response: httpx.Response, way: str) -> None:
    if way == "before":
        _ = response.text
    for _ in response.iter_bytes():
        pass
    for _ in response.iter_raw():
        pass


@pytest.mark.parametrize("way", ["before", "twice"])
def test_streams_of_httpx(faults: FaultServer, way: str) -> None:
    """Read before it was fetched, or twice: a slip in the tool, and the request was carried out."""
    faults.route("GET", "/x", Reply(200, {}, b"hello"))
    with httpx.stream("GET", faults.url("/x")) as response:
        error = raised(lambda: _read(response, way))
    judged(error, "tool.exception", "unknown")


# -- AWS


def _sqs() -> Any:
    return boto3.client("sqs", region_name="eu-west-1")


@pytest.mark.parametrize(
    "act",
    [
        lambda: boto3.client("s3", region_name="no region!"),
        lambda: botocore.session.Session().create_client("s3", config=7),
        lambda: boto3.Session(profile_name="nowhere"),
        lambda: _sqs().get_paginator("send_message"),
    ],
    ids=["region", "config", "profile", "pages"],
)
def test_aws_settings(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Wrong settings: nothing was sent, and no wait cures them."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    failure = judged(raised(act), "invalid_request.parameter|tool.exception", "not_sent|unknown")
    assert failure.transient is False


# -- models


def _complete(faults: FaultServer, reason: str, content: str) -> BaseException:
    class Answer(pydantic.BaseModel):
        number: int

    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": content}}  # fmt: skip
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}  # fmt: skip
    faults.route("POST", "/chat/completions", Reply(200, JSON, json.dumps(body).encode()))
    client = openai.OpenAI(api_key="k", base_url=faults.url(""), max_retries=0)
    return raised(
        lambda: client.chat.completions.parse(model="m", messages=[], response_format=Answer)
    )


def test_answers_of_a_model_that_were_cut(faults: FaultServer) -> None:
    """By its length, by a filter: openai's own exceptions for them."""
    error = _complete(faults, "length", '{"number":')
    assert isinstance(error, openai.LengthFinishReasonError)
    assert classify_exception(error).code == "model_output.truncated"
    error = _complete(faults, "content_filter", "")
    assert isinstance(error, openai.ContentFilterFinishReasonError)
    assert classify_exception(error).code == "model_output.content_filter"


@pytest.mark.parametrize(
    ("status", "kind", "detail", "code"),
    [
        (429, "rate_limit_error", "enforced_spend_limit_reached", "business.quota_exhausted"),
        (429, "rate_limit_error", "contract_spend_limit_reached", "business.quota_exhausted"),
        (429, "rate_limit_error", "ramp_limit_exceeded", "rate_limit.requests"),
        (402, "billing_error", "linked_organization_billing_unavailable", "business.billing"),
        (400, "invalid_request_error", "organization_on_hold", "auth.account_disabled"),
        (400, "invalid_request_error", "cmek_key_disabled", "auth.forbidden"),
        (503, "api_error", "cmek_context_unavailable", "server.unavailable"),
    ],
)
def test_error_codes_of_anthropic(
    faults: FaultServer, status: int, kind: str, detail: str, code: str
) -> None:
    """The detail says more than type and status, through whatever host it comes: money is no rate."""
    error = {"type": kind, "message": "see", "details": {"error_code": detail}}
    body = json.dumps({"type": "error", "error": error}).encode()
    headers = {**JSON, "retry-after": "7"} if code.startswith("rate") else JSON
    faults.route("POST", "/v1/messages", Reply(status, headers, body))
    client = anthropic.Anthropic(api_key="k", base_url=faults.url(""), max_retries=0)
    said = raised(
        lambda: client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    )  # fmt: skip
    failure = judged(said, code, "rejected")
    assert failure.retry_after == (7 if code.startswith("rate") else None)


# -- brokers and shells


def test_kafka_states() -> None:
    """Misuse of a consumer, and answers of brokers that name a time limit without being one."""
    state = SubscriptionState()
    state.subscribe(topics=["a"])
    error = raised(lambda: state.assign_from_user([kafka.TopicPartition("b", 0)]))
    judged(error, "invalid_request.parameter", "not_sent")
    for number, code in (
        (24, "invalid_request.parameter"),  # INVALID_GROUP_ID
        (26, "invalid_request.parameter"),  # INVALID_SESSION_TIMEOUT
        (45, "business.conflict"),  # OUT_OF_ORDER_SEQUENCE_NUMBER
        (46, "business.already_exists"),  # DUPLICATE_SEQUENCE_NUMBER
        (50, "invalid_request.parameter"),  # INVALID_TRANSACTION_TIMEOUT
        (68, "business.precondition"),  # NON_EMPTY_GROUP
        (74, "server.unavailable"),  # FENCED_LEADER_EPOCH
        (81, "business.refused"),  # GROUP_MAX_SIZE_REACHED
        (88, "server.unavailable"),  # UNSTABLE_OFFSET_COMMIT
    ):
        judged(kafka.errors.for_code(number)(), code, "rejected")


def test_keys_of_a_shell(tmp_path: Path) -> None:
    """A file that is no key is a matter of the credential, not of the network."""
    file = tmp_path / "id_rsa"
    file.write_text("no key")
    error = raised(lambda: paramiko.RSAKey.from_private_key_file(str(file)))
    judged(error, "auth.invalid_credential", "not_sent")


# -- all of them

BASES = {
    "kafka.errors": {
        "KafkaError", "BrokerResponseError", "RetriableError", "NoError", "InvalidMetadataError",
    },
    "pymongo.errors": {"PyMongoError", "EncryptionError", "EncryptedCollectionError"},
    "redis.exceptions": {
        "RedisError", "ResponseError", "ModuleError", "ChildDeadlockedError", "IncorrectPolicyType",
    },
    "sqlalchemy.exc": {
        "SQLAlchemyError", "EmulatedDBAPIException", "IdentifierError", "AmbiguousColumnError",
        "InvalidatePoolError", "UnreflectableTableError",
    },
    "botocore.exceptions": {
        "BotoCoreError", "ClientError", "ConfigParseError", "EventStreamError", "HTTPClientError",
        "MissingServiceIdError", "UndefinedModelAttributeError",
    },
    "httpx": {"HTTPError", "RequestError", "HTTPStatusError"},
    "websockets.exceptions": {"WebSocketException", "InvalidStatus"},
    "azure.core.exceptions": {
        "AzureError", "ODataV4Error", "HttpResponseError", "ResourceExistsError", "ResourceNotFoundError",
        "ResourceModifiedError", "ResourceNotModifiedError", "ClientAuthenticationError",
    },
    "langchain_core.exceptions": {"LangChainException", "ModelError", "TracerException"},
    "asyncpg.exceptions": {"PostgresError", "FatalPostgresError", "UnknownPostgresError"},
}  # fmt: skip
"""Classes that say nothing by themselves: what carries them (a status, a reply, words) does."""
RARE = ("Broker", "Voter", "Snapshot", "Controller", "Telemetry", "Share", "Subscription", "Endpoint",
        "Fetch", "Registration", "Record", "Topic", "Cluster", "State", "Leader", "Reassignment", "Log",
        "Feature", "Principal", "Position", "Offset", "Election", "Replica")  # fmt: skip
"""Between brokers: no client of a tool meets them."""


@pytest.mark.parametrize("module", sorted(BASES))
def test_every_class_is_known(module: str) -> None:
    """Each public exception class of a package says something, but for those that only carry others."""
    silent = set()
    for name, kind in vars(importlib.import_module(module)).items():
        if name.startswith("_") or not inspect.isclass(kind):
            continue
        if not issubclass(kind, Exception) or issubclass(kind, Warning):
            continue
        error = kind.__new__(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if classify_exception(error).code == "unknown.unclassified":
                silent.add(name)
    if module == "kafka.errors":
        silent = {name for name in silent if not any(word in name for word in RARE)}
    assert silent <= BASES[module]
