"""Agents of real frameworks under the same faults: as they are, at their best documented setting, with Failwise.

``python -m benchmarks.frameworks`` from the root of the project (``make bench-frameworks``), where the frameworks are
installed. The scenarios are those of the tests; the same scripted model asks for the same calls, and what happened
is read from the upstream's ledger and from what the model was sent. ``--page`` writes the figures into
``docs/frameworks.md``.
"""

import argparse
import contextlib
import io
import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.frameworks.conftest import installed
from tests.frameworks.driving import runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, SHOES, Scenario
from tests.frameworks.shop import SECRET, Shop

import failwise
from benchmarks.framework_agents import FRAMEWORKS, Agents
from benchmarks.framework_agents_more import MORE
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says

SETTINGS = ("default", "best setting", "failwise")
PERMANENT = (
    "permanent_once",
    "auth_stops_the_chain",
    "business_in_a_200",
    "tls_expired",
    "slip_in_the_tool",
)
STORM = 12
PAGE = Path(__file__).parents[1] / "docs" / "frameworks.md"
BEGIN, END = "<!-- figures of benchmarks/frameworks.py -->\n", "<!-- end of figures -->\n"


class Row(NamedTuple):
    """What one setting of one framework made of all scenarios."""

    right: int
    scenarios: int
    crashed: int
    duplicates: int
    leaks: int
    permanent: int
    storm: int
    wrong: tuple[str, ...]


def sent(shop: Shop) -> int:
    """Requests and handshakes that reached the upstream, and runs of tools that send none."""
    reached = len(shop.server.requests) + shop.server.connections("expired")
    return reached + shop.ran.get("buggy", 0)


def play(agents: Agents, setting: str, scenario: Scenario) -> tuple[bool, dict[str, int]]:
    """One scenario: whether it ended right, and what it cost."""
    crashed = False
    turns: list[Any] = [Says(calls=[call]) for call in scenario.calls]
    with (
        FaultServer() as server,
        ProviderServer([*turns, agents.last]) as provider,
        runtime() as rt,
    ):
        scenario.routes(server)
        shop = Shop(server, agents.transport if setting == "best setting" else lambda own: own)
        said = ""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                said = agents.play(setting, rt, shop.functions(), provider)
        except Exception:
            crashed = True
        whole = json.dumps(provider.requests, ensure_ascii=False)
        read = tool_texts(provider.requests[-1]) if provider.requests else []
        leaked = SECRET in whole
        reached = all(
            "shoes 1" in text for text, told in zip(read, scenario.told, strict=False) if not told
        )
        right = (
            not crashed
            and said == "done"
            and len(read) == len(scenario.told)
            and reached
            and not leaked
            and scenario.holds(shop)
        )
        counts = {
            "crashed": crashed,
            "duplicates": max(0, server.ledger.count("order") - 1),
            "leaks": leaked,
            "sent": sent(shop),
        }
    return right, counts


