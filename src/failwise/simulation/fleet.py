"""A fleet of agents on a virtual clock: the real machine, policy and guards against simulated upstreams."""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, count
from typing import Any

from failwise.arguments.reader import Reading
from failwise.effects.identity import arguments_fingerprint, effect_key
from failwise.guards import GuardSettings, MemoryGuards, default_settings, read_settings
from failwise.policy import TablePolicy
from failwise.runtime.call import Logic, run_call
from failwise.runtime.state import CallState
from failwise.simulation.answers import Judge
from failwise.simulation.contenders import Contender, Failwise, contender
from failwise.simulation.scenario import Scenario
from failwise.simulation.simulator import Simulator, VirtualClock
from failwise.simulation.strategy import Bucket, run_retry
from failwise.simulation.tally import Outcome, Tally
from failwise.simulation.upstream import NO, Upstream, share_of
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.ports import Guards
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import (
    Admit,
    Answer,
    Ask,
    Call,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Release,
    Reply,
)

Progress = Callable[[str, float], None]
"""Told of a contender's name and the share of its virtual time that has passed, now and then."""


def compare(
    scenario: Scenario, names: Sequence[str] = (), *, progress: Progress | None = None
) -> list[Outcome]:
    """Play a scenario once for each contender (default: those it names), with the same seed.

    Raises `UsageError` for a name that is none, `ConfigurationError` for a wrong policy or guards.
    """
    chosen = [contender(name, scenario) for name in names or scenario.compare]
    return [Fleet(scenario, each).play(progress) for each in chosen]


class _Errand(Call):
    """One call of an agent's: a step of its task, perhaps asked for again."""

    agent = 0
    task = 0
    round = 0
    requests = 0
    answered_no = False


class _FleetGuards:
    """The guards of each process, by the run that asks; or one for the whole fleet."""

    def __init__(self, clock: VirtualClock, settings: GuardSettings, processes: int) -> None:
        self._each = [MemoryGuards(clock, settings) for _ in range(processes)]
        self._of: dict[str, MemoryGuards] = {}

    def join(self, run_id: str, process: int) -> None:
        self._of[run_id] = self._each[process % len(self._each)]

    def admit(self, step: Admit) -> Any:
        return self._of[step.run_id].admit(step)

    def release(self, step: Release) -> None:
        self._of[step.run_id].release(step)


