"""The conformance suite against a real Valkey, on a clock that is told."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from failwise.guards import GuardSettings
from failwise.guards.shared import ValkeyGuards
from failwise.testing import GuardConformance, SteppingClock
from tests.guards.valkey import fresh


class TestValkeyGuards(GuardConformance):
    """All that holds in memory holds in a server."""

    @pytest.fixture(autouse=True)
    def _server(self, valkey: str) -> Iterator[None]:
        self.url = valkey
        self.made: list[ValkeyGuards] = []
        yield
        for guards in self.made:
            assert not guards._speaker.down, "the server was left on the way"
            guards.close()

    def make_guards(self, clock: SteppingClock, settings: GuardSettings) -> ValkeyGuards:
        settings = replace(settings, shared=replace(settings.shared, slow=5.0))
        guards = fresh(self.url, clock, settings, server_time=False)
        self.made.append(guards)
        return guards
