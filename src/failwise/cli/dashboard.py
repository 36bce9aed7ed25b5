"""``failwise dashboard``: pages on a journal, in the browser."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from failwise.cli import configuration
from failwise.cli.journals import existing
from failwise.cli.terminal import add_common, language, print_json, say
from failwise.vocabulary.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from failwise.cli.configuration import Configuration
    from failwise.runtime.runtime import Runtime

PORT: Final = 8770
TOKEN: Final = "FAILWISE_DASHBOARD_TOKEN"  # noqa: S105 - the variable's name
RAW_TOKEN: Final = "FAILWISE_DASHBOARD_RAW_TOKEN"  # noqa: S105
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
_EPILOG: Final = f"""\
examples:
  failwise dashboard                                     the journal of this directory
  failwise dashboard postgresql://host/agents --open
  failwise dashboard --read-only --config failwise.toml
  {TOKEN}=... failwise dashboard --host 0.0.0.0 --allow-host ops.example:{PORT}

Without JOURNAL: what failwise.toml says, else FAILWISE_JOURNAL, else .failwise/journal.db. It listens on
this machine only, unless --host says otherwise: then {TOKEN} must hold a token. Raw answers
are shown to whoever tells the other token, {RAW_TOKEN}. Ctrl-C ends it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("journal", nargs="?", metavar="JOURNAL", help="the journal's file or URL")
    parser.add_argument(
        "--claims", metavar="PLACE", help="where claims are kept, if not in the journal's place"
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", type=int, default=PORT, help=f"({PORT}; 0 for a free one)")
    parser.add_argument(
        "--config", metavar="FILE", help="its policy is shown, its journal read (failwise.toml)"
    )
    parser.add_argument("--read-only", action="store_true", help="nothing can be changed")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME[:PORT]", help="a Host to answer"
    )
    parser.add_argument(
        "--prefix", default="", metavar="/PATH", help="a reverse proxy serves it under this path"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    add_common(parser, json_help="print the address as JSON")
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Serve the pages until interrupted."""
    import asyncio

    if arguments.prefix and not arguments.prefix.startswith("/"):
        raise UsageError(f"--prefix {arguments.prefix}: write a path, such as /failwise")
    settings = _settings(arguments.config)
    pages = _pages(
        arguments.host,
        arguments.allow_host,
        settings,
        **_journal(arguments.journal, arguments.claims, settings),
        read_only=arguments.read_only,
    )
    lang = language(arguments.lang)

    def began(port: int) -> None:
        host = "127.0.0.1" if arguments.host in _ANY else arguments.host
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{port}{arguments.prefix.rstrip('/')}/"
        if arguments.json:
            print_json({"address": address})
        else:
            told = say(lang, "dashboard_at", address=address)
            print(told, file=sys.stderr, flush=True)  # noqa: T201 - a person, or a test, reads it
        if arguments.open:
            import webbrowser

            webbrowser.open(address)

    asyncio.run(_serve(pages, arguments, began))
    return 0


def beside(runtime: "Runtime", host: str, allowed: Sequence[str], config: str | None) -> Any:
    """The dashboard of a runtime in this process, for a server that listens at `host`."""
    return _pages(host, allowed, _settings(config), runtime=runtime)


def _pages(
    host: str, allowed: Sequence[str], settings: "Configuration | None", **options: Any
) -> Any:
    needs_packages()
    from failwise.dashboard import app

    token = os.environ.get(TOKEN)
    if host not in _LOOPBACK and not token:
        raise UsageError(f"host {host}: beyond this machine a token is needed; set {TOKEN}")
    if allowed and not token:
        raise UsageError(f"--allow-host: names other than this machine's need a token; set {TOKEN}")
    hosts = [*allowed, *([] if host in (*_LOOPBACK, *_ANY) else [host])]
    return app(
        token=token,
        raw_token=os.environ.get(RAW_TOKEN),
        hosts=hosts,
        policy=policy_of(settings),
        proxies=_proxies,
        **options,
    )


async def _serve(pages: Any, arguments: argparse.Namespace, began: Any) -> None:
    import asyncio

    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(
            pages,
            host=arguments.host,
            port=arguments.port,
            root_path=arguments.prefix.rstrip("/"),
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=1,  # live updates never end by themselves
        )
    )
    serving = asyncio.ensure_future(server.serve())
    while not server.started and not serving.done():  # uvicorn tells nobody else
        await asyncio.wait({serving}, timeout=0.02)
    if server.started:
        began(int(server.servers[0].sockets[0].getsockname()[1]))
    await serving


def needs_packages() -> None:
    """Raises `ConfigurationError` where the packages of the pages are missing."""
    import importlib.util

    for name in ("starlette", "jinja2", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise ConfigurationError(
                f"the dashboard needs the {name} package: pip install 'failwise[dashboard]'"
            )


def _settings(file: str | None) -> "Configuration | None":
    if file is None and os.path.isfile(configuration.NAME):
        file = configuration.NAME
    return configuration.read(file) if file is not None else None


def _journal(
    chosen: str | None, claims: str | None, settings: "Configuration | None"
) -> dict[str, str | None]:
    """The places of the journal and of its claims: as given, else as the configuration says. What it
    says of claims is about its own journal."""
    if chosen is None and settings is not None:
        chosen, beside = settings.journal_places()
        claims = claims or beside
    return {"journal": existing(chosen), "claims": claims}


def policy_of(settings: "Configuration | None") -> Any:
    """What gives the policy in force with the origin of each value, as the page shows it."""

    def told() -> dict[str, Any]:
        from failwise.cli.origins import Policy

        policy = Policy(None, settings)
        rows = {key: _plain(policy.row(key)) for key in policy.keys}
        return {"policy": policy.name, "settings": _plain(policy.settings()), "rows": rows}

    return told if settings is not None else None


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"value": one.value, "origin": one.origin} for name, one in values.items()}


def _proxies() -> list[dict[str, Any]]:
    from failwise.connect.proxy.statusfile import statuses

    return statuses(Path.home() / ".failwise" / "mcp")
