"""Build step: what people write (profiles in YAML, tables in TOML) becomes JSON, which the runtime reads quickly.

Runs for wheels, source distributions and editable installs. The compilers are loaded by their paths:
failwise itself is not installed yet when this runs.
"""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompilingHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the folders ``compiled`` of ``profiles`` and ``vocabulary``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root, "src", "failwise")
        profiles = package / "profiles"
        _loaded(profiles / "build.py").write(profiles / "data", profiles / "compiled")
        _loaded(package / "vocabulary" / "documents.py").write(package)


def _loaded(path: Path) -> Any:
    location = importlib.util.spec_from_file_location(f"{path.stem}_at_build", path)
    assert location is not None
    assert location.loader is not None
    compiler = importlib.util.module_from_spec(location)
    location.loader.exec_module(compiler)
    return compiler
