"""`Request`: what a client sent, as the fault server recorded it."""

import json
from collections.abc import Mapping
from typing import Any

from failwise.vocabulary.records import record


@record
class Request:
    """One request, read completely.

    `path` is without its query; `query` holds the last value of each name; `headers` have
    lower-case names; `parameters` are the values of a route's ``{names}``. `time` is monotonic
    seconds when it had been read, `listener` where it came in (``http`` or the kind of TLS peer),
    `connection` the number of its connection there, from 1.
    """

    method: str
    path: str
    target: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    time: float
    listener: str
    connection: int
    parameters: Mapping[str, str]

    @property
    def json(self) -> Any:
        """The body as JSON, or None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def idempotency_key(self) -> str | None:
        """The Idempotency-Key header, without the quotes of a structured string."""
        key = self.headers.get("idempotency-key")
        return key.strip().strip('"') if key is not None else None

    @property
    def bearer(self) -> str | None:
        """The token of ``Authorization: Bearer``."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" and token else None
