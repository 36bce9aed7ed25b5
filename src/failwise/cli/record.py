"""A call as a journal keeps it: the evidence, the rules that spoke, the decision of each attempt."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from failwise.cli import verdict
from failwise.cli.journals import existing
from failwise.cli.moments import utc
from failwise.cli.terminal import clean, console, facts, named, print_json, say, table
from failwise.journal.place import VARIABLE
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from failwise.journal.read import AttemptRecord
    from failwise.journal.reader import Reader

_KEY: Final = re.compile(r"#?[\w.:@/+=-]{1,200}")
_NUMBER: Final = re.compile(r"#?(\d{1,18})")
_ID: Final = re.compile(
    r"#\d{1,18}|(?:call|toolu|tooluse|tool|fc|run)_[\w-]{1,180}|chatcmpl-[\w-]{1,180}"
    r"|[0-9a-f]{12,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
"""How agents and model providers name calls."""
_AS_TEXT: Final = "To have it read as a text, pipe it in: failwise explain -"
_MANY: Final = 20
_DETAIL: Final = 300
_ROW: Final = (
    "id", "call_id", "run_id", "parent_id", "tool", "started", "duration_ms", "success", "stop_reason",
    "action", "sent", "effect", "degraded_to", "verified", "retry_at", "arguments",
)  # fmt: skip


def find(key: str | None, journal: str | None, run: str | None) -> "dict[str, Any] | None":
    """The call of this id, or the record of this number, with its attempts and its fallbacks; the
    newest of several. None where `key` may be a text as well, and no journal has such a call.

    Raises `UsageError` where a journal was named and has none, and for what is plainly the id of a
    call where no journal is, or none that has it.
    """
    if key is None or not _KEY.fullmatch(key):
        if journal is None and run is None:
            return None
        raise UsageError("--journal and --run: write the id of a call, or the number of its record")
    place = None
    if journal is not None or run is not None:
        place = existing(journal)
    else:
        with suppress(UsageError):
            place = existing(None)
    if place is None:
        if _is_id(key):
            raise UsageError(
                f"{key} looks like the id of a call, and there is no journal here: name it with "
                f"--journal FILE, or set {VARIABLE}. {_AS_TEXT}"
            )
        return None
    from failwise.journal.reader import open_reader

    with open_reader(place) as reader:
        found = _found(reader, key, run)
        if found is None and (journal is not None or run is not None):
            raise UsageError(f"the journal has no call {key!r}{f' in run {run!r}' if run else ''}")
    if found is None and _is_id(key):
        raise UsageError(f"the journal {place} has no call {key!r}. {_AS_TEXT}")
    return found


def _is_id(key: str) -> bool:
    """A word that nobody would paste as an error, and that names no file."""
    return _ID.fullmatch(key) is not None and not os.path.exists(key)


def _found(reader: "Reader", key: str, run: str | None) -> dict[str, Any] | None:
    from failwise.journal.read import attempts
    from failwise.journal.reader import Filter

    rows = reader.calls(Filter(call_id=key, run=run), limit=_MANY)
    number = _NUMBER.fullmatch(key)
    if not rows and number is not None:
        ids = reader.source.rows("SELECT call_id FROM calls WHERE id = ?", (int(number[1]),))
        same = reader.calls(Filter(call_id=ids[0]["call_id"]), limit=1_000) if ids else []
        rows = [row for row in same if row["id"] == int(number[1])]
    if not rows:
        return None
    row = rows[0]
    children = reader.source.rows(
        "SELECT id, call_id, tool, success, code FROM calls WHERE parent_id = ? AND run_id = ?"
        " ORDER BY started LIMIT ?",
        (row["call_id"], row["run_id"], _MANY),
    )
    return {
        "call": row,
        "attempts": attempts(reader.source, row["id"]),
        "fallbacks": [dict(child) | {"success": bool(child["success"])} for child in children],
        "others": [{"id": other["id"], "run_id": other["run_id"]} for other in rows[1:]],
    }


def show(found: Mapping[str, Any], lang: Language, *, as_json: bool) -> None:
    """Print what was found."""
    row = found["call"]
    failure = Failure.from_dict(row["failure"]) if isinstance(row["failure"], Mapping) else None
    if as_json:
        print_json(_data(found, failure))
        return
    out = console()
    out.print(facts(_call_rows(row, lang)))
    if failure is not None:
        out.print()
        out.print(facts(verdict.rows(failure, lang)))
        out.print()
        out.print(say(lang, "evidence_kept"), style="bold")
        out.print(facts(_evidence(failure, lang)))
        if failure.spoke:
            out.print()
            out.print(_spoke(failure, lang))
        out.print()
        out.print(facts(_winner(failure, lang)))
    if found["attempts"]:
        out.print()
        out.print(say(lang, "attempts_title"), style="bold")
        out.print(_attempts(found["attempts"], lang))
    for child in found["fallbacks"]:
        ended = named(lang, "result", "done" if child["success"] else "failed")
        line = f"→ {child['tool']} ({child['call_id']}): {ended} {child['code'] or ''}"
        out.print(clean(line.rstrip()))
    if found["others"]:
        runs = ", ".join(f"#{one['id']} ({one['run_id']})" for one in found["others"])
        out.print(clean(say(lang, "other_records", records=runs)), style="dim")


def _data(found: Mapping[str, Any], failure: Failure | None) -> dict[str, Any]:
    row = found["call"]
    return {
        "call": {name: row[name] for name in _ROW if name in row},
        "failure": failure.to_dict() if failure else None,
        "winner": failure.rule if failure else None,
        "why": failure.why if failure else None,
        "spoke": [one.to_dict() | {"origin": origin(one.rule)} for one in failure.spoke]
        if failure
        else [],
        "attempts": [_plain(attempt) for attempt in found["attempts"]],
        "fallbacks": found["fallbacks"],
        "others": found["others"],
    }


def _plain(attempt: "AttemptRecord") -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in attempt.__slots__}  # type: ignore[attr-defined]


def _call_rows(row: Mapping[str, Any], lang: Language) -> Iterator[tuple[str, object]]:
    yield say(lang, "tool"), row["tool"]
    yield say(lang, "call_id"), f"{row['call_id']}  #{row['id']}"
    yield say(lang, "run"), row["run_id"]
    yield say(lang, "since_when"), utc(row["started"])
    yield say(lang, "duration"), f"{row['duration_ms'] / 1000:.3f} s"
    yield say(lang, "requests"), row["sent"]
    yield say(lang, "result"), named(lang, "result", "done" if row["success"] else "failed")
    yield say(lang, "stop_reason"), row["stop_reason"]
    yield say(lang, "next"), row["action"]
    yield say(lang, "degraded_to"), row["degraded_to"]
    if row["arguments"]:
        shown = json.dumps(row["arguments"], ensure_ascii=False, default=str)
        yield say(lang, "arguments"), shown[:_DETAIL]


def _evidence(failure: Failure, lang: Language) -> Iterator[tuple[str, object]]:
    kept = failure.evidence
    if kept is not None:
        yield say(lang, "message"), kept.message
        yield say(lang, "content_type"), kept.content_type
        yield say(lang, "length"), kept.length
        yield say(lang, "page"), kept.title
        yield say(lang, "snippet"), kept.snippet if kept.snippet != kept.message else None
    for name, value in (failure.details or {}).items():
        if name not in ("trail", "parts"):
            shown = (
                value
                if isinstance(value, str)
                else json.dumps(value, ensure_ascii=False, default=str)
            )
            yield name, shown[:_DETAIL]
    yield say(lang, "fingerprint"), failure.fingerprint


def _spoke(failure: Failure, lang: Language) -> object:
    names = ("rule", "code", "strength", "rule_origin")
    shown = table(*(say(lang, name) for name in names), right=(2,), whole=(0, 1, 2))
    for one in failure.spoke:
        mark = "→ " if one.rule == failure.rule else "  "
        shown.add_row(mark + clean(one.rule), one.code, str(one.strength), clean(origin(one.rule)))
    return shown


def _winner(failure: Failure, lang: Language) -> Iterator[tuple[str, object]]:
    yield say(lang, "winner"), failure.rule
    yield say(lang, "why"), failure.why
    yield say(lang, "confidence"), verdict.confidence(failure, lang)


def _attempts(attempts: "list[AttemptRecord]", lang: Language) -> object:
    columns = (
        "attempt_number",
        "attempt_start",
        "duration",
        "code",
        "status",
        "effect",
        "rule",
        "decision",
        "why",
    )
    shown = table(
        *(say(lang, column) for column in columns), right=(0, 1, 2), whole=(0, 1, 2, 3, 4)
    )
    for one in attempts:
        delay = f" ({one.delay:.3g} s)" if one.delay else ""
        shown.add_row(
            str(one.number) if one.number else "–",
            f"{one.started:.3f} s",
            f"{one.duration_ms / 1000:.3f} s",
            one.code or named(lang, "result", "done"),
            str(one.http_status or ""),
            one.effect or "",
            clean(one.failure_rule or ""),
            f"{one.action}{delay}" if one.action else "",
            clean(f"{one.reason} [{one.rule}]" if one.rule else one.reason or ""),
        )
    return shown


def origin(rule: str) -> str:
    """Where a rule comes from, by its id."""
    from failwise.classify.outputs import form_origins
    from failwise.classify.tables import text_origins

    kind, _, rest = rule.partition(".")
    match kind:
        case "text":
            return text_origins().get(rest, "")
        case "form":
            return form_origins().get(rule, "")
        case "own":
            return "a rule of your own"
        case "profile":
            return f"profile {rest.partition('.')[0]}"
        case "exception":
            return "classes and codes of exceptions"
        case "status":
            return "the HTTP status"
        case "shape" | "body" | "jsonrpc":
            return "the form of the body"
        case "advisor":
            return "the advisor"
        case "stated":
            return "the tool itself"
        case _:
            return ""
