"""Guards in a server that is slow, gone, back, restarted, emptied; behind TLS, a password, a socket."""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
import trustme

from failwise.guards import GuardSettings, default_settings, parse_settings
from failwise.guards.items import Ask
from failwise.guards.shared import ValkeyGuards
from failwise.runtime.clock import SystemClock
from failwise.testing.guard_upstream import Upstream, ill
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.steps import Admit, Admitted, Refused
from tests.guards.valkey import fresh, started


def quick(figures: str = "", **shared: float) -> GuardSettings:
    """Settings for a busy machine: patient with the server, quick to try again."""
    settings = parse_settings(figures, base=default_settings())
    limits = {"slow": 5.0, "probe": 0.05, "connect": 5.0, **shared}
    return replace(settings, shared=replace(settings.shared, **limits))


def until(true: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What `true` gives as soon as it is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.005)
    raise AssertionError("it did not come about")


def shop_of(guards: ValkeyGuards, name: str = "shop") -> Upstream:
    return Upstream(guards, None, name)  # type: ignore[arg-type] # no test here moves its clock


@pytest.fixture
def made() -> Iterator[list[ValkeyGuards]]:
    """Guards that are closed at the end."""
    guards: list[ValkeyGuards] = []
    yield guards
    for one in guards:
        one.close()


@pytest.fixture
def make(valkey: str, made: list[ValkeyGuards]) -> Callable[..., ValkeyGuards]:
    def make(
        settings: GuardSettings | None = None, url: str = valkey, **options: Any
    ) -> ValkeyGuards:
        made.append(fresh(url, SystemClock(), settings or quick(), **options))
        return made[-1]

    return make


def client(url: str) -> "redis.Redis[bytes]":
    return redis.Redis.from_url(url.replace("valkey://", "redis://"))  # type: ignore[no-any-return]


def locked(port: int, password: str) -> None:
    """Let a server ask for a password from now on."""
    admin = client(f"redis://127.0.0.1:{port}")
    admin.config_set("requirepass", password)
    admin.close()


Make = Callable[..., ValkeyGuards]


def test_two_processes_see_one_state(make: Make) -> None:
    """What one is told, the other obeys; slots and quota are counted together."""
    one, two = make(namespace="both"), make(namespace="both")
    here, there = shop_of(one), shop_of(two)
    here.call(ill("rate_limit.requests", 30))
    here.row()
    refusal = there.refused("runtime.cool_down")
    assert refusal.hold
    assert refusal.wait is not None
    assert 29 < refusal.wait <= 30
    here.name = there.name = "other"
    here.sent("a")
    there.sent("b")
    assert here.row()["in_flight"] == there.row()["in_flight"] == 2


def test_a_waiting_caller_gets_a_slot_that_another_process_frees(make: Make) -> None:
    """In order of arrival over all processes; asked for every few milliseconds."""
    settings = quick("[concurrency]\nlimit = 1\n")
    one, two = make(settings, namespace="queue"), make(settings, namespace="queue")
    here, there = shop_of(one), shop_of(two)
    here.sent("a")
    first = there.waiting("b")
    second = here.waiting("c")
    here.release(run="a")
    assert isinstance(first.result(10), Admitted)
    here.row()
    assert not second.done()
    there.release(run="b")
    assert isinstance(second.result(10), Admitted)


def test_slots_of_a_process_that_is_gone_come_free_with_its_lease(
    make: Make, made: list[ValkeyGuards]
) -> None:
    """Requests under way and places in the queue end with the lease; a living one renews its own."""
    settings = quick("[concurrency]\nlimit = 2\n", lease=0.6)
    dead, alive = make(settings, namespace="lease"), make(settings, namespace="lease")
    made.remove(dead)
    gone, here = shop_of(dead), shop_of(alive)
    gone.sent("a", 1)
    here.sent("b")
    gone.waiting("c")
    waits = here.waiting("d")
    dead._speaker._held.clear()  # as a kill would: nothing is said any more
    dead._speaker._waiting.clear()
    assert isinstance(waits.result(10), Admitted)
    time.sleep(1.0)
    assert here.row()["in_flight"] == 2
    assert here.row()["waiting"] == 0


