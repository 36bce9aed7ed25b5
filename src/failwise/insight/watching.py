"""New kinds of failure, and kinds that come far more often than usual, since the last look.

What was seen is kept in a state file: a JSON object that can be thrown away. A look compares the
clusters of now with it, and gives the next state. Nothing is alarming at the first look.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from failwise.insight.clusters import Cluster
from failwise.insight.spikes import expected
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.records import record

Kind: TypeAlias = Literal["new", "back", "spike"]

PERIOD: Final = 3_600.0
BASELINE: Final = 7 * 24
"""Hours that the usual rate is taken from."""
KEPT: Final = 5_000
"""Clusters that a state remembers, the latest seen."""
_FINGERPRINTS: Final = 20
_VERSION: Final = 1
_STATE_LIMIT: Final = 50_000_000


@record
class Sensitivity:
    """When to speak up.

    `alpha`: the chance of a false alarm about spikes in one look, over all clusters together. A spike
    has at least `least` failures and `factor` times what was expected. A new cluster speaks from
    `new_from` failures; one that was silent for `silence` days is back.
    """

    alpha: float = 0.001
    least: int = 5
    factor: float = 2.0
    new_from: int = 1
    silence: float = 14.0


@record
class Alarm:
    """One thing to know. `expected` of a spike: what the baseline made one expect; `chance` that so
    many come although nothing has changed; `days` of silence before one that is back."""

    kind: Kind
    cluster: Cluster
    count: int
    expected: float | None = None
    chance: float | None = None
    days: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "count": self.count,
            "expected": self.expected,
            "chance": self.chance,
            "days": self.days,
            "cluster": self.cluster.to_dict(),
        }


@record
class Known:
    """What a state remembers of a cluster: when it was last seen, counts by hour (epoch hours), and
    its redacted template."""

    last: float
    hours: dict[int, int]
    template: str = ""


@record
class State:
    """What was seen. `at`: the moment of the last look (epoch seconds), `since` that of the first.
    `places`: how far files have been read (inode, bytes, lines), by name."""

    at: float
    since: float
    known: dict[str, Known]
    places: dict[str, tuple[int, int, int]]


@record
class Look:
    """What one look found. `first`: there was no state to compare with."""

    alarms: tuple[Alarm, ...]
    clusters: int
    failures: int
    state: State
    first: bool


def look(
    clusters: Iterable[Cluster],
    counts: Mapping[str, Mapping[int, int]],
    state: State | None,
    *,
    now: float,
    since: float,
    sensitivity: Sensitivity | None = None,
    history: Mapping[str, Mapping[int, int]] | None = None,
    began: float | None = None,
) -> Look:
    """Compare `clusters` seen since the moment `since` with what was known.

    `counts` are their failures by epoch hour, by id, since then. `history` are counts by hour from
    before, where the source can tell them (a journal can); else the state's own are the baseline. A
    cluster that history or state know of is not new. `began`: the first moment the source knows of.
    Without `state` there is a look only where there is a history: else everything is merely noted.
    """
    how = sensitivity or Sensitivity()
    found = [cluster for cluster in clusters if cluster.count]
    known = dict(state.known) if state is not None else {}
    first = state is None and history is None
    start = began if began is not None else (state.since if state is not None else now)
    alarms: list[Alarm] = []
    speaking = [cluster for cluster in found if not cluster.muted]
    if not first:
        for cluster in speaking:
            before = _known(known, cluster)
            past = (history or {}).get(cluster.id) or (before.hours if before else {})
            seen = before.last if before else (max(past) + 1) * PERIOD if past else None
            if seen is None:
                if cluster.count >= how.new_from:
                    alarms.append(Alarm("new", cluster, cluster.count))
                continue
            silent = (since - seen) / 86_400
            if silent >= how.silence:
                alarms.append(Alarm("back", cluster, cluster.count, days=silent))
                continue
            alarm = _spike(cluster, past, start, since, now, how, len(speaking))
            if alarm is not None:
                alarms.append(alarm)
    for cluster in found:
        _remember(known, cluster, counts.get(cluster.id, {}), now)
    latest = sorted(known.items(), key=lambda item: (-item[1].last, item[0]))[:KEPT]
    after = State(
        now,
        min(start, state.since) if state is not None else min(start, since),
        dict(sorted(latest)),
        dict(state.places) if state is not None else {},
    )
    order = {"new": 0, "back": 1, "spike": 2}
    alarms.sort(key=lambda alarm: (order[alarm.kind], -alarm.count, alarm.cluster.id))
    total = sum(cluster.count for cluster in found)
    return Look(tuple(alarms), len(found), total, after, first)


def _known(known: Mapping[str, Known], cluster: Cluster) -> Known | None:
    """What is known of a cluster by any of its fingerprints: the latest of it."""
    seen = [known[one] for one in (cluster.id, *cluster.fingerprints) if one in known]
    return max(seen, key=lambda one: one.last, default=None)


def _spike(
    cluster: Cluster,
    past: Mapping[int, int],
    start: float,
    since: float,
    now: float,
    how: Sensitivity,
    tested: int,
) -> Alarm | None:
    if cluster.count < how.least:
        return None
    end = int(since // PERIOD)
    begin = max(int(start // PERIOD), end - BASELINE)
    baseline: Sequence[int] = [past.get(hour, 0) for hour in range(begin, end)]
    if not baseline:
        return None
    usual = expected(baseline, PERIOD, max(now - since, 1.0))
    chance = usual.chance_of(cluster.count)
    if chance * tested > how.alpha or cluster.count < how.factor * usual.mean:
        return None
    return Alarm("spike", cluster, cluster.count, usual.mean, chance)


def _remember(
    known: dict[str, Known], cluster: Cluster, counts: Mapping[int, int], now: float
) -> None:
    oldest = int(now // PERIOD) - BASELINE
    before = _known(known, cluster)
    hours = dict(before.hours) if before is not None else {}
    for hour, count in counts.items():
        hours[hour] = hours.get(hour, 0) + count
    hours = {hour: count for hour, count in sorted(hours.items()) if hour >= oldest}
    last = max(cluster.last or now, before.last if before is not None else 0.0)
    for one in (cluster.id, *cluster.fingerprints):
        known.pop(one, None)
    known[cluster.id] = Known(last, hours, cluster.template)
    for one in cluster.fingerprints[:_FINGERPRINTS]:
        if one != cluster.id:
            known[one] = Known(last, {})


def load_state(path: str) -> State | None:
    """The state in a file; None where there is none yet. Raises `ConfigurationError` for what is no
    state: it is never guessed at, and never overwritten."""
    file = Path(path)
    try:
        if file.stat().st_size > _STATE_LIMIT:
            raise ConfigurationError(f"larger than {_STATE_LIMIT} bytes: not a state", file=path)
        data = json.loads(file.read_text("utf-8"))
        if data["failwise"] != "watch" or data["version"] != _VERSION:
            raise ConfigurationError(
                f"this is not a state of version {_VERSION}; remove it to begin anew", file=path
            )
        return State(
            float(data["at"]),
            float(data["since"]),
            {
                str(name): Known(
                    float(one["last"]),
                    {int(hour): int(count) for hour, count in one["hours"]},
                    str(one.get("template", "")),
                )
                for name, one in data["known"].items()
            },
            {
                str(name): (int(one[0]), int(one[1]), int(one[2]))
                for name, one in data["places"].items()
            },
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise ConfigurationError(
            f"this is not a state of failwise watch ({error}); remove it to begin anew", file=path
        ) from error


def save_state(path: str, state: State) -> None:
    """Write a state whole or not at all. Raises `ConfigurationError` where it cannot be written."""
    data = {
        "failwise": "watch",
        "version": _VERSION,
        "at": state.at,
        "since": state.since,
        "places": {name: list(place) for name, place in state.places.items()},
        "known": {
            name: {
                "last": one.last,
                "hours": sorted(one.hours.items()),
                **({"template": one.template} if one.template else {}),
            }
            for name, one in state.known.items()
        },
    }
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, separators=(",", ":"))
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigurationError(f"cannot be written ({error.strerror})", file=path) from error
