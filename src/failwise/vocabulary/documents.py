"""Data files in TOML; of the package's own the build makes a JSON each, for the runtime.

Reading TOML takes a process's first failure a tenth of a second and more. What the build made of a file
says which text it was made of, so that an edited file is read itself until it is built anew.

This module stands alone: `hatch_build.py` loads it by its path, before failwise is installed.
"""

import json
import re
import sys
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "compiled"
"""Beside this module: ``classify.rules.network.json`` is made of ``classify/rules/network.toml``."""


def read(package: str, name: str) -> tuple[str, dict[str, Any]]:
    """The text of a data file and what it says; ``name``: its path within the package.

    Raises `ConfigurationError`, naming the file, where it is not valid TOML.
    """
    written = resources.files(package).joinpath(*name.split("/")).read_bytes()
    text = written.decode("utf-8")
    made = resources.files("failwise.vocabulary").joinpath(FOLDER, _made_of(package, name))
    try:
        found = json.loads(made.read_bytes())
    except (OSError, ValueError):
        found = None  # not built: a checkout that nobody installed
    if isinstance(found, dict) and found.get("of") == _mark(written):
        return text, found["data"]
    return text, parsed(text, name)


def parsed(text: str, file: str) -> dict[str, Any]:
    """What a text in TOML says, ours or a user's. Raises `ConfigurationError` with the file and the line."""
    import tomllib

    from failwise.vocabulary.errors import ConfigurationError

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d{1,9})", str(error))
        line = int(found[1]) if found else None
        raise ConfigurationError(f"not valid TOML: {error}", file=file, line=line) from error


def write(root: Path) -> list[Path]:
    """Compile every TOML file under ``root``, the folder of the package; returns what was written."""
    import tomllib

    target = root / "vocabulary" / FOLDER
    target.mkdir(exist_ok=True)
    made = []
    for source in sorted(root.rglob("*.toml")):
        written = source.read_bytes()
        package = ".".join(("failwise", *source.relative_to(root).parent.parts))
        found = {"of": _mark(written), "data": tomllib.loads(written.decode("utf-8"))}
        path = target / _made_of(package, source.name)
        path.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), "utf-8")
        made.append(path)
    for stale in set(target.glob("*.json")).difference(made):
        stale.unlink()
    return made


def _made_of(package: str, name: str) -> str:
    parts = (*package.split(".")[1:], *name.removesuffix(".toml").split("/"))
    return f"{'.'.join(parts)}.json"


def _mark(written: bytes) -> list[int]:
    """Tells one state of a file from another; it need not withstand anybody."""
    return [len(written), zlib.crc32(written)]


if __name__ == "__main__":
    sys.stdout.write(f"{len(write(Path(__file__).parents[1]))} data files compiled\n")
