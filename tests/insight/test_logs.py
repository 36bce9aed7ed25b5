"""Logs: entries of any common form, and the clusters of what they tell of."""

import json
from typing import Any

import pytest

from failwise.insight.loglines import Entry, entries
from failwise.insight.logs import LogClusters, LogCounting
from failwise.insight.verdict import verdict
from failwise.redaction import default
from tests.cli.conftest import Failwise

SECRET = "sk-proj-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0"


def read(text: str) -> list[Entry]:
    return list(entries(enumerate(text.splitlines(), 1), year=2026))


def clustered(text: str) -> LogClusters:
    counting = LogCounting(year=2026)
    counting.read(enumerate(text.splitlines(), 1))
    return counting.result(default(), name="app.log")


@pytest.mark.parametrize(
    ("line", "level", "head", "at"),
    [
        ("2026-11-30 08:00:01,500 ERROR db: gone", "error", "ERROR db: gone", 1796025601.5),
        ("2026-11-30T08:00:01Z WARN slow", "warning", "WARN slow", 1796025601.0),
        ("2026-11-30T10:00:01+02:00 info: started", "", "info: started", 1796025601.0),
        ("2026/11/30 08:00:01 [error] 7#0: *5 connect() failed", "error",
         "[error] 7#0: *5 connect() failed", 1796025601.0),
        ("Nov 30 08:00:01 host app[17]: level=error msg=\"gone\"", "error",
         "host app[17]: level=error msg=\"gone\"", 1796025601.0),
        ("[Mon Nov 30 08:00:01 2026] [notice] resuming", "info", "[notice] resuming", 1796025601.0),
        ("E1130 08:00:01.000123 1234 server.cc:12] gone", "error", "server.cc:12] gone", 1796025601.0),
        ("just words", "", "just words", None),
        ("2026-13-45 08:00:01 ERROR no such day", "error", "ERROR no such day", None),
        ('{"level":"error","msg":"gone","time":"2026-11-30T08:00:01Z","status":503}', "error",
         "gone: status=503", 1796025601.0),
        ('{"severity":"INFO","message":"fine","timestamp":1796025601000}', "info", "fine", 1796025601.0),
        ('{"msg":"call failed","error":{"type":"Timeout","message":"30 s"}}', "", 
         "call failed: Timeout: 30 s", None),
        ('{"not": "closed"', "", '{"not": "closed"', None),
    ],
)  # fmt: skip
def test_common_forms_are_read(line: str, level: str, head: str, at: float | None) -> None:
    """Time, level and message come apart, whoever wrote the log."""
    (entry,) = read(line)
    assert (entry.level, entry.head, entry.at) == (level, head, at)


def test_a_traceback_is_one_entry_known_by_its_exception() -> None:
    """The lines of a traceback belong together; the exception names the kind, the lines in it do not."""
    text = (
        "2026-11-30 08:00:01 ERROR worker: job 17 failed\n"
        "Traceback (most recent call last):\n"
        '  File "w.py", line 3, in run\n'
        "    work()\n"
        "KeyError: 'sku'\n"
        "2026-11-30 08:00:02 INFO next"
    )
    first, second = read(text)[0], read(text)[-1]
    assert first.head == "ERROR worker: job 17 failed KeyError: 'sku'"
    assert first.line == 1
    assert first.text.endswith("KeyError: 'sku'")
    assert second.head == "INFO next"


def test_a_java_stack_is_one_entry() -> None:
    """Indented lines and causes go with the line before."""
    text = (
        "08:00 ERROR order failed\n"
        "\tat com.shop.Order.place(Order.java:12)\n"
        "Caused by: java.net.SocketTimeoutException: Read timed out\n"
        "\t... 12 more\n"
        "08:01 all is well"
    )
    first, _ = read(text)
    assert first.head == "08:00 ERROR order failed java.net.SocketTimeoutException: Read timed out"


