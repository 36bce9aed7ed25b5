"""``failwise guards``: what the fleet's guards know of each upstream now."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from failwise.cli.main import FOUND, OK
from failwise.cli.terminal import add_common, console, language, print_json, say, table
from failwise.vocabulary.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", help="the Redis or Valkey server (else --config, FAILWISE_GUARDS, failwise.toml)"
    )
    parser.add_argument("--namespace", help="with which its keys begin (else failwise)")
    parser.add_argument(
        "--config", metavar="FILE", help="default: failwise.toml, where there is one"
    )
    add_common(parser, json_help="print one JSON object an upstream and credential")


def main(arguments: argparse.Namespace) -> int:
    """Print the rows; 1 where an upstream is held or its circuit open."""
    rows = _rows(arguments)
    troubled = any(row["circuit"] != "closed" or row["cool_down"] > 0 for row in rows)
    if arguments.json:
        for row in rows:
            print_json(row)
        return FOUND if troubled else OK
    _show(rows, arguments)
    return FOUND if troubled else OK


def _rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    from failwise.guards.shared import ValkeyGuards
    from failwise.guards.wire import Gone

    guards = _guards(arguments)
    if not isinstance(guards, ValkeyGuards):
        raise UsageError(
            "these guards live in the memory of each process: name a server with --url, "
            "FAILWISE_GUARDS, or url = in [guards] of failwise.toml"
        )
    try:
        return guards.look()
    except Gone as gone:
        raise UsageError(f"guards at {guards.place} do not answer: {gone}") from gone


def _guards(arguments: argparse.Namespace) -> Any:
    from failwise.cli.configuration import NAME, read
    from failwise.guards import guards_at
    from failwise.runtime.clock import SystemClock

    place = arguments.url
    if place is None and arguments.config is None:
        place = os.environ.get("FAILWISE_GUARDS")
    if place is None and (arguments.config is not None or Path(NAME).is_file()):
        return read(arguments.config or NAME).guards()
    return guards_at(place, SystemClock(), namespace=arguments.namespace or "failwise")


def _show(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    from rich.text import Text

    lang = language(arguments.lang)
    out = console()
    if not rows:
        out.print(say(lang, "guards_none"))
        return
    names = (
        "upstream",
        "credential",
        "circuit",
        "failures",
        "quota",
        "cool_down",
        "under_way",
        "waiting",
    )
    shown = table(*(say(lang, f"guards_{name}") for name in names))
    for row in rows:
        shown.add_row(
            Text(row["upstream"], style="bold"),
            row["credential"] or "",
            Text(_circuit(row, lang), style="" if row["circuit"] == "closed" else "bold red"),
            f"{row['failures_in_row']} · {row['failure_share']:.0%}",
            f"{row['quota']}/{row['quota_capacity']}",
            f"{row['cool_down']:.0f} s" if row["cool_down"] else "",
            f"{row['in_flight']}/{row['limit'] or '∞'} · {row['retrying']}",
            str(row["waiting"] or ""),
        )
    out.print(shown)


def _circuit(row: Mapping[str, Any], lang: Any) -> str:
    said = say(lang, f"guards_{row['circuit']}")
    return f"{said}, {row['opens_in']:.0f} s" if row["opens_in"] else said
