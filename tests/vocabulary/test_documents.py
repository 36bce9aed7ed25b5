"""Data files: what the build makes of them says the same, and is not read once they were edited."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from failwise import ConfigurationError
from failwise.vocabulary import documents

PACKAGE = Path(documents.__file__).parents[1]
SOURCES = sorted(PACKAGE.rglob("*.toml"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ``spoken`` with one data file, whose compiled forms lie in a folder of their own."""
    folder = tmp_path / "spoken"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "words.toml").write_text('greeting = "hello"\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(documents, "FOLDER", str(tmp_path / "made"))
    (tmp_path / "made").mkdir()
    yield folder  # type: ignore[misc]
    sys.modules.pop("spoken", None)


def _made(package: Path, data: object) -> None:
    mark = documents._mark((package / "words.toml").read_bytes())
    made = package.parent / "made" / "words.json"
    made.write_text(json.dumps({"of": mark, "data": data}))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_every_table_can_be_compiled(source: Path) -> None:
    """JSON holds all that our tables say: no dates."""
    data = tomllib.loads(source.read_text("utf-8"))
    assert json.loads(json.dumps(data)) == data


def test_what_was_compiled_is_what_is_read(tmp_path: Path) -> None:
    """All tables of the package, compiled into another folder and read from there."""
    copy = tmp_path / "failwise"
    (copy / "vocabulary").mkdir(parents=True)
    for source in SOURCES:
        target = copy / source.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    stale = copy / "vocabulary" / documents.FOLDER / "gone.json"
    stale.parent.mkdir()
    stale.write_text("{}")
    made = documents.write(copy)
    assert len(made) == len(SOURCES)
    assert not stale.exists()
    for source in SOURCES:
        where = source.relative_to(PACKAGE)
        package = ".".join(("failwise", *where.parent.parts))
        held = json.loads((stale.parent / documents._made_of(package, where.name)).read_bytes())
        assert held["data"] == tomllib.loads(source.read_text("utf-8"))


def test_the_compiled_form_is_read_while_it_is_of_this_text(package: Path) -> None:
    """The build's form stands for the text it was made of, and for no other."""
    _made(package, {"greeting": "compiled"})
    text, data = documents.read("spoken", "words.toml")
    assert (text, data) == ('greeting = "hello"\n', {"greeting": "compiled"})
    (package / "words.toml").write_text('greeting = "jello"\n')
    assert documents.read("spoken", "words.toml")[1] == {"greeting": "jello"}


@pytest.mark.parametrize("held", ["", "{", "[]", '{"of": 1}'])
def test_a_broken_compiled_form_is_passed_over(package: Path, held: str) -> None:
    """A file that was cut off, or never written, costs time and nothing else."""
    (package.parent / "made" / "words.json").write_text(held)
    assert documents.read("spoken", "words.toml")[1] == {"greeting": "hello"}


def test_wrong_toml_is_named(package: Path) -> None:
    """The error says which file, and where in it."""
    (package / "words.toml").write_text("greeting = \n")
    with pytest.raises(ConfigurationError, match=r"words\.toml.*line 1"):
        documents.read("spoken", "words.toml")
