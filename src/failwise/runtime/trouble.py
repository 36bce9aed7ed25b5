"""Known trouble: which tools are failing now, as one line for their description."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record
from failwise.vocabulary.sentences import say
from failwise.vocabulary.spec import ToolSpec

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

logger = logging.getLogger("failwise")

WINDOW = 300.0
"""Seconds of records that count as "now"."""
SAMPLE = 5
"""Fewer calls than these say nothing."""
SHARE = 0.8
"""From this share of failures on, a tool is failing."""
_FRESH = 5.0
"""Seconds for which what was found is kept."""
_MOST = 2000
_ANSWERS = frozenset(
    {
        Category.BUSINESS.value,
        Category.INVALID_REQUEST.value,
        Category.MODEL_OUTPUT.value,
    }
)
"""Failures that are answers: they say nothing of the tool's health."""
_BY_CHAIN = ("runtime.chain_aborted", "runtime.cancelled", "runtime.step_skipped")


@record
class Trouble:
    """One tool's trouble: `failed` of the last `calls` in the window, mostly of `category`; or its
    circuit is `open`, for `seconds` more (None: not known)."""

    failed: int = 0
    calls: int = 0
    category: str = ""
    open: bool = False
    seconds: float | None = None


class Memory:
    """What was found last: descriptions are made before every turn of a model."""

    __slots__ = ("at", "found")

    def __init__(self) -> None:
        self.at = float("-inf")
        self.found: Mapping[str, Trouble] = {}


def troubles(runtime: "Runtime") -> Mapping[str, Trouble]:
    """The tools in trouble now, by name: from the guards' circuits and from the journal.

    Never raises: where nothing can be read, nothing is known. What was found is kept for some seconds.
    """
    memory, now = runtime._memory, runtime.clock.time()
    if not memory.at <= now < memory.at + _FRESH:
        memory.at = now
        memory.found = {**_ask(runtime, now), **_open(runtime)} if runtime.mode != "off" else {}
    return memory.found


def _open(runtime: "Runtime") -> dict[str, Trouble]:
    """The tools whose circuit is open."""
    try:
        rows = runtime.upstreams()
    except Exception as error:  # guards of one's own, or far away: no description fails for them
        logger.debug("no known trouble: the guards do not tell (%s)", type(error).__name__)
        return {}
    waits = {row["upstream"]: row["opens_in"] for row in rows if row["circuit"] == "open"}
    return {
        spec.name: Trouble(open=True, seconds=waits[spec.upstream_name])
        for spec in runtime.tools.values()
        if spec.upstream_name in waits
    }


def _ask(runtime: "Runtime", now: float) -> dict[str, Trouble]:
    from failwise.journal.read import calls

    try:
        rows = calls(runtime.journal, since=now - WINDOW, limit=_MOST)
    except Exception as error:  # a journal that cannot be read says nothing, and fails no call
        logger.debug("no known trouble: the journal cannot be read (%s)", type(error).__name__)
        return {}
    counts: dict[str, list[str]] = {}
    for row in rows:
        if row.category not in _ANSWERS and row.code not in _BY_CHAIN:
            counts.setdefault(row.tool, []).append("" if row.success else row.category or "")
    found = {}
    for tool, categories in counts.items():
        failed = [category for category in categories if category]
        if len(categories) >= SAMPLE and len(failed) >= SHARE * len(categories):
            most = max(sorted(set(failed)), key=failed.count)
            found[tool] = Trouble(len(failed), len(categories), most)
    return found


def described(runtime: "Runtime", lang: str, trouble: bool) -> Callable[[ToolSpec], str]:
    """The description of a tool, with one line on its trouble where there is some."""
    known = troubles(runtime) if trouble else {}

    def describe(spec: ToolSpec) -> str:
        now = known.get(spec.name)
        return spec.description if now is None else f"{spec.description}\n{line(now, lang)}".strip()

    return describe


def line(trouble: Trouble, lang: str) -> str:
    """One bounded line."""
    if not trouble.open:
        return say(
            lang,
            "trouble_failing",
            failed=trouble.failed,
            calls=trouble.calls,
            minutes=int(WINDOW // 60),
            category=trouble.category,
        )
    if trouble.seconds:
        return say(lang, "trouble_open", seconds=max(1, round(trouble.seconds)))
    return say(lang, "trouble_open_now")
