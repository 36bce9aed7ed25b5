"""What a template may use: the words, the addresses, the look of one request."""

import functools
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from failwise.dashboard import charts, look
from failwise.dashboard.asked import PERIODS, Asked
from failwise.journal.rollups import DAY, HOUR
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.result import Language

PAGES: Final = ("overview", "clusters", "calls", "tools", "upstreams", "effects", "policy")
"""What the navigation leads to, in its order."""
PATHS: Final[Mapping[str, str]] = {"overview": "/"} | {name: f"/{name}" for name in PAGES[1:]}


FILTERED: Final = ("/", "/clusters", "/calls", "/tools", "/upstreams")
"""The pages that can be filtered."""
KEPT: Final = ("tool", "upstream", "category", "code", "provider", "model")
"""Filters that go along from page to page."""


class View:
    """One request as a template sees it. `base` is the path the dashboard is mounted below, `path` and
    `parameters` the address inside of it."""

    def __init__(
        self,
        *,
        base: str,
        path: str,
        parameters: Mapping[str, str],
        lang: Language,
        theme: str,
        now: float,
        mark: str,
        read_only: bool,
        asked: Asked | None = None,
        signed: bool = False,
    ) -> None:
        self.base, self.path, self.parameters = base, path, parameters
        self.lang, self.theme, self.now, self.mark = lang, theme, now, mark
        self.read_only, self.asked, self.signed = read_only, asked, signed
        self.pages, self.paths, self.periods = PAGES, PATHS, tuple(PERIODS)
        self.categories = tuple(category.value for category in Category)
        self.charts = charts
        self.say = functools.partial(look.say, lang)
        self.named = functools.partial(look.named, lang)
        self.plain, self.count, self.percent = look.plain, look.count, look.percent
        self.duration, self.moment, self.iso = look.duration, look.moment, look.iso

    def url(self, path: str, **parameters: Any) -> str:
        """The address of a page; parameters that are None or empty are left out."""
        kept = {name: value for name, value in parameters.items() if value not in (None, "")}
        return f"{self.base}{path}" + (f"?{urlencode(kept)}" if kept else "")

    def here(self, **changed: Any) -> str:
        """The address of this page with some parameters changed."""
        return self.url(self.path, **{**self.parameters, **changed})

    def page(self, path: str, **parameters: Any) -> str:
        """The address of another page in the same stretch of time."""
        stretch = {
            name: self.parameters[name]
            for name in ("period", "since", "until")
            if name in self.parameters
        }
        return self.url(path, **stretch, **parameters)

    def nav(self, path: str, **parameters: Any) -> str:
        """The address of a page that lists or counts calls, in the same stretch and for the same calls;
        other pages have no filter."""
        kept = self.asked.given if self.asked is not None and path in FILTERED else {}
        return self.page(
            path, **{**{name: kept[name] for name in KEPT if name in kept}, **parameters}
        )

    def call(self, row: Mapping[str, Any]) -> str:
        """The address of a call."""
        at = f"{row['started']:.6f}"
        return self.url("/call", run=row["run_id"], id=row["call_id"], at=at)

    def run(self, run_id: str) -> str:
        """The address of a run."""
        return self.url("/run", id=run_id)

    def cluster(self, fingerprint: str) -> str:
        """The address of the cluster of a fingerprint."""
        return self.page("/cluster", id=fingerprint)

    def around(self, fingerprint: str, epoch: float) -> str:
        """The address of the cluster of a fingerprint, in the week before a moment and the day after."""
        since, until = (epoch - 7 * DAY) // HOUR * HOUR, (epoch + DAY) // HOUR * HOUR
        return self.url("/cluster", id=fingerprint, since=f"{since:.0f}", until=f"{until:.0f}")

    def meaning(self, code: str) -> str:
        """What a code means."""
        entry = lookup(code)
        return entry.meaning[self.lang] if entry is not None else ""

    def title(self, cluster: Mapping[str, Any]) -> str:
        """What a cluster is called: by people, else by what its code means."""
        name: str = cluster["name"] or self.meaning(cluster["code"])
        return name or cluster["template"][:120]

    def ago(self, epoch: float | None) -> str:
        """How long ago a moment was."""
        return "" if epoch is None else look.ago(self.lang, max(0.0, self.now - epoch))

    def notes(
        self,
        points: Sequence[tuple[float, Mapping[str, int]]],
        keys: Sequence[str],
        names: Mapping[str, str],
    ) -> list[str]:
        """What each point of a course is, in words."""
        return [
            " · ".join(
                [
                    look.moment(at, "%Y-%m-%d %H:%M"),
                    *(f"{names[key]} {look.count(counts[key])}" for key in keys if counts[key]),
                ]
            )
            for at, counts in points
        ]

    def each(
        self, points: Sequence[tuple[float, Mapping[str, int]]], above: str, below: str
    ) -> list[str]:
        """What each point of a line is, in words."""
        return [
            f"{look.moment(at, '%Y-%m-%d %H:%M')} · "
            + (f"{counts[above] / counts[below]:.2f}" if counts[below] else "–")
            for at, counts in points
        ]

    def of(self, texts: Mapping[str, str] | None) -> str:
        """The text of this language."""
        return "" if not texts else texts.get(self.lang) or texts.get("en", "")

    def json(self, value: Any) -> str:
        """A value as people read JSON, what is odd in it spelt out."""
        import json

        return look.plain(json.dumps(value, ensure_ascii=False, indent=2, default=str))

    def inner(self, path: str, **parameters: Any) -> str:
        """An address inside the dashboard, wherever that is mounted; for ``next`` of forms."""
        return self.page(path, **parameters).removeprefix(self.base)

    def short(self, number: int) -> str:
        """A count that fits into a narrow cell."""
        if number < 1_000:
            return str(number)
        return f"{number / 1_000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.0f}M"

    def parts(self, timeline: Sequence[Mapping[str, Any]]) -> list[str]:
        """What each part of a time line is, in words."""
        names = {
            "wait": self.say("part_wait"),
            "rest": self.say("part_rest"),
            "refused": self.say("attempt_refused"),
            "done": self.say("attempt_done"),
        }
        return [
            f"{names.get(part['what']) or part['code']} · {look.duration(part['from'] * 1000)} – "
            f"{look.duration(part['to'] * 1000)}"
            for part in timeline
        ]

    def quoted(self, word: str) -> str:
        """A word as a shell takes it."""
        return shlex.quote(look.plain(word, 300))

    def wait(self, row: Mapping[str, Mapping[str, Any]]) -> str:
        """How a row of the policy waits, in one line."""
        strategy = row["strategy"]["value"]
        if strategy == "none":
            return "–"
        text = f"{strategy} {row['base']['value']:g} s"
        if strategy == "exponential":
            text += f" × {row['multiplier']['value']:g}"
        if strategy != "fixed":
            text += f" ≤ {row['cap']['value']:g} s"
        jitter = row["jitter"]["value"]
        return f"{text} ± {jitter * 100:g} %" if jitter else text

    def origins(self, row: Mapping[str, Mapping[str, Any]]) -> str:
        """Where the values of a row come from; presets once, whatever the line."""
        names = dict.fromkeys(
            origin.partition(":")[0] if origin.startswith("preset") else origin
            for origin in (one["origin"] for one in row.values())
            if origin
        )
        own = [name for name in names if not name.startswith("preset")]
        return ", ".join(own or names)

    @property
    def twin(self) -> str:
        """The address of the same as JSON."""
        path = "/overview" if self.path == "/" else self.path
        return self.url(f"/api{path}", **self.parameters)
