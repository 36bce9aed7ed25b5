"""`Case`: one piece of evidence on its way to a judgement, and what can be asked about it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from failwise.classify.batches import lines_shape
from failwise.classify.finding import PHRASE, TOKEN, Finding, Said, spoken, strongest
from failwise.classify.known import KnownProviders
from failwise.classify.markup import stream_shape, xml_shape
from failwise.classify.selection import refined, split
from failwise.classify.shape import Shape
from failwise.classify.shapes import recognise
from failwise.classify.tables import number_rows
from failwise.classify.text import match, said, stems, words_of
from failwise.classify.verdicts import PAGE_TEXT, bare, leaves, page_findings
from failwise.evidence.facts import Evidence
from failwise.vocabulary.records import MAPPING, Unset

if TYPE_CHECKING:
    from failwise.profiles.library import Profiles
    from failwise.profiles.profile import Reading

_PLAIN: Final = 70


@dataclass(slots=True)
class Judgement:
    """The winner, and what was considered: `heard` are all findings, `why` the reason in words."""

    finding: Finding | None
    why: str
    shape: Shape | None = None
    reading: "Reading | None" = None
    heard: list[Finding | Said] = field(default_factory=list)
    evidence: Evidence | None = None

    @property
    def spoke(self) -> list[Finding]:
        """All findings, those too that were not asked for yet."""
        return spoken(self.heard)


class Case:
    """One piece of evidence on its way to a judgement."""

    __slots__ = ("_known", "evidence", "library", "now", "profile", "reading", "shape", "spoke")

    def __init__(
        self, evidence: Evidence, library: "Profiles | None", profile: str | None, now: float
    ) -> None:
        self.evidence = evidence
        self.library = library
        self.profile = profile or evidence.profile
        self.now = now
        self._known: KnownProviders | None = None
        self.spoke: list[Finding | Said] = []
        self.shape: Shape | None = None
        self.reading: Reading | None = None

    # -- endings

    def over(self, finding: Finding | None, why: str) -> Judgement:
        if finding is not None and not _is_among(finding, self.spoke):
            self.spoke.append(finding)
        return Judgement(finding, why, self.shape, self.reading, self.spoke, self.evidence)

    def success(self, why: str) -> Judgement:
        return self.over(None, why)

    def failed_answer(self, status: int, structure: list[Finding]) -> Judgement:
        """A 4xx or 5xx is a failure whatever its body says."""
        if self.shape is None:
            self.read_shape(status)
        rows = self.rows()
        if not rows and not (self.shape is not None and self.shape.code and self.shape.message):
            self.shape = self._located_shape() or self.shape
        findings: list[Finding | Said] = [*structure, *rows, *self.said(self.answer_words())]
        self.spoke += findings
        sure = next((row for row in rows if row.strength >= TOKEN), None)
        if sure is not None:
            return self.over(sure, "the provider's table")
        if status == 500 and self.shape is not None and self.shape.name == "S15":
            status = self.shape.status or status  # a fault of the sender's
        winner, why = split(self.evidence, status, findings, detailed=self.detailed())
        finer = refined(status, why, self.rough_findings)
        if finer is not None:
            return self.over(finer, "what the body of a refusal is about")
        return self.over(winner, why)

    # -- parts

    def read_shape(self, status: int | None) -> None:
        evidence = self.evidence
        if not isinstance(evidence.body, Unset):
            self.shape = recognise(evidence.body, status)
        elif evidence.text and evidence.source != "text":
            kind = evidence.content_type or ""
            self.shape = xml_shape(evidence.text) or (
                stream_shape(evidence.text)
                if "event-stream" in kind or evidence.text.startswith(("event:", "data:"))
                else None
            )
            if self.shape is None and evidence.text.startswith("{"):
                self.shape = lines_shape(evidence.text)

    def _located_shape(self) -> Shape | None:
        """What stands where a profile of the user's own says that refusals speak."""
        found = self.providers().located(self.now) if self.library is not None else None
        if found is None:
            return None
        parameter = found.params[0] if found.params else None
        name = f"profile.{found.profile}"
        return Shape(name, None, found.code, found.message, parameter, found.request_id)

    def providers(self) -> "KnownProviders":
        if self._known is None:
            assert self.library is not None
            self._known = KnownProviders(self.library, self.evidence, self.profile)
        return self._known

    def rows(self) -> list[Finding]:
        """Rows of profiles, the surest first; its reading is kept."""
        rows = []
        found = self.providers().findings(self.now) if self.library is not None else ()
        for finding, reading in found:
            if self.reading is None:
                self.reading = reading
            rows.append(finding)
        if self.shape is not None and self.shape.name == "S17" and self.shape.code:
            row = number_rows("jsonrpc").get(self.shape.code)
            if row is not None:
                rows.append(
                    Finding(f"jsonrpc.{self.shape.code}", row.code, row.effect, PHRASE, "shape")
                )
        return rows

    def words(self) -> str:
        """All the text there is, with the code of the body spelled out."""
        shape = self.shape
        spoken = self.evidence.text or " ".join(fact.text for fact in self.evidence.exceptions)
        if self.evidence.source == "exception":
            # A class of known kind has spoken through its kind; only an unknown one is read as words.
            lines = [
                fact.text if fact.kind else f"{fact.name}: {fact.text}"
                for fact in self.evidence.exceptions
            ]
            spoken = "\n".join(line for line in lines if line) or spoken
        return f"{spoken}\n{words_of(shape.code)}" if shape is not None and shape.code else spoken

    def answer_texts(self) -> list[Finding]:
        """What text rules say of the code and the message of an answer; never of all its data."""
        return self.text_findings(self.answer_words())

    def rough_findings(self) -> list[Finding]:
        """What all texts of a refusal say, and if they say nothing, what it is roughly about."""
        body = self.evidence.body
        if isinstance(body, MAPPING):
            found = self.text_findings(leaves(body))
            found = [one for one in found if one.strength >= _PLAIN]
            if found:
                return found
        return stems(self.answer_words())

    def answer_words(self) -> str:
        """The code and the message of an answer, or the words of its page."""
        evidence, shape = self.evidence, self.shape
        pieces = []
        if shape is not None:
            message = shape.message or ""
            if message and " " not in message and message.isascii():
                message = words_of(message)
            pieces = [words_of(shape.code) if shape.code else "", message]
        elif evidence.title:
            pieces = [evidence.title, "" if evidence.status is None else bare(evidence.text)]
        elif evidence.text and isinstance(evidence.body, (Unset, str)):
            pieces = [evidence.text[:PAGE_TEXT]]
        elif (
            isinstance(evidence.body, MAPPING)
            and evidence.status is not None
            and evidence.status >= 400
        ):
            pieces = [leaves(evidence.body)]
        if self.reading is not None and self.reading.message:
            pieces.append(self.reading.message)
        if "www-authenticate" in evidence.headers:
            pieces.append(evidence.headers["www-authenticate"])
        return "\n".join(piece for piece in pieces if piece)

    def said(self, text: str) -> list[Said]:
        """What text rules say of it, of which only so much is looked for as decides."""
        return said(text) if text else []

    def text_findings(self, text: str) -> list[Finding]:
        return match(text) if text else []

    def detailed(self) -> bool:
        return self.shape is not None and bool(self.shape.code or self.shape.message)

    def page(self) -> Judgement | None:
        """A page under a 2xx that says it is a challenge or a maintenance notice."""
        found = page_findings(self.evidence)
        best = strongest(found)
        if best is None:
            return None
        self.spoke += found
        return self.over(best, "a page in place of the answer")


def _is_among(finding: Finding, spoke: list[Finding | Said]) -> bool:
    return any(one is finding or (isinstance(one, Said) and one.holds(finding)) for one in spoke)
