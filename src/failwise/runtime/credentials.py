"""Credentials by name: their values, and single-flight refresh per generation.

A thousand concurrent 401s make one refresh: whoever comes with the generation that is still current
leads, the others wait for the same future, over threads and loops alike.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import UNSET


class Credential:
    """One credential: how to get it, how to renew it, and its value of this generation."""

    __slots__ = (
        "_lock",
        "_refreshing",
        "generation",
        "get",
        "identity",
        "name",
        "refresh",
        "value",
    )

    def __init__(
        self, name: str, get: Any, refresh: Callable[..., Any] | None, identity: str
    ) -> None:
        self.name, self.get, self.refresh, self.identity = name, get, refresh, identity
        self.generation = 0
        self.value: Any = UNSET if callable(get) else get
        self._lock = threading.Lock()
        self._refreshing: Future[bool] | None = None

    def begin_refresh(self, seen: int) -> "tuple[Future[bool], bool]":
        """Join the refresh of generation `seen`: (its outcome, whether the caller must perform it)."""
        with self._lock:
            if self.generation > seen or self.refresh is None:
                done: Future[bool] = Future()
                done.set_result(self.refresh is not None)
                return done, False
            if self._refreshing is not None:
                return self._refreshing, False
            self._refreshing = Future()
            self._refreshing.set_running_or_notify_cancel()
            return self._refreshing, True

    def finish_refresh(self, value: Any, *, succeeded: bool) -> None:
        """The leader's report. A refresher that returns None wants `get` asked again."""
        with self._lock:
            future, self._refreshing = self._refreshing, None
            if succeeded:
                self.generation += 1
                if value is not None:
                    self.value = value
                elif callable(self.get):
                    self.value = UNSET
        if future is not None:
            future.set_result(succeeded)


def credential(
    name: str, given: Any, refresh: Callable[..., Any] | None, *, own: bool
) -> Credential:
    """A credential from what the user gave: a value, or a function (sync or async) that gets it.

    `own`: belongs to one run, so that its identity (which guards count by) tells tenants apart,
    by a digest and never by the value.
    """
    if isinstance(given, Mapping) and ("get" in given or "refresh" in given):
        given, refresh = given.get("get"), given.get("refresh", refresh)
    if given is None and refresh is None:
        raise UsageError(f"credential {name!r}: give get= (a value or a function), or refresh=")
    if refresh is not None and not callable(refresh):
        raise UsageError(f"credential {name!r}: refresh= must be a function")
    if given is None:
        given = refresh
    identity = name
    if own:
        seed = repr(given) if not callable(given) else f"{id(given)}"
        identity = f"{name}#{hashlib.blake2b(seed.encode(), digest_size=6).hexdigest()}"
    return Credential(name, given, refresh, identity)
