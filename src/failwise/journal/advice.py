"""What an advisor was asked and said, by fingerprint: one question for all processes of a journal.

Only portable SQL over a `Source`: whatever keeps the table ``advice`` can keep advice.
"""

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from failwise.vocabulary.records import record

if TYPE_CHECKING:
    from failwise.classify.advisor import Question
    from failwise.journal.reader import Source

TABLE: Final = (
    "CREATE TABLE advice (fingerprint TEXT PRIMARY KEY, code TEXT, message TEXT NOT NULL,"
    " tool TEXT NOT NULL, provider TEXT, advisor TEXT NOT NULL, asker TEXT NOT NULL,"
    " at REAL NOT NULL, answered_at REAL, accepted INTEGER) WITHOUT ROWID",
    "CREATE INDEX advice_by_time ON advice (at)",
)
"""The migration that makes the table in SQLite."""

STALE: Final = 3_600.0
"""Seconds after which a question that nobody answered may be asked again: its asker is gone."""
KEPT_DAYS: Final = 180
"""Days after which a question that no person judged is forgotten."""
_TEXT: Final = 300
_NAME: Final = 200
_COLUMNS: Final = "fingerprint, code, message, tool, provider, advisor, at, answered_at, accepted"


@record
class Advice:
    """One question and its answer (`code`, None for no opinion or none yet).

    `message` is redacted; `at` and `answered_at` in epoch seconds. `accepted`: a person made a rule
    of it (True), or refused it (False: it labels nothing any more).
    """

    fingerprint: str
    code: str | None
    message: str
    tool: str
    provider: str | None
    advisor: str
    at: float
    answered_at: float | None
    accepted: bool | None


class AdviceBook:
    """The advice of a journal: an advisor's memory, and what people see and judge.

    `now` gives epoch seconds. Everything may block, and raises what the journal raises.
    """

    def __init__(self, source: "Source", now: Callable[[], float] = time.time) -> None:
        self._source = source
        self._now = now

    def ask_advice(self, question: "Question") -> tuple[bool, str | None]:
        """Whether somebody has asked this already, and the answer. Whoever is told no asks now: of
        several processes that come at once, one."""
        now, asker = self._now(), secrets.token_hex(8)
        name = question.fingerprint
        values = (
            name,
            _storable(question.message)[:_TEXT],
            _storable(question.tool)[:_NAME],
            None if question.provider is None else _storable(question.provider)[:_NAME],
            _storable(question.advisor)[:_NAME],
            asker,
            now,
        )
        self._source.write(
            (
                (
                    "INSERT INTO advice (fingerprint, message, tool, provider, advisor, asker, at)"
                    " VALUES (?,?,?,?,?,?,?) ON CONFLICT (fingerprint) DO NOTHING",
                    values,
                ),
                (
                    "UPDATE advice SET asker=?, at=?"
                    " WHERE fingerprint=? AND answered_at IS NULL AND at<?",
                    (asker, now, name, now - STALE),
                ),
                (
                    "DELETE FROM advice WHERE at<? AND accepted IS NULL",
                    (now - KEPT_DAYS * 86_400,),
                ),
            )
        )
        found = self._source.rows(
            "SELECT asker, code, accepted FROM advice WHERE fingerprint=?", (name,)
        )
        if not found or found[0]["asker"] == asker:
            return False, None
        return True, None if found[0]["accepted"] == 0 else found[0]["code"]

    def advise(self, fingerprint: str, code: str | None) -> None:
        """Keep an answer; None is "no opinion"."""
        self._source.write(
            (
                (
                    "UPDATE advice SET code=?, answered_at=? WHERE fingerprint=?",
                    (code, self._now(), fingerprint),
                ),
            )
        )

    def kept_advice(self, limit: int) -> list[tuple[str, str | None]]:
        """What was answered of late, the newest first: fingerprint and code (None: it labels nothing)."""
        found = self._source.rows(
            "SELECT fingerprint, code, accepted FROM advice WHERE answered_at IS NOT NULL"
            " ORDER BY at DESC LIMIT ?",
            (limit,),
        )
        return [
            (row["fingerprint"], None if row["accepted"] == 0 else row["code"]) for row in found
        ]

    def judge(self, fingerprint: str, *, accepted: bool) -> Advice | None:
        """Note a person's word about an answer; gives it as it was, None where there is none."""
        found = self.advice(fingerprint)
        if found is not None:
            self._source.write(
                (
                    (
                        "UPDATE advice SET accepted=? WHERE fingerprint=?",
                        (int(accepted), fingerprint),
                    ),
                )
            )
        return found

    def advice(self, fingerprint: str) -> Advice | None:
        """What was asked and said about a fingerprint."""
        found = self._source.rows(
            f"SELECT {_COLUMNS} FROM advice WHERE fingerprint=?",  # noqa: S608 (constants only)
            (fingerprint,),
        )
        return _advice(found[0]) if found else None

    def listed(self, *, limit: int = 10_000) -> list[Advice]:
        """Questions and answers, the newest first."""
        found = self._source.rows(
            f"SELECT {_COLUMNS} FROM advice ORDER BY at DESC LIMIT ?",  # noqa: S608
            (limit,),
        )
        return [_advice(row) for row in found]


def _advice(row: Any) -> Advice:
    values = {name: row[name] for name in _COLUMNS.split(", ")}
    accepted = values["accepted"]
    return Advice(**values | {"accepted": None if accepted is None else bool(accepted)})


def _storable(text: str) -> str:
    """A lone surrogate is no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
