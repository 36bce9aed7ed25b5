"""`Evidence` → the finding that wins, or none (it was a success). The order of evidence lives here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from failwise.classify import texts
from failwise.classify.finding import PHRASE, TOKEN, Finding, strongest
from failwise.classify.markup import is_html, stream_shape, xml_shape
from failwise.classify.selection import refuse, split
from failwise.classify.shape import Shape, parsed
from failwise.classify.shapes import recognise
from failwise.classify.structure import exception_findings
from failwise.classify.tables import number_rows
from failwise.classify.text import match, words_of
from failwise.classify.verdicts import (
    PAGE_TEXT,
    bare,
    leaves,
    page_findings,
    partial,
    problem_finding,
    redirect_finding,
    shape_finding,
    stated,
    unclassified,
)
from failwise.evidence.facts import Evidence
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import Unset

if TYPE_CHECKING:
    from failwise.classify.known import KnownProviders
    from failwise.profiles.library import Profiles
    from failwise.profiles.profile import Reading

_CLEAR: Final = 80
"""From here on the structure of an exception is the verdict, and texts only make it more precise."""
_FAILED_ALONE: Final = 65
_ANSWERS: Final = frozenset({"auth", "rate_limit", "business", "invalid_request"})
"""What a service may mean by a `500` that it wrote into the body of a 200."""


@dataclass(slots=True)
class Judgement:
    """The winner, and what was considered: `spoke` are all findings, `why` the reason in words."""

    finding: Finding | None
    why: str
    shape: Shape | None = None
    reading: "Reading | None" = None
    spoke: list[Finding] = field(default_factory=list)
    evidence: Evidence | None = None


class Judge:
    """Judges one piece of evidence after another against one library of profiles."""

    def __init__(self, library: "Profiles | None") -> None:
        self._library = library

    def judge(self, evidence: Evidence, *, profile: str | None, now: float) -> Judgement:
        """The judgement of this evidence; its `finding` is None for a success."""
        if evidence.tool_error is not None:
            return Judgement(stated(evidence), "the tool spoke for itself")
        if evidence.source == "expired":
            found = Finding("expired", "network.timeout", Effect.UNKNOWN, 100, "structure")
            return Judgement(found, "the time limit passed")
        case = _Case(evidence, self._library, profile, now)
        match evidence.source:
            case "exception":
                return case.exception()
            case "response":
                return case.answer()
            case "value":
                return case.value()
            case _:
                return case.text()


class _Case:
    """One piece of evidence on its way to a judgement."""

    def __init__(
        self, evidence: Evidence, library: "Profiles | None", profile: str | None, now: float
    ) -> None:
        self.evidence = evidence
        self._library = library
        self._profile = profile or evidence.profile
        self._now = now
        self._known: KnownProviders | None = None
        self.spoke: list[Finding] = []
        self.shape: Shape | None = None
        self.reading: Reading | None = None

    # -- endings

    def _over(self, finding: Finding | None, why: str) -> Judgement:
        if finding is not None and not any(finding is one for one in self.spoke):
            self.spoke.append(finding)
        return Judgement(finding, why, self.shape, self.reading, self.spoke, self.evidence)

    def _success(self, why: str) -> Judgement:
        return self._over(None, why)

    # -- by source

    def exception(self) -> Judgement:
        """A raised exception: always a failure."""
        evidence = self.evidence
        structure = exception_findings(evidence)
        self.spoke += structure
        best = strongest(structure)
        if best is not None and best.strength >= _CLEAR:
            return self._over(self._precise(best), "the exception's own kind")
        if evidence.status is not None and evidence.status >= 400:
            return self._failed_answer(evidence.status, structure)
        self._read_shape(evidence.status)
        candidates = [*structure, *self._text_findings(self._words()), *self._rows()]
        self.spoke += candidates[len(structure) :]
        winner = strongest(candidates)
        if best is not None and winner is not None and winner.code == best.code:
            winner = best
        if winner is None or winner.strength < PHRASE // 4:
            return self._over(unclassified(), "no rule knows it")
        return self._over(winner, "the strongest rule")

    def answer(self) -> Judgement:
        """An HTTP answer."""
        status = self.evidence.status
        self._read_shape(status)
        if status is not None and status >= 400:
            return self._failed_answer(status, [])
        moved = redirect_finding(self.evidence)
        if moved is not None:
            return self._over(moved, "a redirect where an answer was due")
        return self._good_status()

    def value(self) -> Judgement:
        """What a tool returned: a failure only if it says so in a way that data does not."""
        evidence = self.evidence
        if evidence.is_error:
            return self.text(certain=True)
        if isinstance(evidence.body, Unset | str | int | float | bool | None):
            text = evidence.body if isinstance(evidence.body, str) else evidence.text
            printed = parsed(text) if text else None
            if printed is not None:
                self.shape = recognise(printed, None)
                return self._good_status()
            if text and not evidence.expects_json:
                return self._returned_text(text)
            if text and not is_html(evidence) and texts.announces_failure(text):
                return self._returned_text(text)
        self._read_shape(None)
        return self._good_status()

    def text(self, *, certain: bool = False) -> Judgement:
        """A pasted error or log line; `certain`: it was flagged as an error."""
        evidence = self.evidence
        text = evidence.text or ""
        if not certain and (
            texts.is_listing(text) or (texts.ends_well(text) and not texts.announces_failure(text))
        ):
            return self._success("a listing, or it ended well")
        self._read_shape(evidence.status if evidence.status and evidence.status >= 400 else None)
        structure = exception_findings(evidence)
        findings = [*structure, *self._text_findings(self._words()), *self._rows()]
        self.spoke += findings
        best = strongest(findings)
        status = evidence.status or (
            self.shape.status if self.shape and self.shape.failed else None
        )
        if status is not None and status >= 400:
            if (
                best is not None
                and best.strength >= 94
                and best.family != "shape"
                and best.effect is Effect.NOT_SENT
            ):
                return self._over(best, "the cause stands in the text")
            winner, why = split(evidence, status, findings, detailed=self._detailed())
            return self._over(winner, why)
        if best is not None and best.code != "unknown.unclassified":
            return self._over(best, "the strongest rule")
        if self.shape is not None and self.shape.failed:
            return self._over(shape_finding(self.shape), "the shape of the body")
        if (
            certain
            or best is not None
            or texts.speaks_of_trouble(text)
            or structure
            or evidence.exceptions
        ):
            return self._over(unclassified(), "it failed, and no rule knows how")
        return self._success("nothing in it speaks of a failure")

    # -- answers

    def _failed_answer(self, status: int, structure: list[Finding]) -> Judgement:
        """A 4xx or 5xx is a failure whatever its body says."""
        if self.shape is None:
            self._read_shape(status)
        rows = self._rows()
        findings = [*structure, *rows, *self._answer_texts()]
        self.spoke += findings
        sure = next((row for row in rows if row.strength >= TOKEN), None)
        if sure is not None:
            return self._over(sure, "the provider's table")
        winner, why = split(self.evidence, status, findings, detailed=self._detailed())
        return self._over(winner, why)

    def _good_status(self) -> Judgement:
        """A 2xx, or a value: a success, unless shape, profile or form of the body say otherwise."""
        shape = self.shape
        told = self._providers().success() if self._library is not None else None
        if shape is not None and shape.parts:
            self.spoke.append(partial(shape))
            return self._over(self.spoke[-1], "some parts of a batch failed")
        if told is True and not (
            shape is not None and shape.failed and shape.name in ("S21", "S23")
        ):
            return self._success("the provider's success test")
        page = self._page()
        if page is not None:
            return page
        if told is False or (shape is not None and shape.failed):
            return self._failed_body(shape, told)
        if shape is not None and shape.message is not None:
            findings = [row for row in self._answer_texts() if row.strength >= _FAILED_ALONE]
            best = strongest(findings)
            if best is not None and _says_so(shape, best):
                self.spoke += findings
                return self._over(best, "a body that is nothing but a message, and says so")
        problem = problem_finding(self.evidence)
        if problem is not None:
            return self._over(problem, "the body could not be used")
        return self._success("nothing marks it as a failure")

    def _failed_body(self, shape: Shape | None, told: bool | None) -> Judgement:
        rows = self._rows()
        findings = self._answer_texts()
        self.spoke += [*rows, *findings]
        best = strongest(findings)
        row = strongest(rows)
        if row is not None and (
            told is False
            or best is None
            or row.strength >= best.strength
            or row.category == best.category
        ):
            return self._over(row, "the provider's table")
        generic = shape is not None and shape.status == 500 and shape.name != "S14"
        if generic and best is not None and best.strength >= PHRASE and best.category in _ANSWERS:
            return self._over(best, "the text of a body whose 500 stands for any failure")
        if shape is not None and shape.status is not None and 400 <= shape.status <= 599:
            winner, why = split(self.evidence, shape.status, findings, detailed=True)
            return self._over(winner, f"{why}, told in the body")
        if best is not None and best.strength >= PHRASE:
            return self._over(best, "the text of a body that failed")
        if shape is not None:
            return self._over(shape_finding(shape), "the shape of the body")
        return self._over(refuse("profile.not_success", None), "the provider's success test")

    def _returned_text(self, text: str) -> Judgement:
        """Plain text from a tool: anchored, short and failing in form, or it is content."""
        from failwise.evidence import from_text

        title = self._page()
        if title is not None:
            return title
        stream = stream_shape(text)
        if stream is not None:
            self.shape = stream
            return self._failed_body(stream, None)
        if texts.is_listing(text) or texts.ends_well(text):
            return self._success("a listing, or it ended well")
        anchored = texts.announces_failure(text)
        if not anchored and not texts.has_failing_form(text):
            return self._success("text without the form of a failure")
        inner = _Case(from_text(text, now=self._now), self._library, self._profile, self._now)
        judgement = inner.text(certain=anchored)
        if (
            judgement.finding is not None
            and not anchored
            and judgement.finding.strength < _FAILED_ALONE
        ):
            return self._success("a phrase that content may hold as well")
        return judgement

    # -- parts

    def _read_shape(self, status: int | None) -> None:
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

    def _providers(self) -> "KnownProviders":
        if self._known is None:
            from failwise.classify.known import KnownProviders

            assert self._library is not None
            self._known = KnownProviders(self._library, self.evidence, self._profile)
        return self._known

    def _rows(self) -> list[Finding]:
        """Rows of profiles, the surest first; its reading is kept."""
        rows = []
        found = self._providers().findings(self._now) if self._library is not None else ()
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

    def _words(self) -> str:
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

    def _answer_texts(self) -> list[Finding]:
        """What text rules say of the code and the message of an answer; never of all its data."""
        evidence, shape = self.evidence, self.shape
        pieces = []
        if shape is not None:
            pieces = [words_of(shape.code) if shape.code else "", shape.message or ""]
        elif evidence.title:
            pieces = [evidence.title, "" if evidence.status is None else bare(evidence.text)]
        elif evidence.text and isinstance(evidence.body, Unset | str):
            pieces = [evidence.text[:PAGE_TEXT]]
        elif (
            isinstance(evidence.body, Mapping)
            and evidence.status is not None
            and evidence.status >= 400
        ):
            pieces = [leaves(evidence.body)]
        if self.reading is not None and self.reading.message:
            pieces.append(self.reading.message)
        if "www-authenticate" in evidence.headers:
            pieces.append(evidence.headers["www-authenticate"])
        return self._text_findings("\n".join(piece for piece in pieces if piece))

    def _text_findings(self, text: str) -> list[Finding]:
        return match(text) if text else []

    def _detailed(self) -> bool:
        return self.shape is not None and bool(self.shape.code or self.shape.message)

    def _precise(self, best: Finding) -> Finding:
        """Texts may make a verdict of the structure more precise, within its category."""
        if best.strength >= 92:
            return best
        same = [
            finding
            for finding in self._text_findings(self._words())
            if finding.category == best.category
            and finding.code != best.code
            and finding.strength > best.strength
        ]
        self.spoke += same
        finer = strongest(same)
        if finer is None:
            return best
        finer.family = "structure"
        if best.effect is Effect.NOT_SENT:
            finer.effect = Effect.NOT_SENT
        return finer

    def _page(self) -> Judgement | None:
        """A page under a 2xx that says it is a challenge or a maintenance notice."""
        found = page_findings(self.evidence)
        best = strongest(found)
        if best is None:
            return None
        self.spoke += found
        return self._over(best, "a page in place of the answer")


def _says_so(shape: Shape, finding: Finding) -> bool:
    """The sentence is the failure: a rule of full strength, or one that speaks at its beginning."""
    return shape.failed is not False and (finding.strength >= 85 or finding.position < 40)
