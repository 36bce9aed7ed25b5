"""``failwise mcp``: the proxy between an MCP host and MCP servers."""

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.terminal import add_common, clean, console, language, print_json, say, table
from failwise.vocabulary.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from failwise.connect.proxy.settings import ProxySettings, ServerSettings
    from failwise.runtime.runtime import Runtime

TOKEN: Final = "FAILWISE_MCP_TOKEN"  # noqa: S105 - the name of the variable
_EPILOG: Final = """\
examples:
  failwise mcp wrap -- npx -y @modelcontextprotocol/server-everything
  failwise mcp wrap --url http://127.0.0.1:8000/mcp
  failwise mcp serve --servers mcp.json                  # several servers, over stdio
  failwise mcp serve --servers mcp.json --http 8765      # ... at http://127.0.0.1:8765/mcp
  failwise mcp serve --servers mcp.json --http 8765 --dashboard   # ... and pages at /dashboard/
  failwise mcp install claude-desktop                    # shows the difference first
  failwise mcp install claude-desktop --undo
  failwise mcp status

wrap and serve speak MCP on standard output and log to standard error. Their journal is FAILWISE_JOURNAL,
else .failwise/journal.db in the home folder. Beyond this machine (--host) the variable
FAILWISE_MCP_TOKEN must hold a token. install: cursor, vscode, windsurf, claude-code, or a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    kinds = parser.add_subparsers(dest="what", metavar="wrap|serve|install|status", required=True)
    wrap = kinds.add_parser("wrap", help="stand before one server, over stdio")
    wrap.add_argument("--name", default="server", help="what the server is called in records")
    wrap.add_argument("--url", help="a server over streamable HTTP instead of a command")
    wrap.add_argument("--type", help=argparse.SUPPRESS)
    wrap.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="without news")
    wrap.add_argument(
        "--trust-annotations", action="store_true", help="the server's own word may allow a repeat"
    )
    wrap.add_argument("command_line", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    serve = kinds.add_parser("serve", help="stand before the servers of a file")
    serve.add_argument("--servers", required=True, metavar="FILE", help="a mcpServers file")
    serve.add_argument("--http", type=int, metavar="PORT", help="serve over HTTP, not stdio")
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (with --http)")
    serve.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME:PORT", help="a Host to answer"
    )
    serve.add_argument(
        "--dashboard", action="store_true", help="pages on the journal at /dashboard/ (with --http)"
    )
    for nested in (wrap, serve):
        nested.add_argument("--config", metavar="FILE", help="a failwise.toml: policy, guards, ...")
        nested.add_argument("--journal", metavar="PATH|URL", help="where calls are recorded")
    install = kinds.add_parser("install", help="put a host's servers behind the proxy")
    install.add_argument("host", metavar="HOST|FILE")
    install.add_argument("--server", action="append", default=[], metavar="NAME", help="only this")
    install.add_argument("--undo", action="store_true", help="take them out again")
    install.add_argument("--yes", action="store_true", help="do not ask")
    status = kinds.add_parser("status", help="how the servers of running proxies are doing")
    for nested in (wrap, serve, install, status):
        add_common(nested, nested=True)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Run one of the four."""
    if arguments.what == "install":
        return _install(arguments)
    if arguments.what == "status":
        return _status(arguments)
    return _serve(arguments)


def folder() -> Path:
    """Where running proxies say how they are."""
    return Path.home() / ".failwise" / "mcp"


def _serve(arguments: argparse.Namespace) -> int:
    _needs_mcp()
    import asyncio
    import logging

    from failwise.connect.proxy.front import Proxy
    from failwise.connect.proxy.serving import serve_http, serve_stdio

    settings = _one(arguments) if arguments.what == "wrap" else _several(arguments)
    runtime = _runtime(arguments, settings)
    if not logging.getLogger().handlers:
        logging.basicConfig(
            stream=sys.stderr, level=logging.WARNING, format="failwise: %(message)s"
        )
    port = getattr(arguments, "http", None)

    async def run() -> None:
        proxy = Proxy(settings, runtime)
        if port is None:
            await serve_stdio(proxy, folder())
        else:
            await serve_http(
                proxy,
                folder(),
                host=arguments.host,
                port=port,
                token=os.environ.get(TOKEN),
                allowed_hosts=tuple(arguments.allow_host),
                dashboard=_dashboard(arguments, runtime),
                began=lambda real: print(  # noqa: T201 - a person, or a test, reads it
                    f"failwise: http://{arguments.host}:{real}/mcp", file=sys.stderr, flush=True
                ),
            )

    with runtime, contextlib.suppress(asyncio.CancelledError):
        asyncio.run(run())
    return 0


def _dashboard(arguments: argparse.Namespace, runtime: "Runtime") -> Any:
    """The dashboard of this very process, where it is wanted."""
    if not arguments.dashboard:
        return None
    from failwise.cli.dashboard import beside

    return beside(runtime, arguments.host, arguments.allow_host, arguments.config)


