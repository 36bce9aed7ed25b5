"""The same machine on a virtual clock: a world answers, and hours pass in a second."""

from failwise.simulation.simulator import Simulator, World, simulate

__all__ = ["Simulator", "World", "simulate"]
