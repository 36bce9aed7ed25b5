"""Clusters of a journal: E28, what a person says of them, what helps."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from failwise.insight.clusters import Cluster, find
from failwise.insight.recorded import (
    clusters,
    merge_clusters,
    mute_cluster,
    name_cluster,
    split_cluster,
)
from failwise.journal.journal import Journal
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.kinds import Action
from tests.cli.conftest import Failwise
from tests.insight import failing
from tests.insight.failing import HOUR, NOW


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = failing.journal()
    yield made
    made.close()


def put_hundred(journal: Journal, pages: int, certificates: int) -> None:
    """A hundred failures: 502 pages of one gateway, expired certificates of one host, others."""
    for n in range(100):
        at = NOW - 2 * HOUR + n * 30
        if n < pages:
            result = failing.failed(
                failing.page(n), tool="search", at=at, call_id=f"c{n}", upstream="gateway.example"
            )
        elif n < pages + certificates:
            result = failing.failed(
                failing.expired(), tool="pay", at=at, call_id=f"c{n}", upstream="pay.example"
            )
        else:
            failure = failing.answered(404, f'{{"error": "no user {n}"}}', tool="crm")
            result = failing.failed(failure, tool="crm", at=at, call_id=f"c{n}", upstream="crm")
        journal.put(result)


def test_e28_the_verdict_heads_the_output(journal: Journal) -> None:
    """E28: 502s are one cluster at 70 %, the upstream's turn; certificates one at 20 %, ours or their
    owner's, with the date; two lines say so, in both languages."""
    put_hundred(journal, 70, 20)
    found = clusters(journal)
    assert [(one.code, one.count, one.share) for one in found.clusters] == [
        ("network.bad_gateway", 70, 0.7),
        ("security.certificate_expired", 20, 0.2),
        ("business.not_found", 10, 0.1),
    ]
    gateway, certificate, _ = found.clusters
    assert (gateway.turn, gateway.upstreams) == ("upstream", (("gateway.example", 70),))
    assert certificate.turn == "trust"
    assert found.verdict.turn == "upstream"
    first, second = found.verdict.text("en").split("\n")
    assert first == (
        "70 of the last 100 failures (70 %) are 502 Bad Gateway (network.bad_gateway) of "
        "gateway.example: the upstream's turn: ask whoever runs gateway.example."
    )
    assert second.startswith("20 (20 %) are “The server's certificate has expired”")
    assert "expired 2026-11-02" in second
    assert "our environment or the certificate's owner" in second
    first, second = found.verdict.text("zh").split("\n")
    assert "70 次（70 %）是 502 Bad Gateway" in first
    assert "该上游处理" in first
    assert "证书所有者" in second
    assert "2026-11-02" in second


def test_e28_the_verdict_turns(journal: Journal) -> None:
    """E28: with 90 certificates it is another verdict."""
    put_hundred(journal, 4, 90)
    found = clusters(journal)
    assert found.verdict.turn == "trust"
    assert found.verdict.text("en").startswith(
        "90 of the last 100 failures (90 %) are “The server's"
    )


def test_without_failures_and_without_a_cause(journal: Journal) -> None:
    """No failures is said; so is that no single cause stands out."""
    assert clusters(journal).verdict.text() == "No failures."
    texts = ("no paper", "the ink is dry", "lid open", "a jam in tray two was seen", "too hot")
    for n, text in enumerate((*texts, "belt off", "no toner was found today")):
        failure = failing.raised(ValueError(text), tool=f"t{n}")
        journal.put(failing.failed(failure, tool=f"t{n}", at=NOW - n, call_id=str(n)))
    assert "no single cause" in clusters(journal).verdict.text()