def test_a_server_that_is_gone_is_replaced_by_memory_and_said_once(
    tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Calls go on, what was known holds on, one warning; then it is back, and says so."""
    caplog.set_level(logging.INFO, "failwise")
    server = started(tmp_path)
    port = server.port
    locked(port, "secret")
    guards = make(url=f"redis://:secret@127.0.0.1:{port}/0")
    shop, held, broken = shop_of(guards), shop_of(guards, "held"), shop_of(guards, "broken")
    shop.sent("before")
    held.call(ill("rate_limit.requests", 60))
    broken.open_circuit()
    server.stop()
    shop.sent("during")
    held.refused("runtime.cool_down")
    broken.refused("runtime.circuit_open")
    assert set(guards.open_circuits()) == {"broken"}
    until(lambda: guards._speaker.down)
    shop.call(ill("server.overloaded", 90))
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "do not answer" in warnings[0]
    assert "secret" not in caplog.text
    again = started(tmp_path, port=port)
    try:
        locked(port, "secret")
        until(lambda: (shop.ask("asks"), not guards._speaker.down)[1])
        assert "are back" in caplog.text
        assert 80 < shop.row()["cool_down"] <= 90, "told while alone, and passed on"
        shop.release(run="before")
        shop.release(run="during")
        assert shop.row()["in_flight"] == 0
    finally:
        guards.close()
        again.stop()


def test_nobody_waits_longer_for_a_slow_server_than_the_bound(valkey: str, make: Make) -> None:
    """A server that stops answering costs each caller the bound once, then nothing."""
    guards = make(quick(slow=0.05, probe=0.2))
    shop = shop_of(guards)
    shop.sent("warm")
    other = client(valkey)
    other.client_pause(1500)
    began = time.monotonic()
    futures = [shop.ask(f"r{number}") for number in range(50)]
    assert all(isinstance(shop.answer(future), Admitted) for future in futures)
    assert time.monotonic() - began < 1.0
    assert guards._speaker.down
    assert isinstance(shop.ask("at once"), Admitted)
    until(lambda: (shop.ask("asks"), not guards._speaker.down)[1])
    other.close()


def test_scripts_and_state_that_the_server_lost_are_made_anew(valkey: str, make: Make) -> None:
    """SCRIPT FLUSH, FLUSHALL: no caller notices, slots are counted right again by the next beat."""
    guards = make(quick(lease=0.6), namespace="lost")
    shop = shop_of(guards)
    shop.sent("a")
    server = client(valkey)
    server.script_flush()
    shop.sent("b")
    server.flushdb()
    shop.sent("c")
    until(lambda: shop.row()["in_flight"] == 3)
    for run in "abc":
        shop.release(run=run)
    assert shop.row()["in_flight"] == 0
    assert not guards._speaker.down
    server.close()


def test_keys_name_upstreams_expire_and_hold_no_credential(valkey: str, make: Make) -> None:
    """One hash tag for each upstream; a digest for the credential; nothing is kept for ever."""
    guards = make(namespace="names")
    name = "https://api.example/v1 {x}"
    shop = shop_of(guards, name)
    shop.call(ill())
    shop.sent(credential="tenant#s3cr3t")
    shop.release(ill(), credential="tenant#s3cr3t")
    shop.sent("r", 2, ill())
    shop.guards.statistics()
    server = client(valkey)
    keys = [key for key in server.keys("*") if key.startswith(b"names:")]
    assert len(keys) >= 4
    assert len({key[key.index(b"{") : key.index(b"}")] for key in keys}) == 1
    assert not any(b"s3cr3t" in key for key in keys)
    assert all(server.ttl(key) > 0 for key in keys)
    stranger = make(namespace="names")
    rows = stranger.statistics()
    assert {row["upstream"] for row in rows} == {name}
    assert {row["credential"] is None for row in rows} == {True, False}
    assert "s3cr3t" not in str(rows)
    server.close()


def test_all_keys_of_a_decision_lie_in_one_slot_of_a_cluster(tmp_path: Path, make: Make) -> None:
    """A server in cluster mode runs the scripts: it refuses keys of several slots."""
    server = started(tmp_path, **{"cluster-enabled": "yes"})
    try:
        admin = client(f"redis://127.0.0.1:{server.port}")
        admin.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        until(lambda: "cluster_state:ok" in str(admin.execute_command("CLUSTER", "INFO")))
        admin.close()
        guards = make(url=f"redis://127.0.0.1:{server.port}")
        shop = shop_of(guards)
        shop.open_circuit()
        assert not guards._speaker.down
        guards.close()
    finally:
        server.stop()


def test_a_unix_socket(tmp_path: Path, make: Make) -> None:
    """``unix:///path``."""
    with tempfile.TemporaryDirectory(prefix="fw") as folder:  # a socket's path has a short limit
        server = started(tmp_path, unix_socket_path=Path(folder) / "s", port=0)
        try:
            guards = make(url=f"unix://{folder}/s")
            shop_of(guards).call(ill())
            assert shop_of(guards).row()["failures_in_row"] == 1
            guards.close()
        finally:
            server.stop()


@contextlib.contextmanager
def tls_before(port: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """A TLS front for a plain server: its port, and the authority to trust."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    trusted = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(trusted))
    listener = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                front = context.wrap_socket(plain, server_side=True)
            except OSError:
                plain.close()
                continue
            back = socket.create_connection(("127.0.0.1", port))
            opened.extend((front, back))
            for pair in ((front, back), (back, front)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], trusted
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for one in opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def test_tls_and_a_user_by_url(tmp_path: Path, valkey: str, make: Make) -> None:
    """``rediss://user:password@host``: the certificate is checked, a wrong password is said."""
    admin = client(valkey)
    admin.execute_command(
        "ACL", "SETUSER", "fleet", "on", ">pass", "~fleet:*", "-@all", "+evalsha", "+eval",
        "+script|load", "+select", "+scan", "+@read", "+@write", "+time",
    )  # fmt: skip
    with tls_before(int(valkey.rpartition(":")[2]), tmp_path) as (port, trusted):
        place = f"localhost:{port}/0?ssl_ca_certs={trusted}"
        guards = make(url=f"rediss://fleet:pass@{place}", namespace="fleet")
        shop_of(guards).call(ill())
        assert shop_of(guards).row()["failures_in_row"] == 1
        assert not guards._speaker.down
        for wrong in (f"rediss://fleet:wrong@{place}", f"valkeys://fleet:pass@localhost:{port}"):
            refused = make(url=wrong, namespace="fleet")
            shop_of(refused).sent()
            assert refused._speaker.down
            refused.close()
        guards.close()
    admin.execute_command("ACL", "DELUSER", "fleet")
    admin.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_a_connection_and_an_owner_of_its_own(make: Make) -> None:
    """Parent and child go on, each counted for itself."""
    guards = make(quick("[concurrency]\nlimit = 3\n"))
    shop = shop_of(guards)
    shop.sent("parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            shop.sent("child")
            shop.release(run="parent")  # the parent's: nothing of it comes free here
            status = 0 if shop.row()["in_flight"] == 2 else 2
            guards.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert shop.row()["in_flight"] == 1, "the child closed, and gave its own slot back"
    shop.sent("more")


async def test_an_answer_that_nobody_waits_for_any_more_goes_back(make: Make) -> None:
    """Cancelled on the way: the slot comes free."""
    shop = shop_of(make())
    for number in range(200):
        reply = shop.ask(f"r{number}")
        if not (isinstance(reply, Future) and reply.cancel()):
            shop.release(run=f"r{number}", sent=False)
    until(lambda: shop.row()["in_flight"] == 0)
    assert shop.row()["quota"] == 500


def test_an_interrupt_of_one_caller_leaves_no_other_without_an_answer(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while a thread speaks for all: it is raised there, the others are answered by memory."""
    guards = make(quick(probe=60.0))
    shop = shop_of(guards)
    shop.sent("before")
    asks = [
        Ask(Admit("shop", None, run, 1), guards._names_of("shop", None), "") for run in ("a", "b")
    ]

    def interrupted(_commands: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(guards._wire, "exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            guards._speaker.perform(asks)
    assert all(isinstance(ask.future.result(0), Admitted) for ask in asks)


async def test_a_loop_is_not_held_up(make: Make) -> None:
    """A hundred tasks ask at once; their questions share round trips."""
    shop = shop_of(make(quick('[concurrency]\nlimit = "unlimited"\n')))

    async def ask(number: int) -> object:
        reply = shop.ask(f"r{number}")
        return await asyncio.wrap_future(reply) if isinstance(reply, Future) else reply

    answers = await asyncio.gather(*(ask(number) for number in range(100)))
    assert all(isinstance(answer, Admitted) for answer in answers)


def test_closing_twice_or_unused_is_nothing_and_asking_opens_again(make: Make) -> None:
    """`close` gives the slots back; the next question connects anew."""
    guards = make()
    guards.close()
    shop = shop_of(guards)
    shop.sent("a")
    guards.close()
    guards.close()
    assert shop.row()["in_flight"] == 0
    shop.sent("b")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://localhost", "begins with one of redis://"),
        ("localhost:6379", "begins with one of redis://"),
        ("redis://user:hidden@localhost/shop", "number of a database"),
        ("redis://user:hidden@localhost?nonsense=1", "nonsense"),
    ],
)
def test_a_url_that_cannot_work_is_refused_at_once(url: str, says: str) -> None:
    """Before the first call, and without showing what it holds."""
    with pytest.raises(UsageError, match=says) as refused:
        ValkeyGuards(url, SystemClock())
    assert "hidden" not in str(refused.value)


def test_a_namespace_is_a_plain_word() -> None:
    """Nothing that could break the hash tag."""
    with pytest.raises(UsageError, match="namespace"):
        ValkeyGuards("redis://localhost", SystemClock(), namespace="a{b}")


def test_a_refusal_without_a_server_at_all_is_memorys(make: Make) -> None:
    """Nothing listens there: this process counts for itself from the first call on."""
    guards = make(quick(probe=60.0), url="redis://127.0.0.1:1/0")
    shop = shop_of(guards)
    shop.open_circuit()
    assert isinstance(guards.admit(Admit("shop", None, "r", 1)), Refused)
