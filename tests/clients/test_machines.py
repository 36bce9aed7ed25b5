"""Browsers, remote shells, mail, and checks of data."""

import smtplib
import socket
import threading
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import jsonschema
import paramiko
import pydantic
import pytest
import selenium.common.exceptions
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import WebDriverWait

from failwise.faults import Fault, FaultServer
from tests.clients.provoking import greeting, judged, mute, peer, raised, refused_port

# -- browsers


def _browser(base: str) -> Any:
    return webdriver.Remote(base, options=webdriver.ChromeOptions())


def test_selenium_unreachable() -> None:
    """No grid there: not sent."""
    error = raised(lambda: _browser(f"http://127.0.0.1:{refused_port()}"))
    judged(error, "network.connect_refused", "not_sent")


@pytest.mark.parametrize(
    ("status", "kind", "code", "effect"),
    [
        (404, "no such element", "business.not_found", "rejected"),
        (400, "invalid selector", "invalid_request.parameter", "rejected"),
        (400, "element click intercepted", "business.precondition|business.refused", "rejected"),
        (400, "element not interactable", "business.precondition|business.refused", "rejected"),
        (
            404,
            "stale element reference",
            "business.not_found|business.precondition|business.conflict",
            "rejected",
        ),
        (404, "no such window", "business.not_found", "rejected"),
        (
            404,
            "invalid session id",
            "business.not_found|auth.credential_expired|network.connection_reset",
            "rejected",
        ),
        (500, "timeout", "network.timeout|network.read_timeout", "unknown"),
        (500, "script timeout", "network.timeout|network.read_timeout", "unknown"),
        (500, "unknown error", "server.internal", "unknown"),
        (400, "insecure certificate", "security.certificate_unverified", "not_sent"),
    ],
)
def test_selenium(faults: FaultServer, status: int, kind: str, code: str, effect: str) -> None:
    """Errors of the WebDriver protocol, each a class of its own."""
    session = {"value": {"sessionId": "s", "capabilities": {"browserName": "chrome"}}}
    faults.route("POST", "/session", Fault.json(session))
    body = {
        "value": {"error": kind, "message": f"{kind}: it is", "stacktrace": "#0 0x55 <unknown>"}
    }
    faults.route("POST", "/session/s/element", Fault.json(body, status))
    browser = _browser(faults.url("").rstrip("/"))
    judged(raised(lambda: browser.find_element(By.ID, "a")), code, effect)
    if kind == "no such element":
        waiting = WebDriverWait(browser, 0.1, 0.05)
        located = expected_conditions.presence_of_element_located((By.ID, "a"))
        error = raised(lambda: waiting.until(located))
        assert isinstance(error, selenium.common.exceptions.TimeoutException)
        judged(error, "network.timeout|business.not_found|network.read_timeout", "unknown|rejected")


