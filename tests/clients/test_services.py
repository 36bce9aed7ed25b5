"""Clients of services: gRPC, AWS, Azure, web sockets, MCP."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import botocore.config
import botocore.session
import grpc
import pytest
import websockets
from azure.core import PipelineClient
from azure.core.rest import HttpRequest
from mcp import types
from websockets.asyncio.server import serve

from failwise.faults import Fault, FaultServer, Reply
from tests.clients.provoking import judged, mute, peer, raised, refused_port, reset

# -- gRPC


def _ask(address: str, timeout: float = 0.3) -> Any:
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/shop.Orders/Place", bytes, bytes)
        return call(b"x", timeout=timeout)


@pytest.fixture
def grpc_server() -> Iterator[Callable[[Any, str], str]]:
    """Starts a real server that ends each call with a status."""
    started: list[Any] = []

    def start(status: Any, details: str) -> str:
        def handle(request: bytes, context: Any) -> bytes:
            context.abort(status, details)
            return b""

        handler = grpc.method_handlers_generic_handler(
            "shop.Orders", {"Place": grpc.unary_unary_rpc_method_handler(handle, bytes, bytes)}
        )
        server = grpc.server(ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers((handler,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        started.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in started:
        server.stop(0)


@pytest.mark.parametrize(
    ("status", "details", "code", "effect"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, "no", "auth.forbidden", "rejected"),
        (
            grpc.StatusCode.UNAUTHENTICATED,
            "token expired",
            "auth.invalid_credential|auth.credential_expired",
            "rejected",
        ),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "quota for requests per minute",
            "rate_limit.requests|business.quota_exhausted",
            "rejected",
        ),
        (grpc.StatusCode.NOT_FOUND, "no such order", "business.not_found", "rejected"),
        (grpc.StatusCode.ALREADY_EXISTS, "order 7", "business.already_exists", "rejected"),
        (grpc.StatusCode.FAILED_PRECONDITION, "cart is empty", "business.precondition", "rejected"),
        (grpc.StatusCode.ABORTED, "transaction conflict", "business.conflict", "rejected"),
        (grpc.StatusCode.INVALID_ARGUMENT, "amount", "invalid_request.parameter", "rejected"),
        (
            grpc.StatusCode.UNIMPLEMENTED,
            "",
            "invalid_request.unsupported|invalid_request.endpoint_not_found",
            "rejected",
        ),
        (grpc.StatusCode.INTERNAL, "boom", "server.internal", "unknown"),
        (grpc.StatusCode.UNAVAILABLE, "draining", "server.unavailable", "unknown"),
        (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "too slow",
            "network.timeout|network.read_timeout|network.gateway_timeout",
            "unknown",
        ),
    ],
)
def test_grpc(
    grpc_server: Callable[[Any, str], str], status: Any, details: str, code: str, effect: str
) -> None:
    """Statuses that a real server gave."""
    address = grpc_server(status, details)
    judged(raised(lambda: _ask(address, 5)), code, effect)


def test_grpc_unreachable() -> None:
    """Nothing listens: not sent. No answer in time: nobody knows."""
    error = raised(lambda: _ask(f"127.0.0.1:{refused_port()}", 2))
    judged(error, "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(lambda: _ask(f"127.0.0.1:{port}"))
    judged(error, "network.timeout|network.read_timeout", "unknown")


# -- AWS


def _aws(service: str, url: str, **secrets: str) -> Any:
    session = botocore.session.get_session()
    return session.create_client(
        service,
        region_name="eu-west-1",
        endpoint_url=url,
        config=botocore.config.Config(
            retries={"max_attempts": 0, "mode": "standard"}, connect_timeout=0.5, read_timeout=0.3
        ),
        **(secrets or {"aws_access_key_id": "a", "aws_secret_access_key": "b"}),
    )


def test_aws_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, silent, reset; no credentials; parameters that its model refuses."""
    sqs = _aws("sqs", f"http://127.0.0.1:{refused_port()}")
    judged(raised(sqs.list_queues), "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(_aws("sqs", f"http://127.0.0.1:{port}").list_queues)
    judged(error, "network.read_timeout", "unknown")
    with peer(reset) as port:
        error = raised(_aws("sqs", f"http://127.0.0.1:{port}").list_queues)
    judged(error, "network.connection_reset", "unknown")
    judged(
        raised(lambda: sqs.send_message(QueueUrl=1)),
        "invalid_request.parameter|invalid_request.missing_parameter",
        "not_sent",
    )
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    session = botocore.session.Session()
    bare = session.create_client("sqs", region_name="eu-west-1", endpoint_url="http://127.0.0.1:1")
    judged(raised(bare.list_queues), "auth.invalid_credential", "not_sent")


@pytest.mark.parametrize(
    ("status", "kind", "code", "effect"),
    [
        (400, "ThrottlingException", "rate_limit.requests", "rejected"),
        (
            400,
            "ProvisionedThroughputExceededException",
            "rate_limit.requests|rate_limit.tokens",
            "rejected",
        ),
        (400, "ExpiredTokenException", "auth.credential_expired", "rejected"),
        (400, "UnrecognizedClientException", "auth.invalid_credential", "rejected"),
        (400, "AccessDeniedException", "auth.forbidden", "rejected"),
        (400, "ResourceNotFoundException", "business.not_found", "rejected"),
        (
            400,
            "ConditionalCheckFailedException",
            "business.precondition|business.conflict",
            "rejected",
        ),
        (400, "ValidationException", "invalid_request.parameter", "rejected"),
        (400, "TransactionConflictException", "business.conflict|business.locked", "rejected"),
        (500, "InternalServerError", "server.internal", "unknown"),
    ],
)
def test_aws(faults: FaultServer, status: int, kind: str, code: str, effect: str) -> None:
    """Error types of a JSON service, as ClientError and its children."""
    body = f'{{"__type": "com.amazonaws.dynamodb.v20120810#{kind}", "message": "no"}}'.encode()
    faults.route("POST", "/", Reply(status, {"content-type": "application/x-amz-json-1.0"}, body))
    table = _aws("dynamodb", faults.url("").rstrip("/"))
    judged(raised(lambda: table.get_item(TableName="tab", Key={"a": {"S": "1"}})), code, effect)


# -- Azure


def _azure(base: str) -> Any:
    from azure.core.pipeline.policies import RetryPolicy
    from azure.core.pipeline.transport import RequestsTransport

    client: PipelineClient[Any, Any] = PipelineClient(
        base,
        policies=[RetryPolicy.no_retries()],
        transport=RequestsTransport(connection_timeout=1, read_timeout=0.3),
    )
    response = client.send_request(HttpRequest("GET", f"{base}/thing"))
    response.raise_for_status()
    return response


def test_azure_unreachable() -> None:
    """ServiceRequestError was not sent, ServiceResponseError may have been."""
    error = raised(lambda: _azure(f"http://127.0.0.1:{refused_port()}"))
    judged(error, "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(lambda: _azure(f"http://127.0.0.1:{port}"))
    judged(error, "network.read_timeout", "unknown")
    with peer(reset) as port:
        error = raised(lambda: _azure(f"http://127.0.0.1:{port}"))
    judged(error, "network.connection_reset", "unknown")


@pytest.mark.parametrize(
    ("status", "kind", "code", "effect"),
    [
        (
            401,
            "ExpiredAuthenticationToken",
            "auth.credential_expired|auth.invalid_credential",
            "rejected",
        ),
        (403, "AuthorizationFailed", "auth.forbidden", "rejected"),
        (404, "ResourceNotFound", "business.not_found", "rejected"),
        (409, "Conflict", "business.conflict", "rejected"),
        (429, "TooManyRequests", "rate_limit.requests", "rejected"),
        (500, "InternalServerError", "server.internal", "unknown"),
    ],
)
def test_azure(faults: FaultServer, status: int, kind: str, code: str, effect: str) -> None:
    """HttpResponseError and its children."""
    faults.route("GET", "/thing", Fault.json({"error": {"code": kind, "message": "no"}}, status))
    judged(raised(lambda: _azure(faults.url("").rstrip("/"))), code, effect)


# -- web sockets


async def _socket(url: str, **options: Any) -> Any:
    async with websockets.connect(url, proxy=None, **options) as connection:
        await connection.send("order")
        return await connection.recv()


def test_web_sockets_that_never_open(faults: FaultServer) -> None:
    """Refused, silent, or an HTTP status in place of the upgrade: no message was sent."""
    error = raised(lambda: _socket(f"ws://127.0.0.1:{refused_port()}"))
    judged(error, "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(lambda: _socket(f"ws://127.0.0.1:{port}", open_timeout=0.2))
    judged(error, "network.connect_timeout|network.timeout", "not_sent")
    for status, code in (
        (401, "auth.invalid_credential"),
        (403, "auth.forbidden"),
        (429, "rate_limit.requests"),
    ):
        faults.route("GET", f"/{status}", Fault.status(status))
        url = faults.url(f"/{status}").replace("http:", "ws:")
        judged(raised(lambda url=url: _socket(url)), code, "rejected|not_sent")


@pytest.mark.parametrize(
    ("number", "reason", "code", "effect"),
    [
        (
            1001,
            "going away",
            "network.connection_reset|network.interrupted|server.unavailable",
            "unknown",
        ),
        (
            1008,
            "policy: token expired",
            "auth.credential_expired|auth.forbidden|business.refused",
            "rejected|unknown",
        ),
        (1009, "message too big", "invalid_request.too_large", "rejected"),
        (1011, "internal error", "server.internal", "unknown"),
        (1013, "try again later", "server.overloaded|server.unavailable", "rejected|unknown"),
    ],
)
def test_web_sockets_that_close(number: int, reason: str, code: str, effect: str) -> None:
    """Close codes of RFC 6455, from a real server."""

    async def run() -> None:
        async def handler(connection: Any) -> None:
            await connection.recv()
            await connection.close(number, reason)

        async with serve(handler, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            await _socket(f"ws://127.0.0.1:{port}")

    judged(raised(run), code, effect)


def test_web_socket_cut_off() -> None:
    """The connection ends without a close frame."""

    async def run() -> None:
        async def handler(connection: Any) -> None:
            await connection.recv()
            connection.transport.abort()

        async with serve(handler, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            await _socket(f"ws://127.0.0.1:{port}")

    judged(raised(run), "network.connection_reset|network.interrupted", "unknown")


# -- MCP


@pytest.mark.parametrize(
    ("number", "message", "code", "effect"),
    [
        (
            types.INVALID_PARAMS,
            "path is missing",
            "invalid_request.parameter|invalid_request.missing_parameter",
            "rejected",
        ),
        (
            types.METHOD_NOT_FOUND,
            "Method not found",
            "invalid_request.endpoint_not_found",
            "rejected",
        ),
        (types.INTERNAL_ERROR, "boom", "server.internal", "unknown"),
        (
            types.CONNECTION_CLOSED,
            "Connection closed",
            "network.connection_reset|network.interrupted",
            "unknown",
        ),
        (
            types.REQUEST_TIMEOUT,
            "Timed out while waiting for response to request. Waited 5.0 seconds.",
            "network.read_timeout|network.timeout",
            "unknown",
        ),
    ],
)
def test_mcp_errors(number: int, message: str, code: str, effect: str) -> None:
    """JSON-RPC codes, and those that the SDK gives lost sessions."""
    from mcp.shared import exceptions

    kind = getattr(exceptions, "MCPError", None) or exceptions.McpError
    try:
        error: BaseException = kind(number, message)
    except TypeError:
        error = kind(types.ErrorData(code=number, message=message))
    judged(error, code, effect)


def test_mcp_server_that_is_gone() -> None:
    """A server process that ends at once: the session says so, through whatever groups."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def run() -> None:
        parameters = StdioServerParameters(command="python", args=["-c", "raise SystemExit(3)"])
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await asyncio.wait_for(session.initialize(), 5)

    judged(
        raised(run),
        "network.connection_reset|network.interrupted|tool.process_failed",
        "unknown|not_sent",
    )

    async def absent() -> None:
        async with stdio_client(StdioServerParameters(command="no-such-program")):
            pass

    judged(raised(absent), "tool.missing_dependency|tool.file_not_found", "not_sent")
