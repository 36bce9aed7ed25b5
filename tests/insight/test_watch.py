"""New kinds, kinds that are back, spikes: what is an alarm, what is chance, what is remembered."""

import json
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.insight.spikes import Expected, expected
from failwise.insight.watched import look_at_journal, look_at_log
from failwise.insight.watching import Look, Sensitivity, State, load_state, save_state
from failwise.journal.journal import Journal
from failwise.redaction import default
from failwise.vocabulary.errors import ConfigurationError
from tests.cli.conftest import Failwise
from tests.insight import failing
from tests.insight.failing import HOUR, NOW


@given(st.floats(0.01, 500), st.floats(0.1, 1_000), st.integers(0, 300))
def test_the_chance_is_that_of_the_distribution(mean: float, shape: float, count: int) -> None:
    """The tail of the negative binomial, against the sum of its terms."""
    share = mean / (mean + shape)
    below = sum(
        math.exp(
            math.lgamma(n + shape) - math.lgamma(shape) - math.lgamma(n + 1)
            + shape * math.log1p(-share) + n * math.log(share)
        )
        for n in range(count)
    )  # fmt: skip
    assert Expected(mean, shape).chance_of(count) == pytest.approx(1 - below, abs=1e-6)


def test_large_counts_and_none() -> None:
    """Millions are no trouble; without a baseline nothing is unlikely."""
    assert expected([1_000_000] * 24, HOUR, HOUR).chance_of(1_010_000) < 1e-15
    assert expected([1_000_000] * 24, HOUR, HOUR).chance_of(1_000_000) > 0.3
    assert expected([], HOUR, HOUR).chance_of(10) > 1e-6


def poisson(mean: float, chance: random.Random) -> int:
    limit, count, product = math.exp(-mean), 0, chance.random()
    while product > limit:
        product *= chance.random()
        count += 1
    return count


