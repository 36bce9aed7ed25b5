"""The closed vocabularies: what kind of failure, what became of the effect, who fixes it, what next."""

from enum import StrEnum


class Category(StrEnum):
    """What kind of failure it is. Each has dotted codes below it, all in the registry."""

    MODEL_OUTPUT = "model_output"
    NETWORK = "network"
    SECURITY = "security"
    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    INVALID_REQUEST = "invalid_request"
    PARSING = "parsing"
    SERVER = "server"
    BUSINESS = "business"
    TOOL = "tool"
    RUNTIME = "runtime"
    UNKNOWN = "unknown"


class Layer(StrEnum):
    """Where in the agent's stack the failure stands: follows from who was called."""

    MODEL_OUTPUT = "model_output"
    TRANSPORT = "transport"
    TOOL_EXECUTION = "tool_execution"


class Effect(StrEnum):
    """What became of the side effect: decides whether sending again is safe."""

    NOT_SENT = "not_sent"
    """The request never left, or never reached anyone who could act on it."""
    REJECTED = "rejected"
    """The upstream said no before acting."""
    UNKNOWN = "unknown"
    """It may have happened."""
    APPLIED = "applied"
    """It happened."""

    @property
    def safe(self) -> bool:
        """True when certainly nothing happened, so that sending again cannot do it twice."""
        return self is Effect.NOT_SENT or self is Effect.REJECTED

    @property
    def weight(self) -> int:
        """Order of alarm, for joining the effects of several attempts: the worst one counts."""
        return _WEIGHTS[self.value]


_WEIGHTS = {"not_sent": 0, "rejected": 1, "unknown": 2, "applied": 3}


def worst_effect(*effects: Effect) -> Effect:
    """The most alarming of several effects."""
    return max(effects, key=lambda effect: effect.weight)


class FixBy(StrEnum):
    """Who can cure it."""

    RUNTIME = "runtime"
    MODEL = "model"
    USER = "user"
    OPERATOR = "operator"
    NOBODY = "nobody"


class Action(StrEnum):
    """What to do next."""

    RETRY_BACKOFF = "retry_backoff"
    RETRY_EXACT = "retry_exact"
    """The upstream named the wait."""
    RETRY_LATER = "retry_later"
    """Not now: at `retry_at`."""
    REPAIR_ARGUMENTS = "repair_arguments"
    REFRESH_CREDENTIAL = "refresh_credential"
    VERIFY_EFFECT = "verify_effect"
    FALLBACK = "fallback"
    ASK_MODEL = "ask_model"
    ASK_USER = "ask_user"
    ABORT = "abort"


class StopReason(StrEnum):
    """Why nothing more was tried."""

    SUCCEEDED = "succeeded"
    NOT_RETRIABLE = "not_retriable"
    """No repetition cures this kind of failure."""
    UNSAFE_EFFECT = "unsafe_effect"
    """It may have happened, and sending again could do it twice."""
    RETRIES_EXHAUSTED = "retries_exhausted"
    RETRY_BUDGET = "retry_budget"
    """The shared budget of retries towards this upstream is empty."""
    WAIT_TOO_LONG = "wait_too_long"
    """The wait passes the ceiling: `retry_at` says when."""
    DEADLINE = "deadline"
    DECLINED = "declined"
    """Failwise did not send: circuit, chain, open effect, no leave of a guard."""
    CANCELLED = "cancelled"
    INVALID_ARGUMENTS = "invalid_arguments"
    SAME_FAILURE = "same_failure"
    """The same answer came twice: the form has changed, repeating will not help."""
    OBSERVED = "observed"
    """Observe mode: nothing is repeated."""


class Grade(StrEnum):
    """How sure a repair is."""

    LOSSLESS = "lossless"
    """Syntax only: no value changed."""
    UNIQUE = "unique"
    """The schema leaves exactly one reading."""
    GUESS = "guess"
    """Another reading exists: never applied without a yes."""