def test_variants_fall_together_whatever_the_tool(journal: Journal) -> None:
    """Messages that differ in a value are one cluster over all tools, with its variants counted."""
    for n in range(12):
        table = ("orders", "users", "carts", "items")[n % 4]
        failure = failing.answered(
            400,
            json.dumps({"error": f"column {table} is ambiguous in query {n}"}),
            tool=f"t{n % 2}",
        )
        journal.put(failing.failed(failure, tool=f"t{n % 2}", at=NOW - n, call_id=str(n)))
    (one,) = clusters(journal).clusters
    assert one.count == 12
    assert dict(one.tools) == {"t0": 6, "t1": 6}
    assert dict(one.variants) == dict.fromkeys(("orders", "users", "carts", "items"), 3)
    assert len(one.fingerprints) == 4
    assert one.examples[0].text == "column orders is ambiguous in query 0"


def test_a_404_is_not_a_503(journal: Journal) -> None:
    """The same words under another status are another cluster."""
    for status in (404, 503):
        failure = failing.answered(status, '{"error": "thing 17 is not here"}', tool="t")
        journal.put(failing.failed(failure, tool="t", at=NOW, call_id=str(status)))
    assert len(clusters(journal).clusters) == 2


def test_the_type_of_an_error_keeps_clusters_apart(journal: Journal) -> None:
    """The same message of two exception types is two clusters."""
    for error in (KeyError("sku"), IndexError("sku")):
        failure = failing.raised(error, tool="t")
        journal.put(failing.failed(failure, tool="t", at=NOW, call_id=type(error).__name__))
    assert len(clusters(journal).clusters) == 2


