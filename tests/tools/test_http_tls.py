"""`HttpTool` over real TLS: whom it trusts, and that a failed handshake is one connection."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from loopback_site import Site

from failwise.evidence.tls import facts_of_exception
from failwise.tools import HttpTool, close_clients
from failwise.vocabulary.spec import CallContext

Sender = Callable[[HttpTool], Any]


def send_sync(tool: HttpTool) -> Any:
    call = tool.spec().call
    assert call is not None
    return call({}, CallContext())


def send_in_loop(tool: HttpTool) -> Any:
    async def send() -> Any:
        call = tool.spec().call_async
        assert call is not None
        return await call({}, CallContext())

    return asyncio.run(send())


@pytest.fixture(params=[send_sync, send_in_loop], ids=["sync", "async"])
def sender(request: pytest.FixtureRequest) -> Sender:
    chosen: Sender = request.param
    return chosen


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def secure_site(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    running = Site(context)
    yield running
    close_clients()
    running.close()


def test_a_given_authority_is_trusted(secure_site: Site, sender: Sender, ca_file: str) -> None:
    """`ca_file` is enough to reach a host with a private certificate."""
    tool = HttpTool("tool", "GET", secure_site.url, ca_file=ca_file)
    assert sender(tool).status == 200


def test_the_environment_names_an_authority(
    secure_site: Site, sender: Sender, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE counts, also where it is set after the first call."""
    tool = HttpTool("tool", "GET", secure_site.url)
    with pytest.raises(httpx.ConnectError):
        sender(tool)
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    assert sender(tool).status == 200


def test_a_failed_check_is_one_connection(secure_site: Site, sender: Sender) -> None:
    """An unknown issuer ends the call: one connection, no request, cause and chain kept."""
    with pytest.raises(httpx.ConnectError) as caught:
        sender(HttpTool("tool", "POST", secure_site.url))
    assert len(secure_site.connections) == 1
    assert secure_site.requests == []
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    assert error is not None
    assert error.verify_code in (18, 19, 20)
    facts = facts_of_exception(error, host="localhost")
    assert facts is not None
    assert facts.get("names") == ["localhost"], facts


def test_a_wrong_host_name_is_refused(secure_site: Site, sender: Sender, ca_file: str) -> None:
    """The certificate must name the host, whoever signed it."""
    by_address = f"https://127.0.0.1:{secure_site.port}"
    with pytest.raises(httpx.ConnectError, match=r"(?i)ip address mismatch"):
        sender(HttpTool("tool", "GET", by_address, ca_file=ca_file))


def test_a_missing_ca_file_is_told(sender: Sender, tmp_path: Path) -> None:
    """A file that is not there fails the call before anything is sent."""
    tool = HttpTool("tool", "GET", "https://localhost:1", ca_file=str(tmp_path / "no.pem"))
    with pytest.raises(OSError):
        sender(tool)
