"""`Failure`: what went wrong, as data."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, Layer
from failwise.vocabulary.records import Deferred, record


@record
class Excerpt:
    """What the upstream really said: redacted and bounded: kept with the failure for a person.

    `message` at most 300 characters, `snippet` (first characters of the body) at most 500.
    `content_type` as sent, `length` of the body in bytes, `title` of an HTML page.
    """

    message: str = ""
    content_type: str | None = None
    length: int | None = None
    snippet: str | None = None
    title: str | None = None


@record
class Spoke:
    """One rule that spoke of the evidence: what it would have called it, and its strength (1 to 100)."""

    rule: str
    code: str
    strength: int

    def to_dict(self) -> dict[str, Any]:
        return {"rule": self.rule, "code": self.code, "strength": self.strength}


_ABOUT_PARAMETERS = ("invalid_request.parameter", "invalid_request.missing_parameter")


@record
class Failure(Deferred):
    """One failure: what kind, whether the effect may have happened, who can fix it and how.

    Texts are redacted. `retry_after` is the wait the upstream told, in seconds. `details` holds
    facts by kind: ``certificate`` (host, not_before, not_after, names, issuer, self_signed, ...),
    ``violations`` (list of {parameter, rule, ...}), ``phase`` and ``limit`` of a timeout,
    ``expected``/``got`` of a parse, ``trail`` on demand. `meaning` and `remedy` hold a sentence per
    language (``en``, ``zh``), from the provider's table or the registry of codes. `confidence` is
    the measured precision of `rule`, on `samples` cases; nothing branches on it. `why` says in a few
    words why this rule won over the others that `spoke` (the strongest eight). `exception` is the
    live one, and is never serialised.
    """

    category: Category
    code: str
    message: str = ""
    effect: Effect = Effect.UNKNOWN
    transient: bool | None = None
    fix_by: FixBy = FixBy.MODEL
    layer: Layer = Layer.TOOL_EXECUTION
    remedies: Mapping[str, str] | None = None
    meaning: Mapping[str, str] | None = None
    likely_causes: tuple[str, ...] = ()
    advice: Action | None = None
    http_status: int | None = None
    retry_after: float | None = None
    provider: str | None = None
    provider_code: str | None = None
    request_id: str | None = None
    details: Mapping[str, Any] | None = None
    confidence: float = 0.5
    samples: int = 0
    rule: str = ""
    why: str = ""
    spoke: tuple[Spoke, ...] = ()
    fingerprint: str = ""
    evidence: Excerpt | None = None
    exception: BaseException | None = None
    raw: str | None = field(default=None, repr=False, compare=False)
    """The text of the whole answer, held only for a journal that keeps raw answers; never in
    `to_dict()`."""

    @property
    def remedy(self) -> str:
        """One sentence for whoever `fix_by` names, in English; `words.remedy` has other languages."""
        from failwise.vocabulary.words import remedy

        return remedy(self, "en")

    @property
    def refuses_parameters(self) -> bool:
        """The upstream refused what was sent, not the request as such."""
        return self.category is Category.INVALID_REQUEST and (
            self.code in _ABOUT_PARAMETERS or bool(self.detail("violations"))
        )

    def detail(self, name: str) -> Any:
        """One of `details`, or None."""
        return self.details.get(name) if self.details else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; the live exception stays behind."""
        data: dict[str, Any] = {
            "category": self.category.value,
            "code": self.code,
            "message": self.message,
            "effect": self.effect.value,
            "transient": self.transient,
            "fix_by": self.fix_by.value,
            "layer": self.layer.value,
            "remedy": self.remedy,
            "confidence": self.confidence,
            "samples": self.samples,
            "rule": self.rule,
            "why": self.why,
            "spoke": [one.to_dict() for one in self.spoke],
            "fingerprint": self.fingerprint,
        }
        for name in (
            "http_status",
            "retry_after",
            "provider",
            "provider_code",
            "request_id",
        ):
            data[name] = getattr(self, name)
        data["advice"] = self.advice.value if self.advice else None
        data["likely_causes"] = list(self.likely_causes)
        data["remedies"] = dict(self.remedies) if self.remedies else None
        data["meaning"] = dict(self.meaning) if self.meaning else None
        data["details"] = dict(self.details) if self.details else {}
        data["evidence"] = (
            {f.name: getattr(self.evidence, f.name) for f in fields(self.evidence)}
            if self.evidence
            else None
        )
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Failure":
        """The record again, from `to_dict()`; unknown keys are ignored."""
        evidence = data.get("evidence")
        advice = data.get("advice")
        return cls(
            category=Category(data["category"]),
            code=data["code"],
            message=data.get("message", ""),
            effect=Effect(data.get("effect", "unknown")),
            transient=data.get("transient"),
            fix_by=FixBy(data.get("fix_by", "model")),
            layer=Layer(data.get("layer", "tool_execution")),
            remedies=data.get("remedies"),
            meaning=data.get("meaning"),
            likely_causes=tuple(data.get("likely_causes") or ()),
            advice=Action(advice) if advice else None,
            http_status=data.get("http_status"),
            retry_after=data.get("retry_after"),
            provider=data.get("provider"),
            provider_code=data.get("provider_code"),
            request_id=data.get("request_id"),
            details=data.get("details") or None,
            confidence=data.get("confidence", 0.5),
            samples=data.get("samples", 0),
            rule=data.get("rule", ""),
            why=data.get("why", ""),
            spoke=tuple(Spoke(**one) for one in data.get("spoke") or ()),
            fingerprint=data.get("fingerprint", ""),
            evidence=Excerpt(**evidence) if evidence else None,
        )
