"""``[telemetry]`` of a failwise.toml: what it switches on, and what it refuses."""

import urllib.request
from pathlib import Path

import pytest

from failwise import ConfigurationError
from failwise.cli.configuration import load

TOOL = '[tools.look]\nmethod = "GET"\nurl = "http://127.0.0.1:9/"\n'


def test_metrics_are_served_and_calls_are_traced(tmp_path: Path, free_tcp_port: int) -> None:
    """A port answers /metrics of the calls that were made; an observer is at work."""
    file = tmp_path / "failwise.toml"
    section = f"[telemetry]\nopentelemetry = true\nprometheus_port = {free_tcp_port}\n"
    file.write_text(TOOL + '[journal]\npath = ":memory:"\n' + section)
    with load(file) as runtime:
        runtime.call_sync("no_such_tool", {})
        address = f"http://127.0.0.1:{free_tcp_port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        assert 'failwise_tool_calls_total{tool="no_such_tool",outcome="failed"} 1' in text
        assert len(runtime._observers) == 1
        with pytest.raises(ConfigurationError, match="prometheus_port"):
            load(file)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("opentelemetri = true", "did you mean opentelemetry"),
        ('opentelemetry = "yes"', "true or false"),
        ("prometheus_port = true", "a port"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "failwise.toml"
    file.write_text(f"{TOOL}\n[telemetry]\n{line}\n")
    with pytest.raises(ConfigurationError, match=told) as caught:
        load(file)
    assert caught.value.line == 6
