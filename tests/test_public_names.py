"""The public names are those on a checked-in list, no more and no fewer."""

import importlib
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("public_names.txt")


def promised() -> dict[str, list[str]]:
    """The list: module → names."""
    found: dict[str, list[str]] = {}
    for line in LIST.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            module, _, name = line.partition(":")
            found.setdefault(module, []).append(name)
    return found


@pytest.mark.parametrize("module", list(promised()))
def test_all_is_what_is_promised(module: str) -> None:
    """``__all__`` equals the list: a new public name, or one taken away, is a decision."""
    names = importlib.import_module(module).__all__
    assert sorted(names) == sorted(promised()[module])
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("module", list(promised()))
def test_every_name_can_be_imported(module: str) -> None:
    """Each public name resolves, and `dir` shows it."""
    loaded = importlib.import_module(module)
    for name in loaded.__all__:
        assert getattr(loaded, name) is not None
        assert name in dir(loaded)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Names that resolve at first use fail as any other would."""
    import failwise

    with pytest.raises(AttributeError, match="Runtme"):
        failwise.Runtme  # type: ignore[attr-defined] # noqa: B018
