"""What people said of clusters: names, merges, splits, silence."""

from collections.abc import Iterator, Sequence
from typing import Any

from failwise.journal.clock import SystemClock
from failwise.journal.source import Source
from failwise.vocabulary.records import record


@record
class ClusterName:
    """What a person said of a fingerprint: which cluster it belongs to, what that one is called,
    whether alarms about it are silent. `at` in epoch seconds."""

    fingerprint: str
    cluster: str
    name: str
    muted: bool
    at: float


class Names:
    """Reads and keeps what people said of fingerprints."""

    source: Source

    def names(self) -> dict[str, ClusterName]:
        """What people said of fingerprints, by fingerprint."""
        found = self.source.rows(
            "SELECT fingerprint, cluster, name, muted, at FROM cluster_names ORDER BY at"
        )
        return {row[0]: ClusterName(row[0], row[1], row[2], bool(row[3]), row[4]) for row in found}

    def name(self, fingerprints: Sequence[str], cluster: str, name: str) -> None:
        """Call a cluster by a name: its id, and the fingerprints that belong to it."""
        before = self.names()
        self._keep(
            ClusterName(one, cluster, name, one in before and before[one].muted, 0.0)
            for one in fingerprints
        )

    def merge(self, fingerprints: Sequence[str], cluster: str, name: str = "") -> None:
        """Put fingerprints into one cluster; those that are in it already come along under `name`
        (without one it keeps its own)."""
        before = self.names()
        members = [one.fingerprint for one in before.values() if one.cluster == cluster]
        called = name or next((before[one].name for one in members if before[one].name), "")
        self.name(list(dict.fromkeys([*members, *fingerprints])), cluster, called)

    def split(self, fingerprints: Sequence[str]) -> None:
        """Make each fingerprint a cluster of its own, named after itself, whatever else it is like."""
        before = self.names()
        self._keep(
            ClusterName(one, one, "", one in before and before[one].muted, 0.0)
            for one in fingerprints
        )

    def mute(self, fingerprints: Sequence[str], muted: bool = True) -> None:
        """Silence alarms about these fingerprints, or let them speak again."""
        before = self.names()
        self._keep(
            ClusterName(
                one,
                before[one].cluster if one in before else "",
                before[one].name if one in before else "",
                muted,
                0.0,
            )
            for one in fingerprints
        )

    def _keep(self, names: Iterator[ClusterName]) -> None:
        now = SystemClock.time()
        statements: list[tuple[str, Sequence[Any]]] = []
        for one in names:
            statements.append(
                ("DELETE FROM cluster_names WHERE fingerprint = ?", (one.fingerprint,))
            )
            row = (one.fingerprint, one.cluster, one.name, int(one.muted), now)
            statements.append(
                (
                    "INSERT INTO cluster_names (fingerprint, cluster, name, muted, at)"
                    " VALUES (?, ?, ?, ?, ?)",
                    row,
                )
            )
        self.source.write(statements)