def test_playwright_without_a_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The browser was never installed: the machine lacks something."""
    sync_api = pytest.importorskip("playwright.sync_api")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))

    def launch() -> None:
        with sync_api.sync_playwright() as playwright:
            playwright.chromium.launch()

    judged(raised(launch), "tool.missing_dependency", "not_sent")


def test_playwright_errors() -> None:
    """Its own words for a page that does not come."""
    sync_api = pytest.importorskip("playwright.sync_api")
    for error, code, effect in (
        (
            sync_api.TimeoutError("Page.goto: Timeout 300ms exceeded."),
            "network.timeout|network.read_timeout",
            "unknown",
        ),
        (
            sync_api.Error("Page.goto: net::ERR_CONNECTION_REFUSED at http://127.0.0.1:9/"),
            "network.connect_refused",
            "not_sent",
        ),
        (
            sync_api.Error("Page.goto: net::ERR_CERT_DATE_INVALID at https://a.example/"),
            "security.certificate_expired",
            "not_sent",
        ),
        (
            sync_api.Error("Page.click: Target page, context or browser has been closed"),
            "network.connection_reset|network.interrupted|tool.process_failed|server.internal",
            "unknown",
        ),
    ):
        judged(error, code, effect)


# -- remote shells


def _shell(port: int, **options: Any) -> Any:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(options.pop("policy", paramiko.AutoAddPolicy()))
    try:
        client.connect(
            "127.0.0.1",
            port,
            "user",
            options.pop("password", "secret"),
            allow_agent=False,
            look_for_keys=False,
            timeout=1,
            banner_timeout=0.3,
            auth_timeout=2,
            **options,
        )
    finally:
        client.close()


class _Refusing(paramiko.ServerInterface):
    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "password"


@pytest.fixture
def ssh_port() -> Iterator[int]:
    """A real SSH server that lets nobody in."""
    key = paramiko.RSAKey.generate(2_048)

    def serve(connection: socket.socket) -> None:
        transport = paramiko.Transport(connection)
        transport.add_server_key(key)
        try:
            transport.start_server(server=_Refusing())
            transport.join(3)
        except (paramiko.SSHException, EOFError):
            pass

    with peer(serve) as port:
        yield port


def test_paramiko(ssh_port: int) -> None:
    """Refused, silent, not SSH, wrong password, unknown host key."""
    judged(raised(lambda: _shell(refused_port())), "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(lambda: _shell(port))
    judged(error, "network.connect_timeout|network.timeout|network.protocol", "not_sent")
    with peer(greeting(b"220 mail.example ESMTP\r\n")) as port:
        error = raised(lambda: _shell(port))
    judged(error, "network.protocol|network.connection_reset|network.connect_timeout", "not_sent")
    error = raised(lambda: _shell(ssh_port))
    assert isinstance(error, paramiko.AuthenticationException)
    judged(error, "auth.invalid_credential", "rejected|not_sent")
    error = raised(lambda: _shell(ssh_port, policy=paramiko.RejectPolicy()))
    judged(error, "security.unknown_issuer|security.certificate_unverified", "not_sent")


# -- mail


def _mail(lines: dict[str, str]) -> Callable[[socket.socket], None]:
    def handler(connection: socket.socket) -> None:
        connection.sendall(b"220 mail.example ready\r\n")
        file = connection.makefile("rb")
        for line in file:
            word = line.split()[0].upper().decode().strip(":") if line.split() else ""
            usual = {"DATA": "354 go on", "QUIT": "221 bye"}.get(word, "250 fine")
            answer = lines.get(word, usual)
            connection.sendall(answer.encode() + b"\r\n")
            if word == "DATA" and answer.startswith("354"):
                while file.readline() not in (b".\r\n", b""):
                    pass
                connection.sendall(lines.get(".", "250 queued").encode() + b"\r\n")

    return handler


def _send(port: int, *, sign_in: bool = False) -> None:
    message = EmailMessage()
    message["From"], message["To"] = "a@x.example", "b@y.example"
    message.set_content("hello")
    with smtplib.SMTP("127.0.0.1", port, timeout=1) as server:
        if sign_in:
            server.login("u", "p")
        server.send_message(message)


@pytest.mark.parametrize(
    ("lines", "sign_in", "code", "effect"),
    [
        (
            {"RCPT": "550 5.1.1 User unknown"},
            False,
            "business.not_found|business.refused|invalid_request.parameter",
            "rejected",
        ),
        (
            {"RCPT": "450 4.2.1 Mailbox busy, try again later"},
            False,
            "rate_limit.requests|server.unavailable|business.locked|server.overloaded",
            "rejected",
        ),
        (
            {"RCPT": "552 5.2.2 Mailbox full"},
            False,
            "business.quota_exhausted|business.limit_exceeded|business.refused",
            "rejected",
        ),
        (
            {"MAIL": "553 5.1.8 Sender address rejected"},
            False,
            "invalid_request.parameter|business.refused|auth.forbidden",
            "rejected",
        ),
        (
            {".": "554 5.7.1 Message rejected as spam"},
            False,
            "business.refused|security.content_policy|auth.forbidden",
            "rejected",
        ),
        (
            {".": "451 4.3.0 Temporary local problem"},
            False,
            "server.unavailable|server.internal",
            "rejected|unknown",
        ),
        (
            {".": "552 5.3.4 Message size exceeds fixed limit"},
            False,
            "invalid_request.too_large",
            "rejected",
        ),
        (
            {
                "EHLO": "250-mail.example\r\n250 AUTH LOGIN PLAIN",
                "AUTH": "535 5.7.8 bad credentials",
            },
            True,
            "auth.invalid_credential",
            "rejected",
        ),
    ],
)
def test_mail(lines: dict[str, str], sign_in: bool, code: str, effect: str) -> None:
    """Replies of SMTP by their number and enhanced code (RFC 3463)."""
    with peer(_mail(lines)) as port:
        error = raised(lambda: _send(port, sign_in=sign_in))
    judged(error, code, effect)


def test_mail_unreachable() -> None:
    """Refused, and a server that never greets."""
    judged(raised(lambda: _send(refused_port())), "network.connect_refused", "not_sent")
    with peer(mute) as port:
        error = raised(lambda: _send(port))
    judged(
        error, "network.timeout|network.read_timeout|network.connect_timeout", "not_sent|unknown"
    )
    assert threading.active_count() < 200


# -- data


def test_checks_of_data() -> None:
    """Data that a schema refuses, as pydantic and jsonschema say it: the place is named."""

    class Order(pydantic.BaseModel):
        quantity: int

    error = raised(lambda: Order.model_validate({"quantity": "many"}))
    judged(
        error,
        "invalid_request.parameter|parsing.schema_mismatch|tool.exception",
        "unknown|rejected|not_sent",
    )
    error = raised(
        lambda: jsonschema.validate({"quantity": 0}, {"properties": {"quantity": {"minimum": 1}}})
    )
    judged(
        error,
        "invalid_request.parameter|parsing.schema_mismatch|tool.exception",
        "unknown|rejected|not_sent",
    )