def test_course_and_trend(journal: Journal) -> None:
    """A kind that comes more and more often is rising; one that stopped is gone."""
    number = 0
    for hour in range(24):
        for kind, count in (
            ("rising thing", hour // 2),
            ("old thing", 6 if hour < 10 else 0),
            ("even thing", 3),
        ):
            for _ in range(count):
                number += 1
                failure = failing.answered(400, json.dumps({"error": kind}), tool="t")
                at = NOW - 24 * HOUR + hour * HOUR + number % 3_000
                journal.put(failing.failed(failure, tool="t", at=at, call_id=str(number)))
    found = clusters(journal, since=NOW - 24 * HOUR, until=NOW)
    trends = {one.template: one.trend for one in found.clusters}
    assert trends == {"rising thing": "rising", "old thing": "gone", "even thing": "steady"}
    assert all(sum(one.course) == sum(one.hours) == one.count for one in found.clusters)


def cluster(journal: Journal, wanted: str) -> Cluster:
    found = find(clusters(journal).clusters, wanted)
    assert found is not None
    return found


@pytest.fixture
def several(journal: Journal) -> Journal:
    """Three kinds; the first has fingerprints of two tools."""
    number = 0
    for text, tools in (
        ("ran out of paper", ("a", "b")),
        ("no ink left", ("a",)),
        ("jammed", ("a",)),
    ):
        for tool in tools:
            number += 1
            failure = failing.answered(400, json.dumps({"error": text}), tool=tool)
            journal.put(
                failing.failed(failure, tool=tool, at=NOW - 100 + number, call_id=str(number))
            )
    return journal


def test_a_name_stays(several: Journal) -> None:
    """A name given by any fingerprint stays when new ones join the cluster."""
    paper = next(one for one in clusters(several).clusters if "paper" in one.template)
    name_cluster(several, paper.fingerprints[1][:6], "empty tray")
    failure = failing.answered(400, '{"error": "ran out of paper"}', tool="c")
    several.put(failing.failed(failure, tool="c", at=NOW, call_id="new"))
    named = cluster(several, "empty tray")
    assert (named.id, named.count, len(named.fingerprints)) == (paper.id, 3, 3)
    assert "“empty tray”" in clusters(several).verdict.text()


def test_a_merge_stays(several: Journal) -> None:
    """Clusters that are one for a person are one from then on, their later variants too."""
    found = clusters(several).clusters
    ink, jam = (next(one for one in found if word in one.template) for word in ("ink", "jammed"))
    merge_clusters(several, [ink.id, jam.id], "printer")
    both = cluster(several, "printer")
    assert (both.count, set(both.fingerprints)) == (2, {ink.id, jam.id})
    for n, tool in enumerate(("x", "y")):
        failure = failing.answered(400, '{"error": "no ink left"}', tool=tool)
        several.put(failing.failed(failure, tool=tool, at=NOW + n, call_id=tool))
    assert cluster(several, "printer").count == 4
    with pytest.raises(UsageError, match="one already"):
        merge_clusters(several, [ink.id, jam.id])


def test_a_split_stays_even_when_named(several: Journal) -> None:
    """A fingerprint that stands alone keeps standing alone; what is new joins the others."""
    paper = next(one for one in clusters(several).clusters if "paper" in one.template)
    first, second = paper.fingerprints
    split_cluster(several, second)
    assert [cluster(several, one).count for one in (first, second)] == [1, 1]
    name_cluster(several, second, "printer b")
    failure = failing.answered(400, '{"error": "ran out of paper"}', tool="c")
    several.put(failing.failed(failure, tool="c", at=NOW, call_id="new"))
    assert cluster(several, "printer b").count in (1, 2)
    assert sum(cluster(several, one).count for one in (first, second)) == 3
    with pytest.raises(UsageError, match="of its own already"):
        split_cluster(
            several, next(o for o in clusters(several).clusters if "ink" in o.template).id
        )


def test_muted_and_unknown(several: Journal) -> None:
    """A muted cluster is counted and marked; what names nothing is refused."""
    ink = next(one for one in clusters(several).clusters if "ink" in one.template)
    mute_cluster(several, ink.id)
    assert cluster(several, ink.id).muted
    mute_cluster(several, ink.id, False)
    assert not cluster(several, ink.id).muted
    with pytest.raises(UsageError, match="names no cluster"):
        name_cluster(several, "ffff", "x")


def test_what_usually_helps(journal: Journal) -> None:
    """What the runtime did counts by the end of the call, what the model was asked by its next call."""
    for n in range(4):
        journal.put(failing.recovered(failing.page(n), tool="search", at=NOW - n, call_id=f"r{n}"))
    journal.put(failing.failed(failing.page(9), tool="search", at=NOW, call_id="f"))
    refused = failing.answered(422, '{"error": "quantity must be positive"}', tool="order")
    for n, worked in enumerate((True, True, False)):
        run = f"run{n}"
        journal.put(
            failing.failed(
                refused, tool="order", at=NOW - 50, call_id="a", run_id=run, action=Action.ASK_MODEL
            )
        )
        if worked:
            journal.put(failing.worked(tool="order", at=NOW - 40, call_id="b", run_id=run))
    found = {one.code: one for one in clusters(journal).clusters}
    (retry,) = found["network.bad_gateway"].helps
    assert (retry.action, retry.tried, retry.worked) == ("retry_backoff", 4, 4)
    (asked,) = next(one for code, one in found.items() if code.startswith("invalid")).helps
    assert (asked.action, asked.tried, asked.worked) == ("ask_model", 3, 2)


def test_the_command(failwise: Failwise, tmp_path: Path) -> None:
    """The command shows a journal's clusters, one of them, and does what is said of them."""
    place = str(tmp_path / "journal.db")
    journal = failing.journal(place)
    put_hundred(journal, 70, 20)
    journal.close()
    shown = failwise("clusters", place)
    assert shown.code == 0
    assert shown.out.startswith("70 of the last 100 failures")
    data = json.loads(failwise("clusters", place, "--json").out)
    assert data["verdict"]["turn"] == "upstream"
    gateway, certificate, _ = (one["id"] for one in data["clusters"])
    one = failwise("clusters", place, "--show", certificate[:8])
    assert "not_after: 2026-11-02" in one.out
    assert "gateway down" in failwise("clusters", place, "--name", gateway, "gateway down").out
    assert "“gateway down”" in failwise("clusters", place).out
    assert failwise("clusters", place, "--mute", "gateway down").code == 0
    assert "1 muted clusters with 70 failures" in failwise("clusters", place).out
    assert failwise("clusters", place, "--merge", gateway, certificate).code == 0
    assert json.loads(failwise("clusters", place, "--json").out)["clusters"][0]["count"] == 90
    assert failwise("clusters", place, "--show", "zzzz").code == 2
