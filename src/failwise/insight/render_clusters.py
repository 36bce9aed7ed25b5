"""Clusters as a person reads them: the verdict first, a table, the largest ones in full."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from failwise.insight.clusters import Cluster
from failwise.insight.verdict import Verdict
from failwise.vocabulary import documents, words
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BARS: Final = "▁▂▃▄▅▆▇█"
_TEMPLATE: Final = 160
_NAMES: Final = 3


@functools.cache
def cluster_words(lang: Language) -> Mapping[str, str]:
    """The words of the lists and alarms in one language."""
    found: Mapping[str, str] = documents.read("failwise.insight", "clusters.toml")[1][lang]
    return found


def render_clusters(
    found: Sequence[Cluster],
    verdict: Verdict,
    console: "Console",
    *,
    lang: Language = "en",
    limit: int = 20,
    details: int = 3,
    muted: bool = False,
) -> None:
    """Print the verdict, a table of at most `limit` clusters, and `details` of them in full.

    Muted ones are left out and counted in a line, unless `muted`.
    """
    from rich.text import Text

    say = cluster_words(lang)
    console.print(Text(_plain(verdict.text(lang))), style="bold")
    shown = [cluster for cluster in found if muted or not cluster.muted]
    if shown:
        console.print()
        console.print(_table(shown[:limit], lang))
    for key, left in (("more", shown[limit:]), ("muted", [c for c in found if c not in shown])):
        if left:
            count = sum(cluster.count for cluster in left)
            console.print(Text(say[key].format(clusters=len(left), count=count)), style="dim")
    for cluster in shown[:details]:
        console.print()
        render_cluster(cluster, console, lang=lang)


def render_cluster(cluster: Cluster, console: "Console", *, lang: Language = "en") -> None:
    """Print all that is known of one cluster."""
    from rich.table import Table
    from rich.text import Text

    title = cluster.name or cluster.template
    console.print(Text(_plain(f"{cluster.id}  {title}")), style="bold")
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(cluster, lang):
        if value:
            table.add_row(Text(name), Text(_plain(value)))
    console.print(table)


def bars(counts: Sequence[int]) -> str:
    """Counts as a line of bars; nothing for none."""
    most = max(counts, default=0)
    if not most:
        return ""
    steps = len(_BARS) - 1
    return "".join(_BARS[-(-count * steps // most)] if count else " " for count in counts)


def _table(found: Sequence[Cluster], lang: Language) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    say = cluster_words(lang)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    trends = any(cluster.trend for cluster in found)
    places = any(cluster.upstreams or cluster.tools for cluster in found)
    table.add_column(say["cluster"], no_wrap=True)
    table.add_column(say["count"], justify="right", no_wrap=True)
    table.add_column(say["share"], justify="right", no_wrap=True)
    if trends:
        table.add_column(say["trend"], no_wrap=True)
    table.add_column(say["code"], no_wrap=True)
    table.add_column(say["turn"], overflow="fold")
    if places:
        table.add_column(say["where"], overflow="fold")
    table.add_column(say["what"], overflow="fold", ratio=1)
    for cluster in found:
        row = [cluster.id, str(cluster.count), f"{cluster.share * 100:.1f} %"]
        if trends:
            row.append(say.get(f"trend_{cluster.trend}", ""))
        row += [cluster.code, say[f"turn_{cluster.turn}"]]
        if places:
            row.append(_where(cluster))
        row.append(_short(cluster.name or cluster.template))
        table.add_row(*(Text(_plain(cell)) for cell in row))
    return table


def _where(cluster: Cluster) -> str:
    return ", ".join(name for name, _ in (cluster.upstreams or cluster.tools)[:_NAMES])


def _facts(cluster: Cluster, lang: Language) -> Iterator[tuple[str, str]]:
    say = cluster_words(lang)
    trend = say.get(f"trend_{cluster.trend}", "")
    yield say["count"], f"{cluster.count} ({cluster.share * 100:.1f} %)  {trend}"
    yield say["what"], cluster.template if cluster.name else ""
    status = f" · {cluster.http_status}" if cluster.http_status else ""
    yield say["code"], f"{cluster.code}{status}"
    yield say["turn"], say[f"turn_{cluster.turn}"]
    if cluster.failure is not None:
        yield say["remedy"], words.remedy(cluster.failure, lang)
    yield say["first"], moment(cluster.first)
    yield say["last"], moment(cluster.last)
    yield say["course"], bars(cluster.course) if len(cluster.course) > 1 else ""
    yield say["hours"], f"0 {bars(cluster.hours)} 23" if cluster.hours else ""
    yield say["upstreams"], _counted(cluster.upstreams)
    yield say["tools"], _counted(cluster.tools)
    yield say["variants"], _counted(cluster.variants)
    facts = cluster.facts or {}
    yield say["facts"], ", ".join(f"{name}: {_value(value)}" for name, value in facts.items())
    helped = [one for one in cluster.helps if one.tried]
    yield (
        say["helps"],
        "; ".join(
            say["help"].format(action=one.action, worked=one.worked, tried=one.tried)
            for one in helped
        ),
    )
    examples = (
        "  ".join(filter(None, (moment(one.at), one.source, _short(one.text))))
        for one in cluster.examples
    )
    yield say["examples"], "\n".join(examples)
    if len(cluster.fingerprints) > 1:
        yield say["fingerprints"], ", ".join(cluster.fingerprints[:10])


def _counted(names: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in names)


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= _TEMPLATE else text[: _TEMPLATE - 1] + "…"


def _plain(text: str) -> str:
    """No control characters, which could steer the terminal; the text is that of others."""
    return "".join(
        character if character.isprintable() or character == "\n" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def moment(at: float | None) -> str:
    """Epoch seconds as people read them, UTC."""
    import datetime

    if not at:
        return ""
    try:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%MZ")
    except (ValueError, OverflowError, OSError):
        return ""
