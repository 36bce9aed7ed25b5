"""Exceptions → findings: machine codes first, then the kind of class, the deepest cause last."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from failwise.classify.finding import PHRASE, Finding
from failwise.classify.tables import KindRow, kind_rows, number_rows
from failwise.evidence.facts import Evidence, ExceptionFact
from failwise.vocabulary.kinds import Effect

_NOT_SENT: Final = frozenset({"config", "pool", "dns", "proxy", "connect", "tls"})
_SENT: Final = frozenset({"write", "read", "body"})
_VAGUE_PENALTY: Final = 20
_CODES: Final = (("code", "jsonrpc", 84), ("close_code", "close", 88))
"""Attributes that hold a machine code: their table in kinds.toml, and the strength of its rows."""
_CODED: Final = frozenset({"verify_code", "sqlstate", "grpc_status", "code", "close_code"})
_ANY_FAILURE: Final = frozenset({"-32603", "-32000"})
"""Numbers that tool servers give to whatever failed behind them: the words beside them know better."""
_PASSING_DNS: Final = frozenset({"EAI_AGAIN", "ETIMEDOUT"})
_LASTING_DNS: Final = frozenset(
    {"EAI_NONAME", "EAI_NODATA", "EAI_FAIL", "ENOTFOUND", "EHOSTNOTFOUND"}
)


def exception_findings(evidence: Evidence) -> list[Finding]:
    """What the exceptions of a chain say, one finding for each that is known."""
    findings: list[Finding] = []
    for depth, fact in enumerate(evidence.exceptions):
        if not _CODED.isdisjoint(fact.attributes):
            findings += _of_codes(fact, depth, evidence)
        kind = kind_rows().get(fact.kind) if fact.kind else None
        if kind is not None:
            findings.append(_of_kind(fact, kind, depth, evidence))
    return findings


def _of_codes(fact: ExceptionFact, depth: int, evidence: Evidence) -> Iterator[Finding]:
    attributes = fact.attributes
    verify = attributes.get("verify_code")
    row = number_rows("verify").get(str(verify)) if verify is not None else None
    if row is not None:
        code = _issuer_code(row.code, evidence)
        yield Finding(
            f"exception.verify.{verify}", code, row.effect, 96, "structure", position=depth
        )
    state = attributes.get("sqlstate")
    if isinstance(state, str) and len(state) == 5:
        states = number_rows("sqlstate")
        row = states.get(state) or states.get(state[:2])
        if row is not None:
            rule = f"exception.sqlstate.{state}"
            yield Finding(
                rule, row.code, row.effect, 94, "structure", provider_code=state, position=depth
            )
    grpc = str(attributes.get("grpc_status", "")).rpartition(".")[2].upper()
    row = number_rows("grpc").get(grpc) if grpc else None
    if row is not None:
        yield Finding(
            f"exception.grpc.{grpc}", row.code, row.effect, 84, "structure",
            provider_code=grpc, position=depth,
        )  # fmt: skip
    for name, table, strength in _CODES:
        number = attributes.get(name)
        row = number_rows(table).get(str(number)) if number is not None else None
        if row is not None and (name != "code" or fact.kind == "jsonrpc"):
            sure = strength if str(number) not in _ANY_FAILURE else PHRASE - 1
            yield Finding(
                f"exception.{table}.{number}", row.code, row.effect, sure, "structure",
                provider_code=str(number), position=depth,
            )  # fmt: skip


def _issuer_code(code: str, evidence: Evidence) -> str:
    """OpenSSL says the same of an unknown root and of an intermediate that was not sent: where the
    chain that came was kept, it tells them apart."""
    if code not in _ISSUER:
        return code
    facts = evidence.tls or {}
    if not facts.get("chain"):
        return code
    from failwise.evidence.tls_labels import words_of

    told = words_of(facts).code
    return told if told in _ISSUER else code


_ISSUER: Final = frozenset(
    {"security.unknown_issuer", "security.incomplete_chain", "security.self_signed"}
)


def _of_kind(fact: ExceptionFact, row: KindRow, depth: int, evidence: Evidence) -> Finding:
    phase = fact.phase if fact.phase not in (None, "any") else evidence.phase
    if evidence.phase in _NOT_SENT and phase in _SENT:
        phase = evidence.phase  # the whole chain, with its traceback, knows better than one class
    code = row.phases.get(phase or "", row.code)
    strength = row.strength
    if row.phases and phase in (None, "any"):
        strength -= _VAGUE_PENALTY
    transient = row.transient
    if code == "network.dns":
        transient = _dns_passes(fact.attributes, fact.text)
    return Finding(
        f"exception.{fact.name}",
        code,
        effect_of(evidence, phase, row.effect),
        strength,
        "structure",
        transient,
        position=depth,
    )


def _dns_passes(attributes: Mapping[str, Any], text: str) -> bool | None:
    """A resolver that failed for now passes; a name that does not exist stays."""
    symbol = str(attributes.get("symbol", ""))
    if symbol in _LASTING_DNS:
        return False
    if symbol in _PASSING_DNS:
        return True
    lowered = text.lower()
    if "not known" in lowered or "no address" in lowered or "nodename" in lowered:
        return False
    return None


def effect_of(evidence: Evidence, phase: str | None, default: Effect) -> Effect:
    """What became of the effect, by the phase it broke in; `default` where no phase is known."""
    if phase in _NOT_SENT:
        return Effect.NOT_SENT
    if phase in _SENT:
        return Effect.UNKNOWN
    if phase == "decode" and evidence.status is not None and 200 <= evidence.status < 300:
        return Effect.APPLIED
    return default
