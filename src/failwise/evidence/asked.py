"""What was asked when an exception came: method, URL, host and time limit of the request behind it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from failwise.evidence.bounds import clean_url, host_of
from failwise.evidence.exception_forms import ExceptionForm
from failwise.evidence.facts import Phase
from failwise.evidence.responses import attribute

_LIMIT_TOLD = re.compile(r"(?:read|connect|request) timeout=(\d{1,6}(?:\.\d{1,6})?)")
_LIMIT_IN_TEXT: Final = "timeout="
_LIMIT_OF: Final = {"pool": "pool", "connect": "connect", "tls": "connect", "write": "write"}


@dataclass(slots=True)
class Asked:
    """The request, as far as it is known; `limit` in seconds."""

    method: str | None
    url: str | None
    host: str | None
    limit: float | None

    def learn(
        self, error: BaseException, form: ExceptionForm, text: str, phase: Phase | None
    ) -> None:
        """Fill in what is not known yet from one exception, of which `text` is the message."""
        if form.requests:
            self._request(error)
        if self.limit is None:
            self.limit = _limit(error, form, text, phase)

    def hear(self, host: str | None, url: str | None) -> None:
        """Fill in host and URL from what a text said of them."""
        self.host = self.host or host
        self.url = self.url or url

    def _request(self, error: BaseException) -> None:
        request = attribute(error, "request", "request_info")
        if self.method is None:
            method = attribute(request, "method")
            self.method = method.upper()[:16] if isinstance(method, str) else None
        if self.url is None:
            url = attribute(request, "url", "real_url") or attribute(error, "url")
            text = clean_url(url) if isinstance(url, str) or hasattr(url, "host") else None
            self.url = text if text and "://" in text else None
        if self.host is None:
            host = host_of(self.url) or attribute(error, "host")
            if host is None:
                # urllib3: `pool` is deprecated where there is a `conn`, be it None after a copy.
                holder = "conn" if hasattr(error, "conn") else "pool"
                host = attribute(attribute(error, holder), "host")
            self.host = host if isinstance(host, str) else None


def knows_something(form: ExceptionForm, text: str) -> bool:
    """May an exception of this form, of which `text` is the message, have anything to be learnt?"""
    return form.requests or form.limits or _LIMIT_IN_TEXT in text


def _limit(
    error: BaseException, form: ExceptionForm, text: str, phase: Phase | None
) -> float | None:
    if form.limits:
        timeout = attribute(error, "timeout")
        if isinstance(timeout, (int, float)) and not isinstance(timeout, bool):
            return float(timeout)
        extensions = attribute(attribute(error, "request"), "extensions")
        limits = extensions.get("timeout") if isinstance(extensions, Mapping) else None
        if isinstance(limits, Mapping):  # httpx: one limit for each phase
            limit = limits.get(_LIMIT_OF.get(phase or "", "read"))
            return float(limit) if isinstance(limit, (int, float)) else None
    told = _LIMIT_TOLD.search(text) if _LIMIT_IN_TEXT in text else None
    return float(told.group(1)) if told else None
