"""The results that the golden files render: one of each kind a model or a person meets."""

from typing import Any

from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, Grade, StopReason
from failwise.vocabulary.result import Attempt, Repair, ToolResult


def failure(code: str, **facts: Any) -> Failure:
    """A failure of that code; its category follows from it."""
    return Failure(Category(code.partition(".")[0]), code, **facts)


def failed(tool: str, last: Failure, sent: int = 1, **facts: Any) -> ToolResult[Any]:
    """A failed result that met the same failure `sent` times, unless `attempts` says otherwise."""
    attempts = tuple(Attempt(number, number * 1.0, 20.0, last) for number in range(1, sent + 1))
    facts.setdefault("attempts", attempts)
    return ToolResult(tool, False, failure=last, **facts)


def _read(**facts: Any) -> dict[str, Any]:
    return {"read_only": True, **facts}


BAD_GATEWAY = failure(
    "network.bad_gateway",
    message="<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway nginx</body></html>",
    http_status=502,
    transient=True,
    details=_read(fallbacks_left=["search_cache"]),
    evidence=Excerpt(title="502 Bad Gateway", content_type="text/html", length=552),
)
THREE_KINDS = (
    failure("network.read_timeout", details=_read(limit=10.0)),
    BAD_GATEWAY,
    failure(
        "parsing.html_instead_of_json",
        http_status=200,
        message="Sign in",
        fix_by=FixBy.OPERATOR,
        details=_read(fallbacks_left=["search_cache"]),
    ),
)
RESULTS: dict[str, ToolResult[Any]] = {
    "bad_gateway_read": failed("search_products", BAD_GATEWAY, 4, suggested_action=Action.RETRY_BACKOFF, stop_reason=StopReason.RETRIES_EXHAUSTED),
    "three_kinds": failed(
        "search_products",
        THREE_KINDS[2],
        attempts=tuple(Attempt(number, number * 1.0, 20.0, item) for number, item in enumerate(THREE_KINDS, 1)),
        suggested_action=Action.ASK_MODEL,
        stop_reason=StopReason.RETRIES_EXHAUSTED,
    ),
    "unknown_effect_write": failed(
        "create_order",
        failure("network.read_timeout", transient=True, fix_by=FixBy.RUNTIME, details={"read_only": False, "limit": 10.0, "fallbacks_left": ["order_by_mail"]}),
        suggested_action=Action.RETRY_BACKOFF,
        stop_reason=StopReason.UNSAFE_EFFECT,
    ),
    "applied": failed("create_order", failure("parsing.truncated", http_status=201, effect=Effect.APPLIED), suggested_action=Action.VERIFY_EFFECT),
    "rate_limit_told": failed(
        "search_products",
        failure("rate_limit.requests", http_status=429, effect=Effect.REJECTED, transient=True, fix_by=FixBy.RUNTIME, retry_after=120.0, message="Too many requests"),
        suggested_action=Action.RETRY_LATER,
        retry_at=1796065320.0,
        stop_reason=StopReason.WAIT_TOO_LONG,
    ),
    "schema_violation": failed(
        "search_products",
        failure(
            "model_output.schema_violation",
            effect=Effect.NOT_SENT,
            transient=False,
            details={
                "violations": [
                    {"parameter": "limit", "path": "/limit", "rule": "type", "text": {"en": "must be integer, not \"many\"", "zh": "应为整数，而不是 \"many\""}},
                    {"parameter": "items[0].sku", "path": "/items/0/sku", "rule": "required", "text": {"en": "is missing", "zh": "缺失"}},
                ]
            },
        ),
        attempts=(),
        suggested_action=Action.ASK_MODEL,
    ),
    "unknown_tool": failed(
        "serch_products",
        failure("model_output.unknown_tool", effect=Effect.NOT_SENT, transient=False, details={"tools": ["search_products", "create_order"], "nearest": ["search_products"]}),
        attempts=(),
        suggested_action=Action.ASK_MODEL,
    ),
    "expired_certificate": failed(
        "get_weather",
        failure(
            "security.certificate_expired",
            effect=Effect.NOT_SENT,
            transient=False,
            fix_by=FixBy.OPERATOR,
            message="certificate verify failed: certificate has expired",
            details=_read(certificate={"host": "api.example", "not_after": "2026-11-02T00:00:00+00:00", "names": ["api.example"], "self_signed": False}),
        ),
        suggested_action=Action.ABORT,
    ),
    "forbidden_interrupts": failed(
        "delete_user", failure("auth.forbidden", http_status=403, effect=Effect.REJECTED, transient=False, fix_by=FixBy.OPERATOR), suggested_action=Action.ABORT, interrupts=True
    ),
    "chain_aborted": failed(
        "list_orders",
        failure("runtime.chain_aborted", effect=Effect.NOT_SENT, transient=False, fix_by=FixBy.OPERATOR, details={"cause": {"tool": "delete_user", "code": "auth.forbidden"}}),
        attempts=(),
        suggested_action=Action.ABORT,
        stop_reason=StopReason.DECLINED,
    ),
    "insufficient_balance": failed(
        "pay",
        failure("business.insufficient_balance", http_status=200, effect=Effect.REJECTED, transient=False, fix_by=FixBy.USER, message="余额不足", provider_code="40163"),
        suggested_action=Action.ASK_USER,
    ),
    "provider_words": failed(
        "pay",
        failure(
            "business.seat_taken",
            effect=Effect.REJECTED,
            transient=False,
            meaning={"en": "The seat is taken", "zh": "座位已被占用"},
            remedies={"en": "Choose another seat.", "zh": "请选择其他座位。"},
        ),
        suggested_action=Action.ASK_MODEL,
    ),
    "success": ToolResult("search_products", True, [{"name": "鞋", "price": 500}]),
    "success_repaired": ToolResult("search_products", True, {"total": 1}, repairs=(Repair("number_as_text", "/limit", "5", 5, Grade.LOSSLESS),)),
    "success_degraded": ToolResult("search_products", True, {"total": 1}, degraded_to="search_cache", extra={"age_s": 7300}),
    "success_verified": ToolResult("create_order", True, {"id": 7}, verified=True),
}  # fmt: skip
