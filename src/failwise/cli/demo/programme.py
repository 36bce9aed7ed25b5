"""The programme of the demonstration: its scenes in order."""

from failwise.cli.demo import arguments, effects, trust, upstream
from failwise.cli.demo.scene import Scene

SCENES: tuple[Scene, ...] = (
    upstream.BAD_GATEWAY,
    upstream.TOLD_WAITS,
    upstream.QUOTA,
    trust.EXPIRED,
    trust.WRONG_HOST,
    trust.REFRESH,
    trust.FORBIDDEN,
    arguments.HINT,
    arguments.BROKEN_JSON,
    arguments.UNKNOWN_TOOL,
    arguments.NEAR_VALUES,
    effects.BALANCE,
    upstream.BODIES,
    upstream.SLOW_READ,
    effects.ORDER_LOST,
    effects.ORDER_REPEATED,
    upstream.REFUSED,
    upstream.FALLBACK,
    upstream.OUTAGE,
)
