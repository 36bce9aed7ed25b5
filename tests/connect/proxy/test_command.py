"""``failwise mcp`` as a user runs it: processes, a host's file, the status."""

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from failwise.cli.main import main
from failwise.connect.proxy.hostfile import HEADERS
from tests.connect.proxy.conftest import ROOT
from tests.connect.proxy.test_proxy import record, text


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FAILWISE")}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), **more}


def command(*arguments: str) -> list[str]:
    return ["-m", "failwise", "mcp", *arguments]


def shop_command(ledger: Path) -> list[str]:
    return [sys.executable, "-m", "tests.connect.proxy.shop", str(ledger)]


async def test_wrap_stands_before_one_server(tmp_path: Path, ledger: Path) -> None:
    """One changed line: the same tools, structured failures, a journal; all processes gone at the end."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=command("wrap", "--name", "shop", "--", *shop_command(ledger)),
        env=environment(tmp_path),
        cwd=str(ROOT),
    )
    async with Client(parameters) as host:
        assert "echo" in [tool.name for tool in (await host.list_tools()).tools]
        assert text(await host.call_tool("echo", {"text": "hi"})) == "hi"
        failed = await host.call_tool("order_and_die", {"item": "x"})
        assert record(failed)["effect"] == "unknown"
        (status,) = (tmp_path / ".failwise" / "mcp").glob("*.json")
        assert oct(status.stat().st_mode & 0o777) == "0o600"
    assert not list((tmp_path / ".failwise" / "mcp").glob("*.json"))
    with contextlib.closing(sqlite3.connect(tmp_path / ".failwise" / "journal.db")) as journal:
        rows = journal.execute("SELECT tool, success, upstream FROM calls ORDER BY started")
        assert rows.fetchall() == [("echo", 1, "shop"), ("order_and_die", 0, "shop")]


async def test_serve_reads_a_file_and_speaks_http(tmp_path: Path, ledger: Path) -> None:
    """`serve --http`: several servers, one address, the status of a running one; SIGTERM ends it clean."""
    program, *arguments = shop_command(ledger)
    servers = {
        name: {"command": program, "args": arguments, "cwd": str(ROOT)} for name in ("one", "two")
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command("serve", "--servers", str(file), "--http", "0"),
        env=environment(tmp_path),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stderr.readline()).decode()
        url = line.removeprefix("failwise: ").strip()
        async with Client(url) as host:
            assert text(await host.call_tool("two__echo", {"text": "hi"})) == "hi"
            await asyncio.sleep(1.2)
            shown = subprocess.run(
                [sys.executable, *command("status", "--json")],
                env=environment(tmp_path),
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            (proxy,) = json.loads(shown.stdout)
            assert [row["state"] for row in proxy["servers"]] == ["up", "up"]
            assert [row["calls"] for row in proxy["servers"]] == [0, 1]
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            await process.communicate()


HOST = {
    "theme": "dark",
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server-files"], "env": {"A": "1"}},
        "bare": {"command": "uvx"},
        "remote": {
            "url": "https://api.example/mcp",
            "headers": {"Authorization": "Bearer abc123xyz"},
        },
    },
}


def test_install_and_undo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The difference first, a backup beside; twice changes nothing; undo gives the file back."""
    file = tmp_path / "host.json"
    file.write_text(json.dumps(HOST, indent=4) + "\n")
    file.chmod(0o600)
    before = file.read_text()
    assert main(["mcp", "install", str(file), "--yes"]) == 0
    shown = capsys.readouterr().out
    assert '+                "wrap",' in shown
    assert "abc123xyz" not in shown
    changed = json.loads(file.read_text())
    assert changed["theme"] == "dark"
    for name, entry in changed["mcpServers"].items():
        start = entry["args"].index("mcp")
        assert entry["args"][start : start + 4] == ["mcp", "wrap", "--name", name]
    assert changed["mcpServers"]["files"]["args"][-3:] == ["npx", "-y", "server-files"]
    assert changed["mcpServers"]["files"]["env"] == {"A": "1"}
    assert json.loads(changed["mcpServers"]["remote"]["env"][HEADERS]) == {
        "Authorization": "Bearer abc123xyz"
    }
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "host.json.before-failwise").read_text() == before
    assert main(["mcp", "install", str(file), "--yes"]) == 0
    assert "Nothing to change" in capsys.readouterr().out
    assert main(["mcp", "install", str(file), "--undo", "--yes"]) == 0
    assert file.read_text() == before


def test_install_only_one_server_and_keep_what_came_later(tmp_path: Path) -> None:
    """`--server`; undoing leaves alone what was added since."""
    file = tmp_path / "host.json"
    file.write_text(json.dumps(HOST, indent=2))
    assert main(["mcp", "install", str(file), "--server", "bare", "--yes"]) == 0
    data = json.loads(file.read_text())
    assert data["mcpServers"]["files"] == HOST["mcpServers"]["files"]  # type: ignore[index]
    data["mcpServers"]["later"] = {"command": "new"}
    file.write_text(json.dumps(data))
    assert main(["mcp", "install", str(file), "--undo", "--yes"]) == 0
    data = json.loads(file.read_text())
    assert data["mcpServers"].pop("later") == {"command": "new"}
    assert data == HOST


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["mcp", "wrap"], "say what to stand before"),
        (["mcp", "wrap", "--url", "http://x/mcp", "--", "y"], "say what to stand before"),
        (["mcp", "install", "nowhere.json"], "cannot be read"),
        (["mcp", "serve", "--servers", "nowhere.json"], "cannot be read"),
    ],
)
def test_misuse_is_told(arguments: list[str], told: str, capsys: Any) -> None:
    """Exit code 2, and what to do."""
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


def test_install_asks_somebody(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """Without a terminal and without --yes nothing is written."""
    file = tmp_path / "host.json"
    file.write_text(json.dumps(HOST))
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert main(["mcp", "install", str(file)]) == 2
    assert "--yes" in capsys.readouterr().err
    assert json.loads(file.read_text()) == HOST
