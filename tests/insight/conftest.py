"""The command, as `tests/cli` runs it."""

from tests.cli.conftest import failwise

__all__ = ["failwise"]
