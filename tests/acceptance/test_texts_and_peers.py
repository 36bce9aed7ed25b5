"""Acceptance examples that cross several rooms: pasted texts, TLS peers, what a model reads."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import failwise
from failwise.faults import Fault, FaultServer


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def rt() -> Iterator[failwise.Runtime]:
    with failwise.Runtime(":memory:", jitter=0) as runtime:
        yield runtime


@pytest.mark.parametrize(
    "text",
    [
        "获取首页数据失败: exception: 伺服器错误 502: !doctype htmlhtml lang",
        "获取首页数据失败: exception: 伺服器錯誤 502: <!doctype html><html lang=",
    ],
)
def test_e15_a_pasted_gateway_error_is_taken_apart(text: str) -> None:
    """E15: brackets lost on the way; context, wrapper, message and page remnant come apart."""
    failure = failwise.classify_text(text)
    assert failure is not None
    assert (failure.code, failure.http_status) == ("network.bad_gateway", 502)
    assert failure.effect is failwise.Effect.UNKNOWN
    assert failure.transient
    parts = failure.detail("parts")
    assert parts["context"] == "获取首页数据失败"
    assert parts["wrapper"] == "exception"
    assert parts["message"].startswith("伺服器")
    assert "html" in parts["remnant"]
    assert "doctype" not in failure.message
    assert "<" not in failure.message


def test_e15_it_falls_into_the_cluster_of_a_real_page(
    rt: failwise.Runtime, server: FaultServer
) -> None:
    """E15: the pasted text and a real 502 page of the same tool are one kind."""
    page = "<!doctype html><html lang=en><head><title>502 Bad Gateway</title></head></html>"
    server.route("POST", "/home", Fault.status(502, html=page))
    rt.add(failwise.HttpTool("home", "POST", server.url("/home")))
    live = rt.call_sync("home").failure
    text = "获取首页数据失败: exception: 伺服器错误 502: !doctype htmlhtml lang"
    pasted = failwise.classify_text(text, tool="home")
    assert live is not None
    assert pasted is not None
    assert live.fingerprint == pasted.fingerprint


@pytest.mark.parametrize("text", ["订单 502 已创建", "Order 4291 created", "共找到 404 条记录"])
def test_e15_a_bare_number_is_no_evidence(text: str) -> None:
    """E15, counter-example: numbers in a good text are no statuses."""
    failure = failwise.classify_text(text)
    assert failure is None or failure.category is failwise.Category.UNKNOWN


PEERS = {
    "expired": ("security.certificate_expired", 10, "expired"),
    "not_yet_valid": ("security.certificate_not_yet_valid", 9, "clock"),
    "wrong_host": ("security.hostname_mismatch", 62, "host name that the certificate names"),
    "by_address": ("security.hostname_mismatch", 64, "host name that the certificate names"),
    "self_signed": ("security.self_signed", 18, "trust store"),
    "unknown_root": ("security.unknown_issuer", 20, "root of"),
    "missing_intermediate": ("security.incomplete_chain", 20, "must send the intermediate"),
    "intercepted": ("security.unknown_issuer", 20, "exempted from interception"),
    "wrong_purpose": ("security.certificate_unverified", 26, "serverAuth"),
}


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
async def test_e23_a_bad_peer_is_diagnosed_over_one_connection(
    rt: failwise.Runtime, server: FaultServer, peer: Any, sync: bool
) -> None:
    """E23: one connection, nothing sent, the facts of the certificate, and a remedy that fits."""
    code, verify_code, remedy = PEERS[peer]
    rt.add(failwise.HttpTool("fetch", "GET", server.tls(peer, "/"), ca_file=server.ca_file))
    result = rt.call_sync("fetch") if sync else await rt.call("fetch")
    failure = result.failure
    assert failure is not None
    assert (failure.code, failure.effect) == (code, failwise.Effect.NOT_SENT)
    assert failure.transient is False
    assert result.suggested_action is failwise.Action.ABORT
    assert server.connections(peer) == 1
    assert remedy in failure.remedy
    facts = failure.detail("certificate")
    assert facts["verify_code"] == verify_code
    assert facts["tcp"] is True
    for name in ("host", "address", "not_before", "not_after", "names", "issuer", "subject"):
        assert facts[name], name
    assert facts["self_signed"] is (peer == "self_signed")
    assert facts["chain"]
    assert facts["protocol"].startswith("TLS")
    assert "proxy" in facts


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("peer", ["expired", "wrong_host", "self_signed"])
def test_e23_the_facts_are_those_that_openssl_prints(
    rt: failwise.Runtime, server: FaultServer, peer: Any
) -> None:
    """E23: dates and names equal those of ``openssl s_client`` and ``x509`` for the same peer."""
    url = server.tls(peer, "/")
    rt.add(failwise.HttpTool("fetch", "GET", url, ca_file=server.ca_file))
    failure = rt.call_sync("fetch").failure
    assert failure is not None
    facts = failure.detail("certificate")
    host, port = url.split("//")[1].split("/")[0].split(":")
    sent = subprocess.run(
        ["openssl", "s_client", "-connect", f"{host}:{port}", "-servername", host],
        input=b"", capture_output=True, timeout=20, check=False,
    ).stdout  # fmt: skip
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-dates", "-ext", "subjectAltName", "-dateopt", "iso_8601"],
        input=sent, capture_output=True, timeout=20, check=True,
    ).stdout.decode()  # fmt: skip
    dates = dict(re.findall(r"not(Before|After)=(\S+ \S+)Z", shown))
    assert facts["not_after"] == dates["After"].replace(" ", "T") + "Z"
    assert facts["not_before"] == dates["Before"].replace(" ", "T") + "Z"
    names = re.findall(r"(?:DNS|IP Address):([^,\s]+)", shown)
    assert sorted(facts["names"]) == sorted(names)


def test_e24_what_the_model_reads_after_a_502(rt: failwise.Runtime, server: FaultServer) -> None:
    """E24: that it failed, tool, kind, status, cause, effect, attempts, suggestion, safe choices."""
    server.route(
        "POST", "/orders", Fault.status(502, html="<html><title>Bad Gateway</title></html>")
    )
    rt.add(failwise.HttpTool("order", "POST", server.url("/orders")))
    result = rt.call_sync("order")
    chinese, english = result.for_model("zh"), result.for_model()
    for words in (
        "order",
        "是否成功 否",
        "network",
        "HTTP 502",
        "是否已生效",
        "已尝试 1 次",
        "建议动作",
        "可选",
    ):
        assert words in chinese
    assert english.startswith("FAILED")
    assert "it may have taken effect" in english
    assert "repeat" not in english
    assert "重试" not in chinese.split("可选")[1]
    for text in (chinese, english):
        assert len(text) <= 900
        assert "<" not in text


@pytest.mark.parametrize("read", [True, False])
def test_only_a_read_goes_elsewhere_after_a_tls_failure(
    rt: failwise.Runtime, server: FaultServer, read: bool
) -> None:
    """Where nobody knows who answers, a read may use another tool; a write stops."""

    @rt.tool(read_only=read)
    def other() -> str:
        return "from elsewhere"

    method = "GET" if read else "POST"
    url = server.tls("expired", "/")
    rt.add(failwise.HttpTool("fetch", method, url, ca_file=server.ca_file, fallback=["other"]))
    result = rt.call_sync("fetch")
    assert result.degraded_to == ("other" if read else None)
    assert result.success is read
