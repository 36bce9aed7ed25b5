"""A scenario: who calls, what is called, and what goes wrong when. Read from TOML, checked.

Times are virtual seconds, rates per second, shares of 1.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from failwise.simulation.document import Table, read_document
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

MOST_AGENTS = 1_000_000
LONGEST = 7 * 86_400.0

EVENTS = ("outage", "brown_out", "slow_recovery", "rate_limit", "errors", "second_fault")
Kind = Literal["outage", "brown_out", "slow_recovery", "rate_limit", "errors", "second_fault"]
How = Literal["refused", "error", "silent"]


@record
class Agents:
    """Who calls. Each agent has one call under way at most, unless `arrivals` is given.

    `think`: mean seconds between the end of a call and the next one, exponential. `arrivals`: instead
    of that, calls a second by all agents together, whatever became of the ones before.
    `starts_within`: seconds in which the first calls begin (None: `think`). `processes`:
    among how many the agents are spread; `guards` is ``process`` (each process has its own) or
    ``shared`` (one state for all, as with Valkey). `asks_again`: how often an agent repeats a step
    that failed, `asks_after` seconds later (a model's round): its own persistence, above any retry.
    `deadline` of a call in seconds (None: none).
    """

    count: int
    think: float | None
    arrivals: float | None
    starts_within: float | None
    processes: int
    guards: Literal["process", "shared"]
    asks_again: int
    asks_after: float
    deadline: float | None


@record
class ToolPlan:
    """A tool of the agents: whom it calls, its weight among them, what it declares.

    `write`: it has an effect. `keyed`: the upstream honours an idempotency key. `timeout` in seconds.
    """

    name: str
    upstream: str
    weight: float
    write: bool
    keyed: bool
    timeout: float


@record
class UpstreamPlan:
    """How an upstream answers when nothing is wrong.

    `median` and `p99`: service time, log-normal, seconds. `capacity`: requests served at once; the
    rest waits in line, `queue` of them at most, one more gets a 503. Who has hung up stays in line:
    an upstream works for callers that have gone. `rate`: requests allowed in each `window` of
    seconds (None: no limit), beyond it a 429 that says when (`tells`). `errors`: share answered with
    a 500, `refusals`: with a sound "no". `applied`: share of failed writes that took effect all
    the same. `price` of one request, in money.
    """

    name: str
    median: float
    p99: float
    capacity: int
    queue: int
    rate: int | None
    window: float
    tells: bool
    errors: float
    refusals: float
    applied: float
    price: float


@record
class Event:
    """Something that is wrong with an upstream from `start` until `end`.

    ``outage``: `share` of requests is ``refused``, answered with an ``error`` (500), or met with silence
    (`how`). ``brown_out``: it works at `speed` of its usual. ``slow_recovery``: it begins at `speed` and
    gets back to its usual in a straight line. ``rate_limit``: `rate` a second at most. ``errors``:
    `share` gets a 500. ``second_fault``: `first` requests get a 500; a request that repeats another
    sets off a second fault, in which every request gets a 500 for `lasts` seconds.
    """

    kind: Kind
    upstream: str
    start: float
    end: float
    share: float
    how: How
    speed: float
    rate: int
    lasts: float
    first: int


@record
class Scenario:
    """A whole scenario. `policy` and `guards` are those of a configuration file, for Failwise.

    `contenders` holds the scenario's own policies to compare with, as they were read.
    """

    name: str
    titles: Mapping[str, str]
    seconds: float
    seed: int
    step: float
    agents: Agents
    tools: tuple[ToolPlan, ...]
    upstreams: tuple[UpstreamPlan, ...]
    events: tuple[Event, ...]
    policy: "str | Mapping[str, Any] | None"
    guards: Mapping[str, Any]
    compare: tuple[str, ...]
    contenders: Mapping[str, Mapping[str, Any]]
    file: str
    text: str

    def title(self, lang: Language) -> str:
        return self.titles.get(lang) or self.titles["en"]

    def upstream(self, name: str) -> UpstreamPlan:
        return next(plan for plan in self.upstreams if plan.name == name)

    @property
    def trouble(self) -> tuple[float, float] | None:
        """From the first event's start to the last one's end; None where nothing goes wrong."""
        if not self.events:
            return None
        return min(e.start for e in self.events), max(e.end for e in self.events)

    def scaled(self, count: int) -> "Scenario":
        """The same load per machine with another number of agents: processes, arrivals, capacities,
        queues and rates change in proportion. Raises `UsageError` outside of 1 to 1,000,000."""
        if not 1 <= count <= MOST_AGENTS:
            raise UsageError(f"{count} agents: from 1 to {MOST_AGENTS:,}")
        agents = self.agents
        share = count / agents.count

        def times(number: int) -> int:
            return max(1, round(number * share))

        arrivals = None if agents.arrivals is None else agents.arrivals * share
        return replace(
            self,
            agents=replace(
                agents,
                count=count,
                arrivals=arrivals,
                processes=min(count, times(agents.processes)),
            ),
            upstreams=tuple(
                replace(
                    plan,
                    capacity=times(plan.capacity),
                    queue=times(plan.queue),
                    rate=None if plan.rate is None else times(plan.rate),
                )
                for plan in self.upstreams
            ),
            events=tuple(replace(event, rate=times(event.rate)) for event in self.events),
        )

    def lasting(self, seconds: float) -> "Scenario":
        """The same scenario, shorter or longer; events stay where they are.

        Raises `UsageError` outside of 1 s to a week.
        """
        if not 1 <= seconds <= LONGEST:
            raise UsageError(f"{seconds:g} seconds: from 1 to {LONGEST:g}")
        return replace(self, seconds=seconds)


def built_in() -> tuple[str, ...]:
    """The names of the scenarios that come with the package."""
    folder = resources.files("failwise.simulation").joinpath("scenarios")
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def load(source: str | Path) -> Scenario:
    """A scenario by its built-in name or its file's path.

    Raises `ConfigurationError` naming file, line and what to write; `UsageError` where there is no
    such scenario.
    """
    name = str(source)
    if name in built_in():
        folder = resources.files("failwise.simulation").joinpath("scenarios")
        return parse(folder.joinpath(f"{name}.toml").read_text("utf-8"), file=f"{name}.toml")
    path = Path(source)
    try:
        if path.stat().st_size > 1_000_000:
            raise UsageError(f"{name} is over 1 MB: no scenario")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(
            f"no scenario {name} ({reason}); give a TOML file or one of {', '.join(built_in())}"
        ) from error
    return parse(text, file=name)


def parse(text: str, *, file: str = "") -> Scenario:
    """A scenario from TOML text. Raises `ConfigurationError` naming the line."""
    top = read_document(text, file=file)
    name = Path(file).stem or "scenario"
    seconds = top.number("seconds", 600.0, 1.0, LONGEST)
    title = top.text("title", name)
    upstreams = tuple(_upstream(table) for table in top.named("upstreams"))
    if not upstreams:
        raise top.error("upstreams", "say at least one, such as [upstreams.shop]")
    names = tuple(plan.name for plan in upstreams)
    tools = tuple(_tool(table, names) for table in top.listed("tools"))
    agents = _agents(top.table("agents"))
    scenario = Scenario(
        name,
        {"en": title, "zh": top.text("title_zh", title)},
        seconds,
        top.whole("seed", 1, 0, 2**63),
        top.number("step", max(1.0, round(seconds / 240)), 0.1, 3600.0),
        agents,
        tools or (ToolPlan("call", names[0], 1.0, False, False, 10.0),),
        upstreams,
        tuple(_event(table, names, seconds) for table in top.listed("events")),
        top.free("policy", None, (str, Mapping)),
        top.free("guards", {}, (Mapping,)),
        top.words("compare", ("failwise",)),
        top.free("contenders", {}, (Mapping,)),
        file,
        text,
    )
    top.finish()
    return scenario


def _agents(table: Table) -> Agents:
    count = table.whole("count", 100, 1, MOST_AGENTS)
    arrivals = table.number("arrivals", None, 0.001, 1e6)
    think = table.number("think", None if arrivals else 10.0, 0.0, 86_400.0)
    if arrivals is not None and think is not None:
        raise table.error("think", "say `think` or `arrivals`, not both")
    processes = table.whole("processes", 1, 1, 100_000)
    if processes > count:
        raise table.error("processes", f"{processes} processes for {count} agents")
    agents = Agents(
        count,
        think,
        arrivals,
        table.number("starts_within", None, 0.0, 86_400.0),
        processes,
        table.choice("guards", "process", ("process", "shared")),
        table.whole("asks_again", 0, 0, 1_000_000),
        table.number("asks_after", 5.0, 0.0, 86_400.0),
        table.number("deadline", None, 0.1, 86_400.0),
    )
    table.finish()
    return agents


def _tool(table: Table, upstreams: tuple[str, ...]) -> ToolPlan:
    tool = ToolPlan(
        table.text("name"),
        table.choice("upstream", upstreams[0], upstreams),
        table.number("weight", 1.0, 0.0, 1e6),
        table.switch("write", False),
        table.switch("keyed", False),
        table.number("timeout", 10.0, 0.001, 3600.0),
    )
    table.finish()
    return tool


def _upstream(table: Table) -> UpstreamPlan:
    median = table.number("median", 0.1, 0.0001, 3600.0)
    p99 = table.number("p99", median * 5, 0.0001, 36_000.0)
    if p99 < median:
        raise table.error("p99", f"{p99:g} is less than the median, {median:g}")
    plan = UpstreamPlan(
        table.name,
        median,
        p99,
        table.whole("capacity", 1_000_000, 1, 10_000_000),
        table.whole("queue", 1_000_000, 0, 10_000_000),
        table.whole("rate", None, 1, 100_000_000),
        table.number("window", 1.0, 0.01, 86_400.0),
        table.switch("tells", True),
        table.number("errors", 0.0, 0.0, 1.0),
        table.number("refusals", 0.0, 0.0, 1.0),
        table.number("applied", 0.5, 0.0, 1.0),
        table.number("price", 0.0, 0.0, 1e6),
    )
    table.finish()
    return plan


def _event(table: Table, upstreams: tuple[str, ...], seconds: float) -> Event:
    kind: Any = table.choice("kind", None, EVENTS)
    start = table.number("from", 0.0, 0.0, LONGEST)
    end = table.number("to", seconds, 0.0, LONGEST)
    if end <= start:
        raise table.error("to", f"{end:g} is not after `from`, {start:g}")
    event = Event(
        kind,
        table.choice("upstream", upstreams[0], upstreams),
        start,
        end,
        table.number("share", 0.01 if kind == "errors" else 1.0, 0.0, 1.0),
        table.choice("how", "refused", ("refused", "error", "silent")),
        table.number("speed", 0.3, 0.001, 1000.0),
        table.whole("rate", 1, 1, 100_000_000),
        table.number("lasts", 5.0, 0.001, 86_400.0),
        table.whole("first", 1, 1, 1_000_000),
    )
    table.finish()
    return event