@pytest.mark.parametrize("mean", [0.05, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("bursts", [False, True])
def test_false_alarms_are_as_rare_as_promised(mean: float, bursts: bool) -> None:
    """Where nothing changes, a chance below 1 % comes about once in a hundred looks, not more."""
    chance = random.Random(7)

    def hour() -> int:
        rate = mean * chance.gammavariate(0.7, 1 / 0.7) if bursts else mean
        return poisson(rate, chance)

    looks, false = 1_500, 0
    for _ in range(looks):
        usual = expected([hour() for _ in range(72)], HOUR, HOUR)
        false += usual.chance_of(hour()) < 0.01
    assert false / looks < (0.03 if bursts else 0.017)


def test_a_real_spike_is_seen() -> None:
    """Ten times the usual is no chance, after a day of baseline."""
    chance = random.Random(3)
    usual = expected([poisson(3, chance) for _ in range(24)], HOUR, HOUR)
    assert usual.chance_of(30) < 1e-6


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = failing.journal()
    yield made
    made.close()


def put_week(journal: Journal, per_hour: int = 2) -> None:
    """A week in which one kind fails as often every hour."""
    for hour in range(7 * 24):
        for n in range(per_hour):
            at = NOW - (hour + 1) * HOUR - n * 60 - 1
            failure = failing.page(hour * 10 + n)
            journal.put(failing.failed(failure, tool="search", at=at, call_id=f"{hour}.{n}"))


def put_now(journal: Journal, count: int) -> None:
    for n in range(count):
        journal.put(
            failing.failed(failing.page(n), tool="search", at=NOW - 10 - n, call_id=f"now{n}")
        )


@pytest.mark.parametrize(("count", "kinds"), [(2, []), (4, []), (40, ["spike"])])
def test_the_last_hour_against_the_week(journal: Journal, count: int, kinds: list[str]) -> None:
    """Without a state: as many as usual, or twice that, is no alarm; twenty times is."""
    put_week(journal)
    put_now(journal, count)
    found = look_at_journal(journal, None, now=NOW, since=NOW - HOUR)
    assert [alarm.kind for alarm in found.alarms] == kinds
    assert found.failures == count
    if kinds:
        (alarm,) = found.alarms
        assert alarm.expected == pytest.approx(2.0, abs=0.3)
        assert alarm.chance is not None
        assert alarm.chance < 1e-9


def test_a_new_kind_and_one_that_is_muted(journal: Journal) -> None:
    """What never failed before is an alarm at once; a muted kind is not."""
    from failwise.insight.recorded import mute_cluster

    put_week(journal)
    put_now(journal, 40)
    failure = failing.raised(ConnectionRefusedError(111, "Connection refused"), tool="pay")
    journal.put(failing.failed(failure, tool="pay", at=NOW - 5, call_id="new"))
    found = look_at_journal(journal, None, now=NOW, since=NOW - HOUR)
    assert [(alarm.kind, alarm.cluster.code) for alarm in found.alarms] == [
        ("new", "network.connect_refused"),
        ("spike", "network.bad_gateway"),
    ]
    mute_cluster(journal, found.alarms[1].cluster.id)
    found = look_at_journal(journal, None, now=NOW, since=NOW - HOUR)
    assert [alarm.kind for alarm in found.alarms] == ["new"]


def test_a_known_kind_of_another_tool_is_not_new(journal: Journal) -> None:
    """A new fingerprint in a known cluster is no new kind."""
    put_week(journal)
    failure = failing.page(5, tool="other")
    journal.put(failing.failed(failure, tool="other", at=NOW - 5, call_id="other"))
    assert not look_at_journal(journal, None, now=NOW, since=NOW - HOUR).alarms


def test_a_state_says_what_is_known_and_since_when(journal: Journal, tmp_path: Path) -> None:
    """With a state the next look begins where the last ended, and what is silent for long is back."""
    put_week(journal)
    file = str(tmp_path / "state.json")
    assert load_state(file) is None
    first = look_at_journal(journal, None, now=NOW - HOUR)
    save_state(file, first.state)
    state = load_state(file)
    assert state == first.state
    put_now(journal, 1)
    found = look_at_journal(journal, state, now=NOW)
    assert (found.failures, found.alarms) == (1, ())
    assert state is not None
    old = {name: type(one)(NOW - 40 * 86_400, {}) for name, one in state.known.items()}
    quiet = failing.journal()
    put_now(quiet, 1)
    found = look_at_journal(quiet, State(NOW - HOUR, 0.0, old, {}), now=NOW)
    assert [alarm.kind for alarm in found.alarms] == ["back"]
    quiet.close()


def look(file: Path, state: State | None, now: float) -> Look:
    return look_at_log(str(file), state, now=now, redactor=default(), year=2026)


def test_a_log_is_read_from_the_last_look_on(tmp_path: Path) -> None:
    """Only what was added is counted; half a line waits; a rotated file begins anew."""
    log = tmp_path / "app.log"
    log.write_text("ERROR disk full: No space left on device\n" * 3 + "ERROR half a li")
    first = look(log, None, NOW)
    assert (first.first, first.failures, first.alarms) == (True, 3, ())
    with log.open("a") as file:
        file.write("ne of unknown meaning\nERROR disk full: No space left on device\n")
    second = look(log, first.state, NOW + 60)
    assert second.failures == 2
    assert [(alarm.kind, alarm.cluster.examples[0].source) for alarm in second.alarms] == [
        ("new", "app.log:4")
    ]
    assert not look(log, second.state, NOW + 120).failures
    log.unlink()
    log.write_text("ERROR disk full: No space left on device\n")
    third = look(log, second.state, NOW + 180)
    assert (third.failures, third.alarms) == (1, ())


def test_a_template_stays_known_when_its_words_vary(tmp_path: Path) -> None:
    """Names never seen before do not make a new kind of a known one."""
    log = tmp_path / "app.log"
    log.write_text(
        "".join(f"ERROR no mailbox for user {n} here\n" for n in ("ann", "bob", "cyd", "dan"))
    )
    first = look(log, None, NOW)
    with log.open("a") as file:
        file.write("ERROR no mailbox for user zoe here\n")
    second = look(log, first.state, NOW + 60)
    assert (second.failures, second.alarms) == (1, ())


def test_a_spike_in_a_log(tmp_path: Path) -> None:
    """After a day of a failure an hour, fifty in one are an alarm."""
    log = tmp_path / "app.log"
    state: State | None = None
    log.touch()
    for hour in range(24):
        with log.open("a") as file:
            file.write("ERROR disk full: No space left on device\n")
        found = look(log, state, NOW + hour * HOUR)
        state = found.state
        assert not found.alarms
    with log.open("a") as file:
        file.write("ERROR disk full: No space left on device\n" * 50)
    (alarm,) = look(log, state, NOW + 24 * HOUR).alarms
    assert (alarm.kind, alarm.count) == ("spike", 50)


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    """A file that is something else is neither read as a state nor overwritten."""
    file = tmp_path / "state.json"
    for text in ("", "[]", "{}", '{"failwise": "watch", "version": 99}', "not json"):
        file.write_text(text)
        with pytest.raises(ConfigurationError, match="state"):
            load_state(str(file))
        assert file.read_text() == text


def test_nothing_secret_in_the_state(tmp_path: Path) -> None:
    """Templates in the state passed the redactor."""
    log = tmp_path / "app.log"
    log.write_text("ERROR login failed with password hunterhunter: db password=hunterhunter\n")
    file = tmp_path / "state.json"
    save_state(str(file), look(log, None, NOW).state)
    assert "password=hunterhunter" not in file.read_text()


def test_the_command(failwise: Failwise, tmp_path: Path) -> None:
    """0 at the first look and when all is as usual, 1 on alarm; the command reads JSON, without a
    shell; where it fails, the alarm comes again."""
    log, state, told = tmp_path / "app.log", tmp_path / "state.json", tmp_path / "told.json"
    script = tmp_path / "page.py"
    script.write_text(
        "import pathlib, sys\n"
        f"target = pathlib.Path({str(told)!r})\n"
        "target.write_text(sys.stdin.read())\nsys.exit(int(sys.argv[1]))\n"
    )
    log.write_text("ERROR disk full: No space left on device\n")
    words = ("watch", str(log), "--state", str(state))
    first = failwise(*words)
    assert (first.code, "First look" in first.out) == (0, True)
    assert "Nothing new" in failwise(*words).out
    with log.open("a") as file:
        file.write("ERROR connection to db refused: ECONNREFUSED; $(touch x)\n")
    command = f"{sys.executable} {script}"
    ended = failwise(*words, "--command", f"{command} 3")
    assert ended.code == 1
    assert "exit code 3" in ended.err
    ended = failwise(*words, "--command", f"{command} 0")
    assert (ended.code, "NEW" in ended.out) == (1, True)
    (alarm,) = json.loads(told.read_text())
    assert alarm["cluster"]["code"] == "network.connect_refused"
    assert failwise(*words).code == 0


def test_the_command_on_a_journal(failwise: Failwise, tmp_path: Path) -> None:
    """The last hour of a journal against its past, as JSON."""
    place = str(tmp_path / "journal.db")
    journal = Journal(place)
    now = time.time()
    for n in range(30):
        failure = failing.page(n)
        journal.put(failing.failed(failure, tool="search", at=now - 30 * HOUR + n, call_id=f"o{n}"))
    refused = failing.raised(ConnectionRefusedError(111, "Connection refused"), tool="pay")
    journal.put(failing.failed(refused, tool="pay", at=now - 60, call_id="n"))
    journal.close()
    ended = failwise("watch", place, "--since", "1h", "--json")
    assert ended.code == 1
    data = json.loads(ended.out)
    assert [alarm["kind"] for alarm in data["alarms"]] == ["new"]
    assert failwise("watch", place, "--alpha", "7").code == 2


def test_a_log_needs_a_state(failwise: Failwise) -> None:
    """Without a state a stream has nothing to be compared with."""
    ended = failwise("watch", "-", stdin="ERROR x\n")
    assert ended.code == 2
    assert "--state" in ended.err


def test_sensitivity_is_the_users(journal: Journal) -> None:
    """How many make a new kind can be said."""
    put_week(journal)
    failure = failing.raised(ConnectionRefusedError(111, "Connection refused"), tool="pay")
    journal.put(failing.failed(failure, tool="pay", at=NOW - 5, call_id="new"))
    patient = Sensitivity(new_from=3)
    assert not look_at_journal(journal, None, now=NOW, since=NOW - HOUR, sensitivity=patient).alarms
