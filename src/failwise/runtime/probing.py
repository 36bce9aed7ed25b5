"""The opt-in look at a TLS peer after a tool's client refused it and kept nothing of the certificate.

One connection of our own, after the failure and beside it: a handshake, nothing sent, nothing
repeated. What it shows is left on the tool's exception, where evidence looks for it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from failwise.runtime import background
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

if TYPE_CHECKING:
    from failwise.classify import Classifier
    from failwise.evidence.facts import Evidence

logger = logging.getLogger("failwise")

LIMIT: Final = 2.0
"""Seconds that a look may take; less where half of the attempt's own time is less."""
_HTTPS: Final = 443


def probing(spec: ToolSpec, classifier: "Callable[[], Classifier]") -> ToolSpec:
    """The same tool, whose certificate faults are looked at; `classifier` is asked for when one may be."""
    call, call_async = spec.call, spec.call_async

    def run(arguments: Arguments, context: CallContext) -> Any:
        assert call is not None
        try:
            return call(arguments, context)
        except Exception as error:
            peer = _unseen_peer(error, classifier())
            if peer is not None:
                seconds = _time_for(context)
                work = background.in_thread(_look, error, peer, seconds)
                with suppress(Exception):  # a look that fails leaves the failure as it was
                    work.result(seconds)
            raise

    async def run_async(arguments: Arguments, context: CallContext) -> Any:
        assert call_async is not None
        try:
            return await call_async(arguments, context)
        except Exception as error:
            peer = _unseen_peer(error, classifier())
            if peer is not None:
                seconds = _time_for(context)
                work = asyncio.wrap_future(background.in_thread(_look, error, peer, seconds))
                with suppress(Exception):
                    await asyncio.wait_for(work, seconds)
            raise

    return replace(
        spec,
        call=run if call is not None else None,
        call_async=run_async if call_async is not None else None,
    )


def _time_for(context: CallContext) -> float:
    remaining = context.remaining
    return LIMIT if remaining is None else max(0.001, min(LIMIT, remaining / 2))


def _unseen_peer(error: Exception, classifier: "Classifier") -> tuple[str, int] | None:
    """Host and port of a peer whose certificate was refused, where the exception kept none of it."""
    from failwise.evidence import from_exception
    from failwise.evidence.tls_labels import labels
    from failwise.evidence.tls_surroundings import proxy_for

    evidence = from_exception(error)
    if evidence.tls is not None and evidence.tls.get("chain"):
        return None
    failure = classifier.classify(evidence)
    if failure is None or failure.category is not Category.SECURITY:
        return None
    if failure.code not in {one.code for one in labels().words.values()}:
        return None
    host = evidence.host or (evidence.tls or {}).get("host")
    if not host or proxy_for(host):  # past the proxy it would be another connection's certificate
        return None
    return host, _port_of(evidence, error)


def _port_of(evidence: "Evidence", error: BaseException) -> int:
    with suppress(ValueError):
        port = urlsplit(evidence.url or "").port
        if port is not None:
            return port
    from failwise.evidence.chains import exceptions_behind
    from failwise.evidence.responses import attribute

    for one in exceptions_behind(error):
        port = attribute(one, "port") or attribute(attribute(one, "pool"), "port")
        if isinstance(port, int) and 0 < port < 65_536:
            return port
    return _HTTPS


def _look(error: Exception, peer: tuple[str, int], seconds: float) -> None:
    """Connect once, and leave what was seen where `failwise.evidence` looks for it."""
    import ssl

    from failwise.evidence.chains import exceptions_behind
    from failwise.evidence.tls import ATTRIBUTE
    from failwise.evidence.tls_probe import diagnose_tls

    found = diagnose_tls(*peer, timeout=seconds)
    logger.debug("looked at %s:%s after a certificate fault: %s", *peer, found.diagnosis)
    if found.handshake is None:
        return
    behind = reversed(exceptions_behind(error))
    told = next((one for one in behind if isinstance(one, ssl.SSLError)), None)
    with suppress(AttributeError):  # an exception with slots keeps nothing
        if told is not None:
            setattr(told, ATTRIBUTE, replace(found.handshake, probe=found.diagnosis))
        elif not found.ok:
            setattr(error, ATTRIBUTE, {**found.facts, "probe": found.diagnosis})
