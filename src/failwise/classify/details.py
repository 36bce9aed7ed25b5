"""The facts of a failure by kind: certificate, violations, phase and limit, expected and got, parts."""

from typing import Any, Final

from failwise.classify.case import Judgement
from failwise.classify.confidence import described
from failwise.classify.finding import Finding
from failwise.classify.once import Border
from failwise.classify.outputs import form_origins
from failwise.classify.tables import text_origins
from failwise.classify.violations import violations
from failwise.evidence.facts import Evidence
from failwise.vocabulary.records import UNSET, Unset

_PART_LIMIT: Final = 300
_PARTS: Final = 20
_ABOUT_ARGUMENTS: Final = frozenset({"invalid_request", "model_output"})


def details_of(evidence: Evidence, judgement: Judgement, redactor: Border) -> dict[str, Any]:
    """Plain, redacted facts; only what is known is there."""
    finding = judgement.finding
    assert finding is not None
    facts: dict[str, Any] = {}
    if evidence.tool_error is not None and evidence.tool_error.details:
        facts.update(redactor.data(dict(evidence.tool_error.details)))
    if evidence.tls and finding.category in ("security", "network"):
        facts["certificate"] = dict(evidence.tls)
    if finding.category in _ABOUT_ARGUMENTS or finding.code == "business.refused":
        _add_violations(facts, evidence, judgement, redactor)
    if evidence.phase is not None and finding.category in ("network", "security"):
        facts["phase"] = evidence.phase
    if evidence.limit is not None and finding.category == "network":
        facts["limit"] = evidence.limit
    if evidence.host and finding.category in ("network", "security"):
        facts["host"] = evidence.host
    if finding.category == "parsing":
        _add_parsing(facts, evidence)
    if evidence.parts:
        facts["parts"] = {
            name: redactor.text(text)[:_PART_LIMIT] for name, text in evidence.parts.items() if text
        }
    if judgement.shape is not None and judgement.shape.parts:
        facts["failed_parts"] = redactor.data(judgement.shape.parts[:_PARTS])
    if (
        finding.rule.startswith("shape.")
        and finding.code == "business.refused"
        and finding.provider_code
    ):
        facts["meaning_unknown"] = "the provider's code is not in any table"
    if judgement.reading is not None and judgement.reading.link:
        facts["link"] = redactor.text(judgement.reading.link)[:_PART_LIMIT]
    return facts


def _add_violations(
    facts: dict[str, Any], evidence: Evidence, judgement: Judgement, redactor: Border
) -> None:
    shape = judgement.shape
    message = shape.message if shape is not None and shape.message else None
    if message is None:
        message = evidence.parts.get("message") or evidence.text
        if evidence.exceptions and evidence.source == "exception":
            message = "\n".join(fact.text for fact in evidence.exceptions[:3])
    body = None if isinstance(evidence.body, Unset) else evidence.body
    found = violations(body, message)
    parameter = shape.parameter if shape is not None else None
    if not found and parameter:
        found = [{"parameter": parameter, "rule": "invalid"}]
    if found:
        facts["violations"] = [_hidden(row, redactor) for row in redactor.data(found)]


def _hidden(row: dict[str, Any], redactor: Border) -> dict[str, Any]:
    """A violation without the value of a parameter that holds a secret."""
    if row.get("got") is None:
        return row
    leaf = str(row.get("parameter") or "").rpartition(".")[2]
    got = redactor.named(leaf, row["got"])
    if got == row["got"]:
        return row
    message = row.get("message")
    told = {"message": message.replace(str(row["got"]), str(got))} if message else {}
    return {**row, "got": got, **told}


def _add_parsing(facts: dict[str, Any], evidence: Evidence) -> None:
    facts["expected"] = (
        "no page" if evidence.asked == "data" and not evidence.expects_json else "JSON"
    )
    content_type = (evidence.content_type or "").partition(";")[0].strip()
    facts["got"] = content_type or (evidence.problem or "text")
    for name in ("content_type", "length_told", "length_got", "position"):
        value = getattr(evidence, name)
        if value is not None:
            facts[name] = value


def trail_of(evidence: Evidence, judgement: Judgement, redactor: Border) -> dict[str, Any]:
    """The evidence found, the rules that spoke, which one won, and why."""
    seen: dict[str, Any] = {"source": evidence.source}
    for name in ("status", "phase", "host", "content_type", "problem", "limit", "is_error"):
        value = getattr(evidence, name)
        if value not in (None, False):
            seen[name] = value
    if evidence.exceptions:
        seen["exceptions"] = [fact.name for fact in evidence.exceptions]
    if evidence.body is not UNSET and judgement.shape is not None:
        seen["shape"] = judgement.shape.name
        seen["code"] = judgement.shape.code
    if evidence.waits:
        seen["waits"] = [
            {"seconds": wait.seconds, "source": wait.source} for wait in evidence.waits
        ]
    spoke = sorted(judgement.spoke, key=lambda finding: finding.order, reverse=True)
    winner = judgement.finding
    return {
        "evidence": redactor.data(seen),
        "spoke": [
            {
                "rule": finding.rule,
                "code": finding.code,
                "strength": finding.strength,
                "family": finding.family,
                "origin": _origin(finding),
            }
            for finding in spoke[:_PARTS]
        ],
        "winner": winner.rule if winner else None,
        "why": judgement.why,
        "measured": described(winner) if winner else None,
    }


_ORIGINS: Final = {
    "stated": "the tool itself",
    "structure": "classes and codes of exceptions",
    "shape": "the form of the body",
    "status": "the HTTP status",
    "none": "no rule",
}


def _origin(finding: Finding) -> str:
    """Where the rule comes from: a profile by its id, a text rule by its own words."""
    if finding.family == "profile":
        return f"profile {finding.provider}"
    if finding.rule.startswith("own."):
        return "a rule of your own"
    if finding.family == "text":
        rule = finding.rule
        origin = text_origins().get(rule.removeprefix("text.")) or form_origins().get(rule)
        return origin or "text"
    return _ORIGINS[finding.family]
