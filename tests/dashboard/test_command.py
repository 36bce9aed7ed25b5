"""``failwise dashboard``, and ``failwise mcp serve --dashboard``: real processes, asked over HTTP."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from failwise.cli.main import main


@contextmanager
def running(*words: str, folder: Path, **variables: str) -> Iterator[str]:
    """The command, until the block ends; gives the address that it said."""
    environment: Mapping[str, str] = {
        **os.environ, "FAILWISE_LANG": "en", "HOME": str(folder), **variables
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "failwise", *words],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            found = re.search(r"http://\S+", line)
            if found:
                yield found[0]
                break
        else:
            raise AssertionError(said)
    finally:
        process.terminate()
        process.wait(20)
        if process.stderr is not None:
            process.stderr.close()


def test_it_serves_until_it_is_ended(played: Path, tmp_path: Path) -> None:
    """The address that is printed answers; the policy is that of the failwise.toml beside it."""
    (tmp_path / "failwise.toml").write_text(
        f'[journal]\npath = "{played}"\n\n[policy.network]\nretries = 1\n', "utf-8"
    )
    with running("dashboard", "--port", "0", folder=tmp_path) as address:
        overview = httpx.get(f"{address}api/overview").json()
        assert overview["total"]["calls"]
        policy = httpx.get(f"{address}api/policy").json()
        assert policy["told"] is True
        retries = policy["rows"]["network"]["retries"]
        assert retries["value"] == 1
        assert retries["origin"].endswith("failwise.toml:5")
        assert httpx.get(address, headers={"host": "evil.example"}).status_code == 421


def test_a_proxy_in_front_with_a_prefix(played: Path, tmp_path: Path) -> None:
    """Links begin with the prefix; a token of the environment guards the pages."""
    words = ("dashboard", str(played), "--port", "0", "--prefix", "/ops", "--read-only")
    token = "t" * 20
    with running(*words, folder=tmp_path, FAILWISE_DASHBOARD_TOKEN=token) as address:
        base = address.removesuffix("/ops/")
        assert httpx.get(f"{base}/api/overview").status_code == 401
        page = httpx.get(f"{base}/", headers={"authorization": f"Bearer {token}"}).text
        assert 'href="/ops/calls' in page


def test_it_runs_beside_the_mcp_proxy(tmp_path: Path) -> None:
    """One process: hosts at /mcp, people at /dashboard/, which knows the guards of the runtime."""
    servers = {"mcpServers": {"none": {"url": "http://127.0.0.1:9/mcp"}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers), "utf-8")
    words = ("mcp", "serve", "--servers", "mcp.json", "--http", "0", "--dashboard")
    with running(*words, folder=tmp_path) as address:
        base = address.removesuffix("/mcp")
        data = httpx.get(f"{base}/dashboard/api/upstreams").json()
        assert data["guards_known"] is True
        page = httpx.get(f"{base}/dashboard", follow_redirects=True)
        assert 'href="/dashboard/static/' in page.text
        assert httpx.get(f"{base}/elsewhere").status_code == 404


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--host", "0.0.0.0"), "FAILWISE_DASHBOARD_TOKEN"),
        (("--allow-host", "ops.example"), "FAILWISE_DASHBOARD_TOKEN"),
        (("--prefix", "ops"), "write a path"),
        (("nowhere.db",), "there is no journal here"),
    ],
)
def test_what_is_refused(
    words: tuple[str, ...],
    told: str,
    played: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """2, with what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAILWISE_JOURNAL", str(played))
    monkeypatch.delenv("FAILWISE_DASHBOARD_TOKEN", raising=False)
    assert main(["dashboard", *words]) == 2
    assert told in capsys.readouterr().err
