"""What an adapter says to whoever wires it up: what to install, and warnings, each once a process."""

import logging
from typing import Any

from failwise.vocabulary.errors import ConfigurationError

logger = logging.getLogger("failwise")

_said: set[Any] = set()


def warn_once(key: Any, text: str, *arguments: Any) -> None:
    """Log a warning, the first time for each `key` in this process."""
    if key not in _said:
        _said.add(key)
        logger.warning(text, *arguments)


def was_said(key: Any) -> bool:
    """`warn_once` has warned of it."""
    return key in _said


def warn_of_retries(function: Any, name: str) -> None:
    """Once for each tool: it repeats itself by a decorator that knows nothing of effects, so that its
    retries and the runtime's multiply. Recognised: tenacity."""
    if hasattr(function, "retry_with") and hasattr(function, "retry"):
        warn_once(
            ("retry", name),
            "%s repeats itself (tenacity), blindly and once more for each of the runtime's attempts: "
            "take its decorator away; the policy says what is repeated",
            name,
        )


def required(framework: str, package: str, error: ImportError) -> ConfigurationError:
    """What to install, for an adapter whose framework is missing."""
    return ConfigurationError(
        f"{framework} is needed and could not be imported ({error}): pip install '{package}'"
    )
