"""httpx2: a client whose requests go through a runtime.

```python
client = httpx2.Client(transport=failwise.connect.httpx2.transport())
```

Safe repeats, told waits, guards, idempotency keys and records, by the method of each request; the client
gives the responses and exceptions it always gave. See ``docs/http-clients.md``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from failwise.connect import httpx_family
from failwise.connect.transport import result_of

if TYPE_CHECKING:
    import httpx2

    from failwise.runtime.run import Run
    from failwise.runtime.runtime import Runtime

__all__ = ["NotSent", "async_transport", "attach", "result_of", "transport"]

ClientT = TypeVar("ClientT")


def transport(
    runtime: "Runtime | Run | None" = None,
    *,
    wrapped: "httpx2.BaseTransport | None" = None,
    idempotency_key: str | None = None,
    declare: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    upstream: str | None = None,
    **options: Any,
) -> "httpx2.BaseTransport":
    """A transport for `httpx2.Client(transport=...)`.

    `runtime`: a `Runtime` or a `Run`; None: one that all clients of the process share. `wrapped`: the
    transport that sends (else an `httpx2.HTTPTransport` with the other `options`: `verify`, `proxy`,
    `http2`, ...; a client given a transport reads no proxies from the environment: `attach` keeps them).
    `idempotency_key` names the header in which these upstreams honour a key: POST and PATCH then carry
    one and may be repeated. `declare` says more of single requests:
    ``{"POST api.example/search*": {"read_only": True}}``. `profile` names the API's profile, `upstream`
    whom the guards count (else each host). Raises `UsageError` for options that cannot work.
    """
    import httpx2

    given = _options(runtime, idempotency_key, declare, profile, upstream)
    made: httpx2.BaseTransport = httpx_family.transport(httpx2, wrapped, {**options, **given})
    return made


def async_transport(
    runtime: "Runtime | Run | None" = None,
    *,
    wrapped: "httpx2.AsyncBaseTransport | None" = None,
    idempotency_key: str | None = None,
    declare: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    upstream: str | None = None,
    **options: Any,
) -> "httpx2.AsyncBaseTransport":
    """`transport`, for `httpx2.AsyncClient`."""
    import httpx2

    given = _options(runtime, idempotency_key, declare, profile, upstream)
    made: httpx2.AsyncBaseTransport = httpx_family.async_transport(
        httpx2, wrapped, {**options, **given}
    )
    return made


def attach(
    client: ClientT,
    runtime: "Runtime | Run | None" = None,
    *,
    idempotency_key: str | None = None,
    declare: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    upstream: str | None = None,
) -> ClientT:
    """Let a client that exists, sync or async, send through a runtime; gives the client back.

    Its transports stay inside, with the proxies and certificates it was made with. Options as for
    `transport`. Raises `UsageError` for what is no client of httpx2.
    """
    import httpx2

    given = _options(runtime, idempotency_key, declare, profile, upstream)
    httpx_family.attach(httpx2, client, given)
    return client


def _options(
    runtime: "Runtime | Run | None",
    idempotency_key: str | None,
    declare: Mapping[str, Mapping[str, Any]] | None,
    profile: str | None,
    upstream: str | None,
) -> dict[str, Any]:
    return {
        "runtime": runtime,
        "idempotency_key": idempotency_key,
        "declare": declare,
        "profile": profile,
        "upstream": upstream,
    }


if TYPE_CHECKING:

    class NotSent(httpx2.ConnectError):
        """The runtime declined to send; nothing has left. `result_of(error)` tells why."""


def __getattr__(name: str) -> Any:
    if name != "NotSent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import httpx2

    globals()[name] = found = httpx_family.family(httpx2).not_sent
    return found
