"""httpx, httpx2, requests and aiohttp through a runtime: the same rules, whichever the client."""

import gzip
import json
import sqlite3
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import failwise
from failwise.faults import Fault, FaultServer, Reply
from failwise.testing import SteppingClock
from tests.connect.clients.conftest import Answer, Send

GOOD = Fault.json({"items": [1, 2]})


def test_a_good_answer_is_the_clients_own(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """One request, its answer as it came, and the record of a call."""
    server.route("GET", "/items", GOOD)
    answer = send("GET", server.url("/items"), runtime)
    assert (answer.status, json.loads(answer.content)) == (200, {"items": [1, 2]})
    assert answer.result is not None
    assert answer.result.success
    assert answer.result.sent == 1
    assert answer.result.tool_name == f"GET {server.url().removeprefix('http://')}"
    assert answer.result.upstream == server.url().removeprefix("http://")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("fault", [Fault.status(503), Fault.status(504), Fault.reset()])
def test_what_may_be_repeated_is(
    send: Send, server: FaultServer, runtime: failwise.Runtime, method: str, fault: Reply
) -> None:
    """RFC 9110 §9.2.2: safe and idempotent methods are sent again until the answer is good."""
    server.route(method, "/items", [fault, GOOD])
    answer = send(method, server.url("/items"), runtime)
    assert answer.status == 200
    assert answer.result is not None
    assert answer.result.retries == 1
    assert server.count("/items") == 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    "fault", [Fault.status(500), Fault.status(502), Fault.status(504), Fault.reset(), Fault.close()]
)
def test_a_write_that_may_have_happened_is_never_repeated(
    send: Send, server: FaultServer, runtime: failwise.Runtime, method: str, fault: Reply
) -> None:
    """One request, one effect; the client's own answer or exception, with what is not known on it."""
    server.route(method, "/orders", Fault.effect("order", fault))
    answer = send(method, server.url("/orders"), runtime, json={"sku": "A-1"})
    assert server.count("/orders") == 1
    assert server.ledger.count() == 1
    assert answer.result is not None
    assert answer.result.effect is failwise.Effect.UNKNOWN
    assert (answer.status is None) == (fault.answers is False)


def test_a_read_timeout_of_a_write_is_not_repeated(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Nobody answers: the client's own timeout comes out, once."""
    server.route("POST", "/orders", Fault.silent())
    answer = send("POST", server.url("/orders"), runtime, json={"sku": "A-1"}, timeout=0.2)
    assert server.count("/orders") == 1
    assert answer.error is not None
    assert answer.result is not None
    assert answer.result.failure is not None
    assert answer.result.failure.code == "network.read_timeout"


def test_nobody_listening_is_tried_again_whatever_the_method(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """A refused connection sent nothing: even a write is safe. The last exception is the client's."""
    answer = send("POST", server.refused_url, runtime, json={"sku": "A-1"})
    assert answer.error is not None
    assert type(answer.error).__module__.partition(".")[0] in (
        "httpx",
        "httpx2",
        "requests",
        "aiohttp",
    )
    assert answer.result is not None
    assert answer.result.sent == 4
    assert answer.result.effect is failwise.Effect.NOT_SENT


def test_a_told_wait_is_kept(
    send: Send, server: FaultServer, runtime: failwise.Runtime, clock: SteppingClock
) -> None:
    """A 429 was refused before acting: a write waits as told and is sent again."""
    server.route("POST", "/orders", [Fault.status(429, retry_after=7), GOOD])
    answer = send("POST", server.url("/orders"), runtime, json={"sku": "A-1"})
    assert answer.status == 200
    assert sum(clock.sleeps) >= 7


def test_a_wait_that_is_too_long_is_handed_back(
    send: Send, server: FaultServer, runtime: failwise.Runtime, clock: SteppingClock
) -> None:
    """Over the ceiling: the 429 goes to the caller at once, who is told when to come again."""
    server.route("GET", "/items", Fault.status(429, retry_after=3600))
    answer = send("GET", server.url("/items"), runtime)
    assert answer.status == 429
    assert not clock.sleeps
    assert answer.result is not None
    assert answer.result.retry_at == pytest.approx(clock.time() + 3600, abs=2)
    again = send("GET", server.url("/items"), runtime)
    assert again.error is not None, "the cool-down holds every caller"
    assert type(again.error).__name__ == "NotSent"
    assert again.result is not None
    assert again.result.sent == 0
    assert server.count("/items") == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 422, 451, 501])