def storm(agents: Agents, setting: str) -> int:
    """Requests that an upstream gets which is down, for `STORM` calls."""
    with FaultServer() as server, runtime() as rt:
        server.route("GET", "/search", Fault.status(503))
        shop = Shop(server, agents.transport if setting == "best setting" else lambda own: own)
        for number in range(STORM):
            call = Says(calls=[("search", {**SHOES, "query": f"shoes {number}"})])
            with (
                ProviderServer([call, agents.last]) as provider,
                contextlib.suppress(Exception),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                agents.play(setting, rt, shop.functions(), provider)
        return server.count("/search")


def measured(agents: Agents, setting: str) -> Row:
    """All scenarios that the framework lets one reach."""
    scenarios = [s for s in SCENARIOS if not s.needs or s.needs in agents.reaches]
    wrong, crashed, duplicates, leaks, permanent = [], 0, 0, 0, 0
    for scenario in scenarios:
        right, counts = play(agents, setting, scenario)
        if not right:
            wrong.append(scenario.name)
        crashed += counts["crashed"]
        duplicates += counts["duplicates"]
        leaks += counts["leaks"]
        if scenario.name in PERMANENT:
            permanent += counts["sent"]
    return Row(
        len(scenarios) - len(wrong),
        len(scenarios),
        crashed,
        duplicates,
        leaks,
        permanent,
        storm(agents, setting),
        tuple(wrong),
    )


def overhead(agents: Agents, rounds: int = 60, calls: int = 20) -> tuple[float, float]:
    """CPU microseconds of one good call in the framework's own tool layer, and what Failwise adds: what `calls`
    calls of one turn cost above one, on the loop's thread (the journal's writer works beside it). The first
    quartile of `rounds`: other programs run on the same machine."""

    def tool(query: str, limit: int = 10) -> dict[str, Any]:
        """Search the catalogue."""
        return {"items": [f"{query} {limit}"]}

    tool.__name__ = "search"
    costs: dict[tuple[bool, int], list[float]] = {}
    with failwise.Runtime(":memory:", declarations={"search": {"read_only": True}}) as rt:
        layers = {False: agents.layer(tool, None), True: agents.layer(tool, rt)}
        for _ in range(rounds):
            for ours, perform in layers.items():
                for count in (calls, 1):
                    began = time.thread_time()
                    perform(count)
                    spent = costs.setdefault((ours, count), [])
                    spent.append(time.thread_time() - began)
    quartile = {key: sorted(spent)[rounds // 4] for key, spent in costs.items()}
    own, with_ours = (
        (quartile[ours, calls] - quartile[ours, 1]) / (calls - 1) * 1e6 for ours in (False, True)
    )
    return own, with_ours - own


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 where a yardstick is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="frameworks (all that are installed)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--page", action="store_true", help="write the figures into docs/frameworks.md"
    )
    given = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    figures: dict[str, dict[str, Any]] = {}
    held = True
    known = {**FRAMEWORKS, **MORE}
    for name in given.names or filter(installed, known):
        agents = known[name]()
        rows = {setting: measured(agents, setting) for setting in SETTINGS}
        own, more = overhead(agents)
        figures[agents.title] = {"rows": rows, "own_us": own, "more_us": more}
        best = rows["failwise"]
        held = held and not best.wrong and best.duplicates == 0 and best.leaks == 0
        if not given.json:
            print(
                f"\n{agents.title}: {own:.0f} µs a call of its tool layer, Failwise adds {more:.0f} µs"
            )
            for setting, row in rows.items():
                wrong = f"  wrong: {', '.join(row.wrong)}" if row.wrong else ""
                print(f"  {setting:<13}" + _cells(row, "  ") + wrong)
    if given.json:
        print(json.dumps(figures, indent=1, default=lambda row: row._asdict()))
    if given.page:
        head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        before, _, after = rest.partition(END)
        PAGE.write_text(head + BEGIN + joined(before, part(figures)) + END + after, "utf-8")
    return 0 if held else 1


def _cells(row: Row, between: str) -> str:
    cells = (
        f"right {row.right}/{row.scenarios}", f"runs ended {row.crashed}", f"duplicates {row.duplicates}",
        f"leaks {row.leaks}", f"requests on {len(PERMANENT)} permanent faults {row.permanent}",
        f"requests of {STORM} calls in an outage {row.storm}",
    )  # fmt: skip
    return between.join(cells)


def part(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures as the page shows them."""
    lines = [
        f"| framework | setting | right outcomes | runs ended by an exception | duplicate orders | leaked secrets | requests on {len(PERMANENT)} permanent faults | requests of {STORM} calls in an outage |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for title, found in figures.items():
        for setting, row in found["rows"].items():
            lines.append(
                f"| {title} | {setting} | {row.right} of {row.scenarios} | {row.crashed} | {row.duplicates} | "
                f"{row.leaks} | {row.permanent} | {row.storm} |"
            )
    lines += [
        "",
        "| framework | its own tool layer, CPU a call | Failwise adds |",
        "| --- | --- | --- |",
    ]
    for title, found in figures.items():
        own, more = found["own_us"], found["more_us"]
        lines.append(f"| {title} | {own:.0f} µs | {more:.0f} µs ({more / own:.0%}) |")
    return "\n".join(lines) + "\n"


def joined(before: str, now: str) -> str:
    """The part with the rows of frameworks that were measured in another environment: those stay."""
    fresh = [table.splitlines() for table in now.strip().split("\n\n")]
    stale = [table.splitlines() for table in before.strip().split("\n\n")]
    if len(stale) != len(fresh):
        return now
    tables = []
    for old, new in zip(stale, fresh, strict=True):
        measured = {_title(row) for row in new[2:]}
        kept = [row for row in old[2:] if _title(row) not in measured]
        tables.append("\n".join([*new[:2], *kept, *new[2:]]))
    return "\n\n".join(tables) + "\n"


def _title(row: str) -> str:
    return row.split("|")[1].strip()


if __name__ == "__main__":
    sys.exit(main())
