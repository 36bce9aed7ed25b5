"""What a page or an example switches on stays with it."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    """Handlers and levels that a page gives to our loggers end with it."""
    loggers = [logging.getLogger(name) for name in ("", "failwise", "failwise.calls")]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
