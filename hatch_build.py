"""Build step: provider profiles (YAML, for people) become an index and one JSON each (for the runtime)."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProfileBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Replaced by the profiles room."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        pass
