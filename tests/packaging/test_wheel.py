"""The built package: every data file is in it, its metadata is sane, and it needs no test extra."""

import email
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = {".toml", ".yaml", ".json", ".typed", ".html", ".css", ".js", ".svg"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the build reads, in a clean copy: nothing in it was built before."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    built_before = shutil.ignore_patterns("__pycache__", "compiled")
    shutil.copytree(ROOT / "src", copy / "src", ignore=built_before)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once by the build backend itself; nothing is downloaded."""
    pytest.importorskip("hatchling")
    target = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert built.returncode == 0, built.stderr
    (found,) = target.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> "email.message.Message[str, str]":
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_every_source_and_data_file_is_in_the_wheel(checkout: Path, contents: list[str]) -> None:
    """A file that the package reads or imports is shipped."""
    source = checkout / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "failwise").rglob("*")
        if path.suffix in DATA | {".py"} and path.parent.name != "compiled"
    }
    assert wanted - set(contents) == set()


def test_each_profile_is_shipped_compiled(contents: list[str]) -> None:
    """The build step ran: an index, and one JSON for each profile."""
    names = {Path(name).stem for name in contents if name.startswith("failwise/profiles/compiled/")}
    sources = {path.stem for path in (ROOT / "src/failwise/profiles/data").glob("*.yaml")}
    assert names == {*sources, "index"}


def test_each_table_is_shipped_compiled(checkout: Path, contents: list[str]) -> None:
    """The build step ran: one JSON for each TOML."""
    made = [name for name in contents if name.startswith("failwise/vocabulary/compiled/")]
    sources = list((checkout / "src" / "failwise").rglob("*.toml"))
    assert len(made) == len(sources) > 30


def test_nothing_but_the_package_is_in_the_wheel(contents: list[str]) -> None:
    """No tests, caches or other people's files."""
    strangers = [
        name
        for name in contents
        if not name.startswith(("failwise/", "failwise-")) or "__pycache__" in name
    ]
    assert strangers == []


def test_the_metadata_is_what_an_index_needs(
    metadata: "email.message.Message[str, str]", contents: list[str]
) -> None:
    """Name, version, description, licence, Python versions and a readme that is not empty."""
    from failwise import __version__

    assert metadata["Name"] == "failwise"
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "failwise demo" in str(metadata.get_payload())
    assert any(name.endswith("/licenses/LICENSE") for name in contents)


def test_what_is_installed_without_extras_is_what_is_declared(
    metadata: "email.message.Message[str, str]",
) -> None:
    """Test tools stand behind the extra, so that `pip install failwise` brings none of them."""
    project = _project()
    required = metadata.get_all("Requires-Dist") or []
    base = {line for line in required if "extra ==" not in line}
    assert len(base) == len(project["dependencies"])  # type: ignore[arg-type]
    assert not {line for line in base if line.startswith(("pytest", "mypy", "ruff", "tenacity"))}


def _project() -> Mapping[str, object]:
    project: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    return project
