"""What scripted tools raise, by the code they stand for."""

from failwise import ToolError


def connect_timeout() -> ToolError:
    return ToolError("no connection", code="network.connect_timeout", effect="not_sent")


def read_timeout() -> ToolError:
    return ToolError("no answer in time", code="network.read_timeout")


def reset() -> ToolError:
    return ToolError("reset by peer", code="network.connection_reset")


def server_error() -> ToolError:
    return ToolError("internal error", code="server.internal", http_status=500)


def too_many(told: float | None = None) -> ToolError:
    return ToolError("slow down", code="rate_limit.requests", effect="rejected", retry_after=told)


def forbidden() -> ToolError:
    return ToolError("no", code="auth.forbidden", effect="rejected", http_status=403)


def expired_token() -> ToolError:
    return ToolError("old", code="auth.credential_expired", effect="rejected", http_status=401)


def certificate_expired() -> ToolError:
    return ToolError("expired", code="security.certificate_expired", effect="not_sent")
