"""``failwise guards``: the fleet's state, for people and programs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from failwise.cli.main import main
from failwise.testing.guard_upstream import Upstream, ill
from tests.guards.valkey import fresh, started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Valkey that knows a well upstream and one in trouble."""
    from failwise.guards import default_settings
    from failwise.runtime.clock import SystemClock

    valkey = started(tmp_path_factory.mktemp("valkey"))
    url = f"redis://127.0.0.1:{valkey.port}"
    guards = fresh(url, SystemClock(), default_settings(), namespace="failwise")
    shop = Upstream(guards, None)  # type: ignore[arg-type] # its clock is not moved
    shop.call()
    broken = Upstream(guards, None, "broken")  # type: ignore[arg-type]
    broken.open_circuit()
    held = Upstream(guards, None, "held")  # type: ignore[arg-type]
    held.call(ill("rate_limit.requests", 600))
    held.row()
    guards.close()
    yield url
    valkey.stop()


def test_trouble_comes_first_and_is_told_by_the_exit_code(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table for people; 1 where something is held or open."""
    assert main(["guards", "--url", server]) == 1
    shown = capsys.readouterr().out
    assert shown.index("broken") < shown.index("held") < shown.index("shop")
    assert "open, " in shown
    assert main(["guards", "--url", server, "--lang", "zh"]) == 1
    assert "断开" in capsys.readouterr().out


def test_programs_get_one_object_a_row(
    server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the server too."""
    monkeypatch.setenv("FAILWISE_GUARDS", server)
    assert main(["guards", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["upstream"]: row["circuit"] for row in rows} == {
        "broken": "open",
        "held": "closed",
        "shop": "closed",
    }
    assert main(["guards", "--namespace", "other"]) == 0
    assert "No upstream" in capsys.readouterr().out


def test_what_cannot_be_looked_at_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory of other processes; a server that is gone; never the password."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILWISE_GUARDS", raising=False)
    assert main(["guards"]) == 2
    assert "--url" in capsys.readouterr().err
    assert main(["guards", "--url", "redis://:hidden@127.0.0.1:1"]) == 2
    told = capsys.readouterr().err
    assert "do not answer" in told
    assert "hidden" not in told


def test_the_configuration_names_the_server(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``[guards]``: url, or env for one with a password; mistakes with their line."""
    monkeypatch.delenv("FAILWISE_GUARDS", raising=False)
    file = tmp_path / "failwise.toml"
    file.write_text(f'[guards]\nurl = "{server}"\n[guards.concurrency]\nlimit = 7\n', "utf-8")
    assert main(["guards", "--config", str(file)]) == 1
    assert "/7" in capsys.readouterr().out
    monkeypatch.setenv("SHOP_GUARDS", server)
    file.write_text('[guards]\nenv = "SHOP_GUARDS"\n', "utf-8")
    assert main(["guards", "--config", str(file), "--json"]) == 1
    capsys.readouterr()
    for text, says in (
        ('[guards]\n\nurl = "http://x"\n', "3: [guards]: guards='http://x'"),
        ('[guards]\nenv = "NOT_THERE"\n', "2: [guards]: the environment has no 'NOT_THERE'"),
        ('[guards]\nurl = "redis://a"\nenv = "B"\n', "exclude each other"),
        ("[guards]\nurl = 3\n", "2: url = 3: write a text"),
        ('[guards]\nnamespace = "a b"\nurl = "redis://a"\n', "namespace='a b'"),
    ):
        file.write_text(text, "utf-8")
        assert main(["guards", "--config", str(file)]) == 2
        assert says in capsys.readouterr().err, text