def test_permanent_faults_cost_one_request(
    send: Send, server: FaultServer, runtime: failwise.Runtime, status: int
) -> None:
    """What no repetition cures is sent once, and the refusal reaches the caller as it came."""
    body = {"error": {"code": "no", "message": "it cannot be"}}
    server.route("GET", "/items", Fault.status(status, json=body))
    answer = send("GET", server.url("/items"), runtime)
    assert server.count("/items") == 1
    assert (answer.status, json.loads(answer.content)) == (status, body)
    assert answer.result is not None
    assert not answer.result.success


def test_a_bad_certificate_is_one_connection(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """TLS trust that cannot be established is not tried again."""
    answer = send("GET", server.tls("self_signed", "/items"), runtime)
    assert answer.error is not None
    assert answer.result is not None
    assert answer.result.failure is not None
    assert answer.result.failure.category is failwise.Category.SECURITY
    assert answer.result.sent == 1
    assert server.connections("self_signed") == 1


def test_a_declared_key_makes_a_write_repeatable(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """The key goes with every attempt, the same each time: the upstream does it once."""
    lost = Fault.effect("order", Fault.reset())
    server.route("POST", "/orders", [lost, Fault.effect("order", GOOD)], honours_key=True)
    options = {"idempotency_key": "Idempotency-Key"}
    answer = send("POST", server.url("/orders"), runtime, json={"sku": "A-1"}, options=options)
    assert answer.status == 200
    keys = {request.idempotency_key for request in server.requests}
    assert len(server.requests) == 2
    assert len(keys) == 1
    assert None not in keys
    assert server.ledger.count() == 1


def test_the_callers_own_key_stays(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """A key in the request is the caller's choice."""
    server.route("POST", "/orders", [Fault.status(504), GOOD], honours_key=True)
    send(
        "POST", server.url("/orders"), runtime, json={}, headers={"Idempotency-Key": "mine"},
        options={"idempotency_key": "Idempotency-Key"},
    )  # fmt: skip
    assert [request.idempotency_key for request in server.requests] == ["mine", "mine"]


def test_a_key_that_nobody_declared_is_no_reason_to_repeat(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Whether an upstream honours a key is known to a person, not read off a header."""
    server.route("POST", "/orders", [Fault.status(504), GOOD])
    send("POST", server.url("/orders"), runtime, json={}, headers={"Idempotency-Key": "mine"})
    assert server.count("/orders") == 1


def test_a_body_that_is_used_up_is_never_sent_again(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """A generator is gone once it was read, however safe the repetition would be."""

    def pieces() -> Iterator[bytes]:
        yield b'{"a":'
        yield b"1}"

    server.route("PUT", "/items", [Fault.status(503), GOOD])
    answer = send("PUT", server.url("/items"), runtime, content=pieces())
    assert answer.status == 503
    assert server.count("/items") == 1


def test_a_body_at_hand_is_sent_again_whole(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """The second attempt carries what the first one did."""
    server.route("PUT", "/items", [Fault.status(503), GOOD])
    assert send("PUT", server.url("/items"), runtime, content=b"abc" * 1000).status == 200
    assert [request.body for request in server.requests] == [b"abc" * 1000] * 2


def test_a_declaration_says_what_a_method_does_not(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """A search by POST is a read where somebody says so, in the client or in the runtime."""
    host = server.url().removeprefix("http://")
    server.route("POST", "/search/items", [Fault.status(503), GOOD])
    server.route("POST", "/other", [Fault.status(503), GOOD])
    server.route("GET", "/logout", [Fault.status(503), GOOD])
    options = {"declare": {f"POST {host}/search*": {"read_only": True}}}
    url = server.url("/search/items")
    assert send("POST", url, runtime, json={}, options=options).status == 200
    assert send("POST", server.url("/other"), runtime, json={}, options=options).status == 503
    runtime.declare({"GET */logout": {"read_only": False, "idempotent": False}})
    assert send("GET", server.url("/logout"), runtime).status == 503
    assert server.count("/logout") == 1


def test_inside_a_tool_attempts_are_not_multiplied(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """The tool's runtime repeats the tool; the client sends once for each of its attempts."""
    server.route("GET", "/items", Fault.status(503))

    @runtime.tool(read_only=True, timeout=20)
    def list_items() -> Any:
        """List the items."""
        answer = send("GET", server.url("/items"), runtime)
        assert answer.result is None
        raise failwise.ToolError("busy", code="server.unavailable", transient=True)

    result = runtime.call_sync(list_items)
    assert result.sent == 3
    assert server.count("/items") == 3
    assert result.extra["requests"] == 3


def test_large_and_compressed_refusals_arrive_whole(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Only the beginning is read to judge it; the caller gets every byte, decoded as always."""
    page = "<html><body>" + "<p>no such thing</p>" * 20_000 + "</body></html>"
    packed = Reply(
        404, {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        gzip.compress(json.dumps({"code": "no_such_item", "message": "no such item"}).encode()),
    )  # fmt: skip
    server.route("GET", "/large", Fault.html(page, 404))
    server.route("GET", "/packed", packed)
    server.route("GET", "/chunks", Fault.chunked({"message": "none"}, 404))
    assert send("GET", server.url("/large"), runtime).content.decode() == page
    answer = send("GET", server.url("/packed"), runtime)
    assert json.loads(answer.content) == {"code": "no_such_item", "message": "no such item"}
    assert answer.result is not None
    assert answer.result.failure is not None
    assert answer.result.failure.provider_code == "no_such_item"
    assert json.loads(send("GET", server.url("/chunks"), runtime).content) == {"message": "none"}


def test_a_refusal_that_breaks_off_is_judged_by_its_status(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """The status has arrived: it says what became of the request. The break is the reader's."""
    server.route("POST", "/orders", Fault.truncated({"error": "x" * 200}, status=422))
    answer = send("POST", server.url("/orders"), runtime, json={})
    assert answer.error is not None
    assert server.count("/orders") == 1


def test_a_storm_is_held_to_a_tenth_more(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """An upstream that is down: all requests together cost at most 1.1 each."""
    server.route("GET", "/items", Fault.status(503))
    calls = 120
    for _ in range(calls):
        send("GET", server.url("/items"), runtime)
    assert server.count("/items") <= 1.1 * calls


def test_switched_off_it_only_sends(
    send: Send, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``FAILWISE=off``: the client as it was."""
    monkeypatch.setenv("FAILWISE", "off")
    server.route("GET", "/items", [Fault.status(503), GOOD])
    answer = send("GET", server.url("/items"), failwise.Runtime(":memory:"))
    assert (answer.status, answer.result) == (503, None)


def test_observing_changes_nothing_and_records(
    send: Send, server: FaultServer, clock: SteppingClock
) -> None:
    """One request, judged."""
    server.route("GET", "/items", [Fault.status(503), GOOD])
    with failwise.Runtime(":memory:", mode="observe", clock=clock) as runtime:
        answer = send("GET", server.url("/items"), runtime)
    assert answer.status == 503
    assert answer.result is not None
    assert answer.result.failure is not None
    assert server.count("/items") == 1


def test_a_run_stops_its_requests(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Bound to a run, a dead credential ends it: later requests are not sent."""
    server.route("GET", "/private", Fault.status(401, json={"error": "invalid_token"}))
    server.route("GET", "/items", GOOD)
    run = runtime.run("job-1")
    assert send("GET", server.url("/private"), run).status == 401
    later = send("GET", server.url("/items"), run)
    assert later.error is not None
    assert later.result is not None
    assert later.result.failure is not None
    assert later.result.failure.code == "runtime.chain_aborted"
    assert server.count("/items") == 0


def test_in_a_run_an_open_effect_is_not_sent_again(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """A retry decorator around the client, in one run: the order that may have happened stays one."""
    server.route("POST", "/orders", Fault.effect("order", Fault.status(504)))
    run = runtime.run("job-2")
    for _ in range(3):
        answer = send("POST", server.url("/orders"), run, json={"sku": "A-1"})
    assert server.ledger.count() == 1
    assert answer.result is not None
    assert answer.result.failure is not None
    assert answer.result.failure.code == "runtime.effect_open"


def test_writes_are_claimed_and_kept_without_secrets(
    send: Send, server: FaultServer, tmp_path: Path
) -> None:
    """What may have happened stands in the journal for a person to settle; the token in it does not."""
    secret = "sk_live_" + "a8Fk2LmQ9zXw7Rt4"
    server.route("POST", "/orders", Fault.status(504))
    journal = tmp_path / "journal.db"
    with failwise.Runtime(journal) as runtime:
        url = server.url(f"/orders?api_key={secret}")
        send("POST", url, runtime, json={"sku": "A-1", "password": "hunter2-hunter2"})
    with sqlite3.connect(journal) as kept:
        rows = kept.execute("SELECT tool, state, arguments FROM claims").fetchall()
    kept.close()
    assert [(row[0].partition(" ")[0], row[1]) for row in rows] == [("POST", "unknown")]
    assert "A-1" in rows[0][2]
    assert secret not in rows[0][2]
    assert "hunter2" not in rows[0][2]
    assert secret.encode() not in journal.read_bytes()


def test_the_trace_goes_with_each_request(
    send: Send, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """What an observer says that requests carry, they carry: inside of a tool, and without one."""

    class Tracing:
        def begin(self, call: Any) -> None: ...
        def end(self, begun: Any, call: Any, result: Any) -> None: ...
        def headers(self) -> dict[str, str]:
            return {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}

    runtime.observe(Tracing())
    server.route("GET", "/items", GOOD)
    send("GET", server.url("/items"), runtime)

    @runtime.tool(read_only=True)
    def list_items() -> int | None:
        """List the items."""
        return send("GET", server.url("/items"), runtime).status

    runtime.call_sync(list_items)
    assert [r.headers.get("traceparent") is not None for r in server.requests] == [True, True]


def test_without_a_runtime_all_clients_share_one(send: Send, server: FaultServer) -> None:
    """Without a runtime given, all clients of the process share one."""
    from failwise.connect import transport

    transport._own[:] = [failwise.Runtime(":memory:", clock=SteppingClock(), jitter=0)]
    try:
        server.route("GET", "/items", [Fault.status(503), GOOD])
        answer: Answer = send("GET", server.url("/items"))
        assert answer.status == 200
        assert answer.result is not None
        assert transport.own_runtime() is transport._own[0]
    finally:
        transport._own.clear()


def test_trusted_tls_works(server: FaultServer, runtime: failwise.Runtime) -> None:
    """The options of the transport that sends go to it."""
    import httpx

    from failwise.connect.httpx import transport

    server.route("GET", "/items", GOOD)
    trust = ssl.create_default_context(cafile=server.ca_file)
    with httpx.Client(transport=transport(runtime, verify=trust)) as client:
        assert client.get(server.tls("good", "/items")).status_code == 200
