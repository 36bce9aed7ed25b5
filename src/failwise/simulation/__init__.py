"""The same machine on a virtual clock: a world answers, and hours pass in a second.

`Simulator` drives any calls in any world; `load` and `compare` play whole scenarios: fleets of agents,
upstreams that fail, and other people's strategies beside ours.
"""

from typing import TYPE_CHECKING, Any

from failwise.simulation.simulator import Simulator, World, simulate

if TYPE_CHECKING:
    from failwise.simulation.fleet import compare
    from failwise.simulation.scenario import Scenario, built_in, load, parse
    from failwise.simulation.tally import Outcome

_HOMES = {
    "Outcome": "tally",
    "Scenario": "scenario",
    "built_in": "scenario",
    "compare": "fleet",
    "load": "scenario",
    "parse": "scenario",
}

__all__ = [
    "Outcome",
    "Scenario",
    "Simulator",
    "World",
    "built_in",
    "compare",
    "load",
    "parse",
    "simulate",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
