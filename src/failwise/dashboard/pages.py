"""Which pages there are, and where their data comes from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from failwise.dashboard import groups, kinds, overview, policies, records, search
from failwise.dashboard.asked import Asked, asked
from failwise.dashboard.gate import Door
from failwise.journal.reader import Reader
from failwise.vocabulary.records import record

FRESH: Final = 1.0
"""Seconds for which an answer is given to all who ask the same."""


@record
class Page:
    """A page: `data` gives what its JSON twin shows and its template renders; None: no such thing.

    An answer is at most `fresh` seconds old. `door` has to be open to whoever asks."""

    path: str
    template: str
    data: Callable[[Reader, Asked, Mapping[str, str], float], dict[str, Any] | None]
    fresh: float = FRESH
    door: Door = "pages"


def pages(
    look: groups.Look | None,
    policy: Callable[[], Mapping[str, Any]] | None,
    proxies: Callable[[], Sequence[Mapping[str, Any]]] | None,
) -> tuple[Page, ...]:
    """The pages of one dashboard. `look` tells of the guards of this process, `policy` and `proxies` as `failwise.dashboard.app` has them."""

    def call(reader: Reader, _: Asked, told: Mapping[str, str], __: float) -> Any:
        wanted = asked({"since": told.get("at", "")}, 0.0).since
        return records.call(reader, told.get("run", ""), told.get("id", ""), wanted)

    def raw(reader: Reader, _: Asked, told: Mapping[str, str], __: float) -> Any:
        at = asked({"since": told.get("at", "")}, 0.0).since or 0.0
        return {"rows": records.raw_answers(reader, told.get("id", ""), at)}

    def calls(reader: Reader, wanted: Asked, _: Mapping[str, str], __: float) -> Any:
        found = search.found_calls(reader, wanted, 50)
        following = found.following
        return {
            "rows": found.rows,
            "next": f"{following[0]!r}-{following[1]}" if following else None,
            "searched_to": found.searched_to,
        }

    def grouped(kind: groups.Kind) -> Any:
        def data(reader: Reader, wanted: Asked, told: Mapping[str, str], now: float) -> Any:
            sort = told.get("sort") or ("retries" if kind == "upstream" else "failures")
            found = groups.groups(reader, wanted, kind, sort, now, look)
            if kind == "upstream":
                found["proxies"] = list(proxies()) if proxies is not None else []
            return found

        return data

    return (
        Page("/", "overview.html", lambda r, a, _, n: overview.overview(r, a, n), 2.0),
        Page("/tools", "groups.html", grouped("tool")),
        Page("/upstreams", "groups.html", grouped("upstream")),
        Page(
            "/clusters",
            "clusters.html",
            lambda r, a, t, _: kinds.kinds(r, a, muted=bool(t.get("muted"))),
            5.0,
        ),
        Page(
            "/cluster", "cluster.html", lambda r, a, t, n: kinds.kind(r, a, t.get("id", ""), n), 5.0
        ),
        Page("/calls", "calls.html", calls),
        Page("/call", "call.html", call),
        Page("/call/raw", "raw.html", raw, 0.0, "raw"),
        Page("/run", "run.html", lambda r, _, t, __: records.run(r, t.get("id", ""))),
        Page("/effects", "effects.html", lambda r, _, __, n: records.effects(r, n)),
        Page("/policy", "policy.html", lambda *_: policies.in_force(policy), 5.0),
    )
