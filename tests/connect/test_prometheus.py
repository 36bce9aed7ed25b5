"""A runtime's metrics: as text that Prometheus' own parser reads, in a registry, over HTTP."""

import math
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from failwise import Runtime, UsageError
from failwise.connect.prometheus import Metrics
from failwise.testing import ScriptedTool, SteppingClock


@pytest.fixture
def rt() -> Iterator[Runtime]:
    with Runtime(":memory:", jitter=0.0, clock=SteppingClock()) as runtime:
        yield runtime


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels, as Prometheus' parser understands it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def played(rt: Runtime) -> Metrics:
    """One good call, one recovered, one failed write with an open end."""
    metrics = Metrics(rt)
    rt.add(ScriptedTool("search", [1, ConnectionRefusedError(), 1], read_only=True).spec())
    rt.add(ScriptedTool("pay", [ConnectionResetError()], read_only=False).spec())
    rt.call_sync("search", {})
    rt.call_sync("search", {})
    rt.call_sync("pay", {})
    return metrics


def test_calls_attempts_retries_and_open_effects_are_counted(rt: Runtime) -> None:
    """Each figure equals a count by hand."""
    found = read(played(rt).text())

    def of(name: str, **labels: str) -> float:
        return found[name, tuple(sorted(labels.items()))]

    assert of("failwise_tool_calls_total", tool="search", outcome="ok") == 1
    assert of("failwise_tool_calls_total", tool="search", outcome="recovered") == 1
    assert of("failwise_tool_calls_total", tool="pay", outcome="failed") == 1
    assert of("failwise_tool_attempts_total", tool="search", result="ok") == 2
    assert of("failwise_tool_attempts_total", tool="search", result="failed") == 1
    assert of("failwise_retries_total", tool="search", reason="network") == 1
    assert of("failwise_effect_unknown_total", tool="pay") == 1
    assert (
        of(
            "failwise_tool_failures_total",
            tool="pay",
            category="network",
            code="network.connection_reset",
        )
        == 1
    )
    assert of("failwise_tool_call_duration_seconds_count", tool="search") == 2
    assert of("failwise_tool_call_duration_seconds_sum", tool="search") == pytest.approx(1.0)
    assert of("failwise_tool_call_duration_seconds_bucket", tool="search", le="0.5") == 1
    assert of("failwise_tool_call_duration_seconds_bucket", tool="search", le="+Inf") == 2
    assert of("failwise_circuit_state", upstream="search") == 0
    assert of("failwise_records_dropped_total") == 0


def test_a_registry_exports_the_same(rt: Runtime) -> None:
    """What prometheus_client writes of our collector is what we write ourselves."""
    metrics, registry = played(rt), CollectorRegistry()
    metrics.register(registry)
    assert read(generate_latest(registry).decode()) == read(metrics.text())


def test_names_chosen_by_others_are_bounded_and_escaped(rt: Runtime) -> None:
    """Beyond the bound tools share one label; a hostile name breaks no line."""
    metrics = Metrics(rt, max_tools=2)
    for name in ('a"b\\c\nd', "second", "third", "fourth"):
        rt.add(ScriptedTool(name, [1], read_only=True).spec())
        rt.call_sync(name, {})
    found = read(metrics.text())
    calls = {dict(labels)["tool"]: n for (name, labels), n in found.items() if "calls" in name}
    assert calls == {'a"b\\c\nd': 1, "second": 1, "_other": 2}
    assert all(not math.isnan(value) for value in found.values())


def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_over_http(rt: Runtime) -> None:
    """`/metrics` on loopback; with a token only for who has it; elsewhere never without one."""
    metrics = played(rt)
    try:
        port = metrics.serve(0)
        status, text = get(port, "/metrics")
        assert status == 200
        assert read(text) == read(metrics.text())
        assert get(port, "/")[0] == 404
        guarded = metrics.serve(0, token="let-me-in")
        assert get(guarded, "/metrics")[0] == 401
        assert get(guarded, "/metrics", Authorization="Bearer wrong")[0] == 401
        assert get(guarded, "/metrics", Authorization="Bearer let-me-in")[0] == 200
        with pytest.raises(UsageError, match="token"):
            metrics.serve(0, host="0.0.0.0")
    finally:
        metrics.close()


def test_a_prefix_that_is_no_name_is_refused(rt: Runtime) -> None:
    with pytest.raises(UsageError, match="prefix"):
        Metrics(rt, prefix="a b")
