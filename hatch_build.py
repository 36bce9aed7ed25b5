"""Build step: provider profiles (YAML, for people) become an index and one JSON each (for the runtime).

Runs for wheels, source distributions and editable installs. The compiler is loaded by its path:
failwise itself is not installed yet when this runs.
"""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProfileBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles ``src/failwise/profiles/data/*.yaml`` into ``src/failwise/profiles/compiled``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        profiles = Path(self.root, "src", "failwise", "profiles")
        location = importlib.util.spec_from_file_location("profile_build", profiles / "build.py")
        assert location is not None
        assert location.loader is not None
        compiler = importlib.util.module_from_spec(location)
        location.loader.exec_module(compiler)
        compiler.write(profiles / "data", profiles / "compiled")