def _needs_mcp() -> None:
    import importlib.util

    if importlib.util.find_spec("mcp") is None:
        raise ConfigurationError("the proxy needs the mcp package: pip install 'failwise[mcp]'")


def _one(arguments: argparse.Namespace) -> "ProxySettings":
    """The settings of ``wrap``."""
    from failwise.connect.proxy.settings import ProxySettings

    return ProxySettings((_server(arguments),), language(arguments.lang))


def _server(arguments: argparse.Namespace) -> "ServerSettings":
    from failwise.connect.proxy.hostfile import HEADERS
    from failwise.connect.proxy.settings import ServerSettings

    command = list(arguments.command_line)
    if command[:1] == ["--"]:
        del command[0]
    if bool(command) == (arguments.url is not None):
        raise UsageError(
            "say what to stand before: `failwise mcp wrap -- COMMAND ...` or --url URL"
        )
    if arguments.timeout <= 0:
        raise UsageError("--timeout is a number of seconds above 0")
    headers: dict[str, Any] | None = None
    if arguments.url is not None and (written := os.environ.get(HEADERS)):
        try:
            headers = dict(json.loads(written))
        except (ValueError, TypeError):
            raise UsageError(f"{HEADERS} is no JSON object") from None
    inherited = {name: value for name, value in os.environ.items() if name != HEADERS}
    return ServerSettings(
        arguments.name,
        command[0] if command else None,
        tuple(command[1:]),
        # The host has put the server's variables into ours.
        {name: {"value": value} for name, value in inherited.items()} if command else None,
        url=arguments.url,
        headers=headers,
        timeout=arguments.timeout,
        timeout_limit=max(600.0, arguments.timeout),
        trust_annotations=arguments.trust_annotations,
    )


def _several(arguments: argparse.Namespace) -> "ProxySettings":
    from failwise.connect.proxy.settings import read_settings

    settings = read_settings(arguments.servers)
    if not settings.servers:
        raise ConfigurationError("all its servers are disabled", file=arguments.servers)
    return settings


def _runtime(arguments: argparse.Namespace, settings: "ProxySettings") -> "Runtime":
    """The runtime of a failwise.toml, else one with the settings' own policy and journal."""
    from failwise.runtime.runtime import Runtime

    if arguments.config is not None:
        from failwise.cli.configuration import load

        return load(arguments.config)
    journal = arguments.journal or settings.journal or os.environ.get("FAILWISE_JOURNAL")
    if journal is None:
        home = Path.home() / ".failwise"
        with contextlib.suppress(OSError):
            home.mkdir(mode=0o700, exist_ok=True)
        journal = str(home / "journal.db")
    return Runtime(journal, policy=settings.policy)


def _install(arguments: argparse.Namespace) -> int:
    import difflib

    from failwise.connect.proxy import hostfile

    lang = language(arguments.lang)
    path = hostfile.located(arguments.host)
    before, data, section = hostfile.read(path)
    if arguments.undo:
        changed = hostfile.unwrapped(data, section, arguments.server)
    else:
        changed = hostfile.wrapped(data, section, _program(), arguments.server)
    out = console()
    if changed == data:
        out.print(say(lang, "mcp_nothing", path=path))
        return 0
    after = hostfile.as_text(changed, before)
    for line in difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), lineterm=""
    ):
        out.print(clean(_without_secrets(line)), soft_wrap=True)
    if not arguments.yes and not _agreed(say(lang, "mcp_ask")):
        out.print(say(lang, "mcp_unchanged"))
        return 1
    backup = hostfile.write(path, after, before)
    out.print(say(lang, "mcp_written", path=path, backup=backup))
    return 0


def _program() -> list[str]:
    """How a host, which may have another path, starts this very Failwise."""
    script = Path(sys.argv[0])
    if script.stem == "failwise" and script.is_file():
        return [str(script.resolve())]
    return [sys.executable, "-m", "failwise"]


def _without_secrets(line: str) -> str:
    from failwise.redaction import default

    return default().text(line)


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to ask; say --yes to write the file")
    try:
        return input(question + " ").strip().lower() in ("y", "yes", "是")
    except EOFError:
        return False


def _status(arguments: argparse.Namespace) -> int:
    from failwise.connect.proxy.statusfile import statuses

    lang = language(arguments.lang)
    found = statuses(folder())
    if arguments.json:
        print_json(found)
        return 0
    out = console()
    if not found:
        out.print(say(lang, "mcp_none"))
        return 0
    columns = ("state", "tools", "calls", "failures", "retries", "under_way", "circuit", "error")
    for proxy in found:
        shown = table(
            f"pid {proxy['pid']}",
            *(say(lang, f"mcp_{name}") for name in columns),
            right=(2, 3, 4, 5, 6),
        )
        for server in proxy["servers"]:
            values = [str(server.get(name) or ("" if name == "error" else 0)) for name in columns]
            shown.add_row(clean(server["name"]), *(clean(value) for value in values))
        out.print(shown)
    return 0
