"""The proxy before public MCP servers, with the official client and FastMCP's: `make servers`.

The servers come from npm (``server-everything``, ``server-filesystem``) and PyPI (``mcp-server-time``,
``-fetch``, ``-git``) into places that the Makefile names; without them these tests are skipped.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from failwise import Runtime
from failwise.connect.proxy import Proxy, ProxySettings, ServerSettings
from failwise.faults import Fault, FaultServer

ROOT = Path(__file__).parents[2]
NPM = Path(os.environ.get("FAILWISE_TEST_NPM", ROOT / ".servers" / "node_modules" / ".bin"))
PYPI = Path(os.environ.get("FAILWISE_TEST_SERVERS", ROOT / ".venv-servers" / "bin"))
SECRET = "sk-" + "ant-api03-" + "Ab3d" * 12


def found(folder: Path, name: str) -> str:
    path = folder / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: `make servers` does it")
    return str(path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git = shutil.which("git") or pytest.skip("git is not installed")
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run([git, "init", "-q", str(folder)], check=True)
    (folder / "a.txt").write_text("one\n")
    subprocess.run([git, "-C", str(folder), "add", "."], check=True)
    subprocess.run([git, "-C", str(folder), *identity, "commit", "-qm", "first"], check=True)
    return folder


def settings(name: str, tmp_path: Path, repository: Path) -> ServerSettings:
    (tmp_path / "files").mkdir(exist_ok=True)
    (tmp_path / "files" / "hello.txt").write_text("hello")
    command, arguments = {
        "everything": (NPM / "mcp-server-everything", ()),
        "filesystem": (NPM / "mcp-server-filesystem", (str(tmp_path / "files"),)),
        "time": (PYPI / "mcp-server-time", ("--local-timezone", "Europe/Berlin")),
        "fetch": (PYPI / "mcp-server-fetch", ("--ignore-robots-txt", "--allow-private-ips")),
        "git": (PYPI / "mcp-server-git", ("--repository", str(repository))),
    }[name]
    env = {"PATH": {"value": f"{PYPI}:{os.environ['PATH']}"}}
    return ServerSettings(name, found(command.parent, command.name), arguments, env=env)


SERVERS = ["everything", "filesystem", "time", "fetch", "git"]


@asynccontextmanager
async def proxied(
    *servers: ServerSettings, mode: str = "auto", **options: Any
) -> AsyncIterator[tuple[Client, Proxy]]:
    with Runtime(":memory:", jitter=0.0) as runtime:
        proxy = Proxy(ProxySettings(servers, **options), runtime)
        async with proxy, Client(proxy.server, mode=mode) as host:
            yield host, proxy


def direct(server: ServerSettings) -> StdioServerParameters:
    env = {name: value["value"] for name, value in (server.env or {}).items()}
    return StdioServerParameters(command=server.command or "", args=list(server.args), env=env)


def calls(tmp_path: Path, repository: Path) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Calls whose answers do not change from one to the next."""
    files = tmp_path / "files"
    return {
        "everything": [
            ("echo", {"message": "你好"}),
            ("get-sum", {"a": 2, "b": 3}),
            ("get-tiny-image", {}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-annotated-message", {"messageType": "success", "includeImage": False}),
            ("get-resource-links", {"count": 3}),
        ],
        "filesystem": [
            ("read_text_file", {"path": str(files / "hello.txt")}),
            ("list_directory", {"path": str(files)}),
            ("list_allowed_directories", {}),
            ("search_files", {"path": str(files), "pattern": "*.txt"}),
        ],
        "time": [
            (
                "convert_time",
                {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"},
            )
        ],
        "fetch": [],
        "git": [
            ("git_status", {"repo_path": str(repository)}),
            ("git_log", {"repo_path": str(repository), "max_count": 1}),
            ("git_diff_unstaged", {"repo_path": str(repository)}),
        ],
    }


@pytest.mark.parametrize("name", SERVERS)
async def test_listing_and_calling_equal_direct_use(
    name: str, tmp_path: Path, repository: Path
) -> None:
    """Every tool is listed as it is; calls of each give the very same content."""
    server = settings(name, tmp_path, repository)
    async with Client(direct(server), cache=None, elicitation_callback=nobody) as alone:
        # Each era has fields that the other one does not: the host speaks the server's.
        mode = "auto" if alone.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"
        await compared(name, alone, server, mode, calls(tmp_path, repository)[name])


async def nobody(context: Any, params: Any) -> types.ElicitResult:
    """Servers list what a client can do: this one can be asked, as the proxy's host can."""
    return types.ElicitResult(action="cancel")


async def compared(
    name: str, alone: Client, server: ServerSettings, mode: str, asked: list[tuple[str, Any]]
) -> None:
    async with proxied(server, mode=mode) as (host, _):
        theirs, ours = await alone.list_tools(), await host.list_tools()
        assert [tool.model_dump() for tool in ours.tools] == [
            tool.model_dump() for tool in theirs.tools
        ]
        for tool, arguments in asked:
            wanted = await alone.call_tool(tool, arguments)
            got = await host.call_tool(tool, arguments)
            assert got.content == wanted.content, tool
            assert got.structured_content == wanted.structured_content, tool
            assert not got.is_error, tool
        if alone.server_capabilities.resources is not None:
            assert (await host.list_resources()).resources == (
                await alone.list_resources()
            ).resources
        if alone.server_capabilities.prompts is not None:
            assert (await host.list_prompts()).prompts == (await alone.list_prompts()).prompts


async def test_all_of_them_at_once_with_one_that_never_starts(
    tmp_path: Path, repository: Path
) -> None:
    """Prefixes keep names apart; the one that cannot start hides nobody."""
    servers = [settings(name, tmp_path, repository) for name in SERVERS]
    broken = ServerSettings("broken", sys.executable, ("-c", "raise SystemExit('no config')"))
    async with proxied(*servers, broken, start_wait=30.0) as (host, proxy):
        names = [tool.name for tool in (await host.list_tools()).tools]
        for name in SERVERS:
            assert any(tool.startswith(f"{name}__") for tool in names), name
        rows = {row["name"]: row for row in proxy.status()["servers"]}
        assert "no config" in rows["broken"]["error"]


async def test_failures_of_public_servers_are_told(tmp_path: Path, repository: Path) -> None:
    """Errors that the servers write as text or as exceptions come back classified, without secrets."""
    servers = [settings(name, tmp_path, repository) for name in ("filesystem", "time", "git")]
    async with proxied(*servers, start_wait=30.0) as (host, _):
        outside = await host.call_tool("filesystem__read_text_file", {"path": "/etc/shadow"})
        missing = await host.call_tool(
            "filesystem__read_text_file", {"path": str(tmp_path / "files" / f"{SECRET}.txt")}
        )
        zone = await host.call_tool("time__get_current_time", {"timezone": "Mars/Olympus"})
        branch = await host.call_tool(
            "git__git_checkout", {"repo_path": str(repository), "branch_name": "no-such"}
        )
        absent = await host.call_tool("time__convert_time", {"time": "12:00"})
    for result in (outside, missing, zone, branch, absent):
        assert result.is_error
        assert result.content[0].text.startswith("FAILED: tool ")  # type: ignore[union-attr]
        assert SECRET not in result.model_dump_json()
    category = (absent.meta or {})["dev.failwise/result"]["failure"]["category"]
    assert category == "model_output"


async def test_what_a_server_fetches_is_told_by_its_status(
    tmp_path: Path, repository: Path
) -> None:
    """`mcp-server-fetch` before a page that is not there, one that fails, and one that is."""
    with FaultServer() as web:
        web.route("GET", "/gone", [Fault.status(404)])
        web.route("GET", "/broken", [Fault.status(503)])
        web.route("GET", "/page", [Fault.status(200, html="<h1>Error handling for beginners</h1>")])
        async with proxied(settings("fetch", tmp_path, repository)) as (host, _):
            gone = await host.call_tool("fetch", {"url": web.url("/gone")})
            broken = await host.call_tool("fetch", {"url": web.url("/broken")})
            page = await host.call_tool("fetch", {"url": web.url("/page")})
    assert gone.is_error
    assert broken.is_error
    assert not page.is_error


async def test_a_server_killed_in_a_call_is_back_for_the_next(
    tmp_path: Path, repository: Path
) -> None:
    """SIGKILL while it works: the effect is unknown, the next call finds a new process."""
    async with proxied(settings("everything", tmp_path, repository)) as (host, proxy):
        await host.list_tools()
        task = asyncio.create_task(
            host.call_tool("trigger-long-running-operation", {"duration": 20, "steps": 5})
        )
        while not proxy.upstreams[0].under_way:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)
        for pid in children("mcp-server-everything"):
            os.kill(pid, signal.SIGKILL)
        result = await task
        assert result.is_error
        assert (result.meta or {})["dev.failwise/result"]["effect"] == "unknown"
        again = await host.call_tool("echo", {"message": "back"})
        assert not again.is_error
        assert proxy.upstreams[0].generation == 2


def children(program: str) -> list[int]:
    """The processes below this one that run a program."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    rows = [line.split(None, 2) for line in listed]
    below, seen = {os.getpid()}, -1
    while seen != len(below):
        seen = len(below)
        below |= {int(row[0]) for row in rows if int(row[1]) in below}
    return [int(row[0]) for row in rows if int(row[0]) in below and program in row[2]]


async def test_fastmcps_client_sees_the_same(tmp_path: Path, repository: Path) -> None:
    """Another client library, over the real command: lists, calls, and failures as tool errors."""
    python = found(PYPI, "python")
    server = settings("time", tmp_path, repository)
    script = f"""
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
async def main():
    transport = StdioTransport({sys.executable!r}, ["-m", "failwise", "mcp", "wrap", "--",
        {server.command!r}, *{list(server.args)!r}], env={{"HOME": {str(tmp_path)!r}, "PATH": {os.environ["PATH"]!r}}})
    async with Client(transport) as client:
        tools = [tool.name for tool in await client.list_tools()]
        good = await client.call_tool("convert_time", {{"source_timezone": "UTC", "time": "12:00",
            "target_timezone": "Asia/Shanghai"}}, raise_on_error=False)
        bad = await client.call_tool("get_current_time", {{"timezone": "Mars"}}, raise_on_error=False)
        print(json.dumps([tools, good.is_error, bad.is_error, bad.content[0].text]))
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        python, "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    async with asyncio.timeout(100):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-2_000:]
    tools, good, bad, told = json.loads(out.decode().splitlines()[-1])
    assert tools == ["get_current_time", "convert_time"]
    assert (good, bad) == (False, True)
    assert told.startswith("FAILED: tool get_current_time")