class Fleet:
    """One contender's fleet in one scenario. `play` may be called once."""

    def __init__(self, scenario: Scenario, contender: Contender) -> None:
        self.scenario, self.contender = scenario, contender
        self.tally = Tally(scenario)
        self._chance = random.Random(scenario.seed)  # noqa: S311
        self._upstreams = {
            plan.name: Upstream(plan, scenario.events, scenario.seed + number)
            for number, plan in enumerate(scenario.upstreams, 1)
        }
        self._tools = [
            ToolSpec(
                plan.name,
                read_only=not plan.write,
                timeout=plan.timeout,
                upstream=plan.upstream,
                idempotency_key="Idempotency-Key" if plan.keyed else None,
            )
            for plan in scenario.tools
        ]
        self._weights = list(accumulate(plan.weight for plan in scenario.tools))
        self._tasks = count(1)
        agents = scenario.agents
        self._runs = [f"agent-{number}" for number in range(agents.count)]
        self._machine: Callable[[_Errand], Machine]
        guards: Callable[[VirtualClock], Guards] | None = None
        if isinstance(contender, Failwise):
            logic = self._logic(contender)
            self._machine = lambda call: run_call(call, logic)
            if contender.guarded:
                guards = self._guards(contender)
        else:
            buckets = [
                Bucket(contender.quota) if contender.quota is not None else None
                for _ in range(agents.processes)
            ]
            strategy = contender
            chance = random.Random(scenario.seed)  # noqa: S311
            self._machine = lambda call: run_retry(
                call, strategy, buckets[call.agent % agents.processes], chance
            )
        self._simulator = Simulator(self, guards=guards, finished=self._finished)

    def play(self, progress: Progress | None = None) -> Outcome:
        """Let the scenario's time pass, and every call under way end."""
        scenario, simulator = self.scenario, self._simulator
        if progress is not None:
            told, name = progress, self.contender.name
            for hundredth in range(101):
                simulator.at(
                    scenario.seconds * hundredth / 100,
                    lambda share=hundredth / 100: told(name, share),  # type: ignore[misc]
                )
        if scenario.agents.arrivals is not None:
            self._arrive()
        else:
            within = scenario.agents.starts_within
            within = (scenario.agents.think or 0.0) if within is None else within
            for agent in range(scenario.agents.count):
                self._wake(agent, self._chance.random() * within)
        simulator.run()
        effects: dict[int, int] = {}
        for upstream in self._upstreams.values():
            effects.update(upstream.effects)
        return self.tally.outcome(
            self.contender.name,
            self.contender.titles,
            effects,
            sum(upstream.early for upstream in self._upstreams.values()),
            sum(u.requests * u.plan.price for u in self._upstreams.values()),
        )

    # What Failwise is made of here

    def _logic(self, contender: Failwise) -> Logic:
        judge = Judge()

        def classify(answer: Answer, call: Call, state: CallState) -> Failure | None:
            return judge.failure(answer, state.read_only)

        return Logic(
            lambda call: Reading(call.raw),  # type: ignore[arg-type]
            classify,
            lambda call, arguments, failure: None,
            arguments_fingerprint,
            self._policy(contender),
        )

    def _policy(self, contender: Failwise) -> TablePolicy:
        given = self.scenario.policy
        source: Any = given
        if contender.policy:
            if isinstance(given, str):
                given = {"preset": given}
            source = _laid_over(given or {}, contender.policy)
        try:
            return TablePolicy(source, jitter=contender.jitter)
        except ConfigurationError as error:
            if error.file and error.file != "policy":
                raise
            raise ConfigurationError(f"[policy] {error.reason}", file=self.scenario.file) from error

    def _guards(self, contender: Failwise) -> Callable[[VirtualClock], Guards]:
        scenario = self.scenario
        settings = read_settings(
            scenario.guards, file=scenario.file, text=scenario.text, base=default_settings()
        )
        settings = read_settings(contender.guards, file=scenario.file, base=settings)
        agents = scenario.agents
        shared = contender.guards_shared or agents.guards == "shared"

        def make(clock: VirtualClock) -> Guards:
            guards = _FleetGuards(clock, settings, 1 if shared else agents.processes)
            for number, run_id in enumerate(self._runs):
                guards.join(run_id, number)
            return guards

        return make

    # Agents

    def _wake(self, agent: int, at: float) -> None:
        if at < self.scenario.seconds:
            self._simulator.at(at, lambda: self._begin(agent, next(self._tasks), 0))

    def _arrive(self) -> None:
        """Calls come by chance, whatever became of those before."""
        agents = self.scenario.agents
        assert agents.arrivals is not None
        now = self._simulator.clock.now
        after = self._chance.expovariate(agents.arrivals)
        if now + after < self.scenario.seconds:
            agent = self._chance.randrange(agents.count)

            def arrive() -> None:
                self._begin(agent, next(self._tasks), 0)
                self._arrive()

            self._simulator.at(now + after, arrive)

    def _begin(self, agent: int, task: int, rounds: int) -> None:
        tool = self._tools[self._choose(task)]
        run_id, now = self._runs[agent], self._simulator.clock.now
        call_id = f"{task}-{rounds}"
        key = call_id if tool.read_only else effect_key(run_id, call_id)
        call = _Errand(tool, {"task": task}, call_id, run_id, key, now, 1_800_000_000.0)
        call.agent, call.task, call.round = agent, task, rounds
        if self.scenario.agents.deadline is not None:
            call.deadline = now + self.scenario.agents.deadline
        self._simulator.add(self._machine(call), call, now)

    def _choose(self, task: int) -> int:
        """The tool of a task: by weight, and the same whenever the task is asked for again."""
        if len(self._weights) == 1:
            return 0
        share = share_of(task) * self._weights[-1]
        return next(place for place, top in enumerate(self._weights) if share < top)

    def _finished(self, call: Call, result: ToolResult[Any]) -> None:
        assert isinstance(call, _Errand)
        agents, now = self.scenario.agents, self._simulator.clock.now
        self.tally.ended(
            result,
            result.success or call.answered_no,
            call.began,
            now,
            call.requests,
            None if call.tool.read_only else call.task,
        )
        agent, task, rounds = call.agent, call.task, call.round + 1
        if not (result.success or call.answered_no) and rounds <= agents.asks_again:
            at = now + agents.asks_after
            if at < self.scenario.seconds:
                self._simulator.at(at, lambda: self._begin(agent, task, rounds))
        elif agents.think is not None:
            think = self._chance.expovariate(1.0 / agents.think) if agents.think else 0.0
            self._wake(agent, now + think)

    # The world

    def invoke(self, call: Call, step: Invoke, now: float) -> tuple[Answer, float]:
        assert isinstance(call, _Errand)
        repeats = call.requests > 0 or call.round > 0
        call.requests += 1
        self.tally.sent(now)
        tool = call.tool
        write = tool.read_only is not True
        key = step.key if tool.idempotency_key is not None else None
        upstream = self._upstreams[tool.upstream or ""]
        answer, seconds = upstream.receive(call.task, repeats, write, key, now)
        call.answered_no = answer is NO
        return answer, seconds

    def ask(self, call: Call, step: Ask, now: float) -> Reply:
        return Reply(None)

    def refresh(self, call: Call, step: Refresh, now: float) -> bool:
        return False

    def delegate(self, call: Call, step: Delegate, now: float) -> tuple[Machine, Call]:
        raise UsageError("simulated tools have no fallbacks")


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Tables over tables: what stands above wins, key by key."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        merged[key] = _laid_over(old, value) if both else value  # type: ignore[arg-type]
    return merged
