"""For tests of agents and tools: time that is stepped, tools that are scripted, calls that are kept.

What Failwise's own tests use. Nothing here sleeps.
"""

from failwise.testing.clock import SteppingClock
from failwise.testing.scripted import Expire, ScriptedTool, recorded

__all__ = ["Expire", "ScriptedTool", "SteppingClock", "recorded"]