def test_clusters_of_a_log() -> None:
    """Failures are counted by kind, with share, moments, what varies and examples; what is fine is apart."""
    lines = [f"2026-11-30 08:{n % 60:02}:00 INFO GET /orders/{n} 200 in {n} ms" for n in range(50)]
    lines += [
        f'2026-11-30 09:{n:02}:00 ERROR db: relation "x{n}" does not exist' for n in range(30)
    ]
    lines += [
        f"2026-11-30 10:{n:02}:00 WARNING login failed: wrong password for {name}"
        for n, name in enumerate(("ann", "bob", "cyd", "dan", "eve"))
    ]
    found = clustered("\n".join(lines))
    assert (found.entries, found.failures) == (85, 35)
    relation, login = found.clusters
    assert (relation.count, relation.code) == (30, "invalid_request.parameter")
    assert relation.share == pytest.approx(30 / 35)
    assert relation.hours[9] == 30
    assert (relation.first, relation.last) == (1796029200.0, 1796030940.0)
    assert login.code == "auth.invalid_credential"
    assert dict(login.variants) == dict.fromkeys(("ann", "bob", "cyd", "dan", "eve"), 1)
    assert sum(cluster.count for cluster in found.others) == 50


def test_e28_in_a_log() -> None:
    """E28 without a journal: pages with other ray ids are one kind; the head of the output says so."""
    lines = [
        "2026-11-30 08:00:01 ERROR 502 Bad Gateway: <html><head><title>502 Bad Gateway</title></head>"
        f"<body>Ray ID: {n * 7_919_113:x}</body></html>"
        for n in range(70)
    ]
    lines += ["2026-11-30 08:00:02 ERROR certificate verify failed: certificate has expired"] * 20
    lines += [f'2026-11-30 08:00:03 ERROR relation "t{n}" does not exist' for n in range(10)]
    found = clustered("\n".join(lines))
    said = verdict(found.clusters, found.recent)
    assert [part.count for part in said.parts] == [70, 20, 10]
    first, second = said.text().split("\n")
    assert first.startswith("70 of the last 100 failures (70 %) are 502 Bad Gateway")
    assert "the upstream's turn" in first
    assert "our environment or the certificate's owner" in second


def test_nothing_secret_is_shown(failwise: Failwise, tmp_path: Any) -> None:
    """Examples, templates and variants pass the redactor, for people and for programs."""
    log = tmp_path / "app.log"
    log.write_text(
        "".join(
            f"2026-11-30 08:00:0{n} ERROR login failed: password=hunter{n}2x token={SECRET} for u{n}\n"
            for n in range(5)
        )
    )
    for words in ((), ("--json",), ("--all",)):
        shown = failwise("clusters", str(log), *words)
        assert shown.code == 0
        assert SECRET not in shown.out
        assert "hunter" not in shown.out


def test_the_command_reads_streams(failwise: Failwise) -> None:
    """Standard input is a log; the answer is a table for people, one object for programs."""
    text = "ERROR disk: No space left on device: /var\n" * 3 + "INFO all is well\n"
    shown = failwise("clusters", "-", stdin=text)
    assert shown.code == 0
    assert shown.out.startswith("All of the last 3 failures are")
    assert "tool.disk_full" in shown.out
    data = json.loads(failwise("clusters", "-", "--json", stdin=text).out)
    assert (data["failures"], data["entries"]) == (3, 4)
    assert data["clusters"][0]["turn"] == "environment"
    one = failwise("clusters", "-", "--show", data["clusters"][0]["id"], stdin=text)
    assert "No space left on device" in one.out
    chinese = failwise("clusters", "-", "--lang", "zh", stdin=text)
    assert "最近 3 次失败全部是" in chinese.out
    assert "没有像失败的内容" in failwise("clusters", "-", "--lang", "zh", stdin="INFO fine\n").out


def test_terminal_control_does_not_get_through(failwise: Failwise) -> None:
    """A log cannot steer the terminal of whoever looks at it."""
    shown = failwise(
        "clusters", "-", stdin="ERROR \x1b]0;owned\x07 disk full: No space left on device\n"
    )
    assert "\x1b" not in shown.out
    assert "\x07" not in shown.out


def test_what_is_for_journals_is_refused(failwise: Failwise, tmp_path: Any) -> None:
    """Names and periods need a journal; the message says so. A mistyped file is one."""
    log = tmp_path / "app.log"
    log.write_text("ERROR x\n")
    ended = failwise("clusters", str(log), "--mute", "abcd")
    assert ended.code == 2
    assert "for journals" in ended.err
    assert failwise("clusters", str(tmp_path / "none.log")).code == 2
