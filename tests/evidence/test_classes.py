"""The table of known classes: validated at load, narrow rows first."""

import tomllib
from collections.abc import Iterator
from importlib import import_module, resources

import pytest

from failwise.evidence.classes import ClassTable, class_table, combined_phase
from failwise.evidence.facts import Phase
from failwise.vocabulary.errors import ConfigurationError


def rows() -> Iterator[tuple[str, str]]:
    text = resources.files("failwise.evidence").joinpath("classes.toml").read_text("utf-8")
    for family, row in tomllib.loads(text).items():
        if isinstance(row, dict) and "classes" in row:
            for name in row["classes"]:
                yield family, name


@pytest.mark.parametrize(
    ("family", "module"),
    [
        ("httpx", "httpx"),
        ("httpx", "httpx2"),
        ("requests", "requests.exceptions"),
        ("urllib3", "urllib3.exceptions"),
        ("aiohttp", "aiohttp.client_exceptions"),
        ("http_client", "http.client"),
    ],
)
def test_rows_name_real_classes(family: str, module: str) -> None:
    """Every row of an installed library names a class it has."""
    there = vars(import_module(module))
    missing = [name for group, name in rows() if group == family and name not in there]
    assert set(missing) <= {"ConnectionNotAvailable", "SSEError"}


def test_own_row_beats_bases() -> None:
    """In urllib3 2 a refused connection is a subclass of a connect timeout."""
    known = class_table().of_class(
        "urllib3.exceptions.NewConnectionError", ("urllib3.exceptions.ConnectTimeoutError",), ""
    )
    assert known is not None
    assert known.kind == "connection"


def test_base_tells_of_an_unknown_subclass() -> None:
    """A class of one's own below a known one is read as that one."""
    known = class_table().of_class("mine.Slow", ("httpx.ReadTimeout", "httpx.TimeoutException"), "")
    assert known is not None
    assert (known.phase, known.kind) == ("read", "timeout")


@pytest.mark.parametrize(
    ("facts", "phase"),
    [
        ([("connect", True), ("tls", True)], "tls"),
        ([("read", True), ("connect", True)], "read"),
        ([("any", False), ("connect", True)], "connect"),
        ([("any", False), ("cancel", False)], "any"),
        ([(None, False), ("read", False), ("body", True)], "body"),
        ([], None),
    ],
)
def test_combined_phase(facts: list[tuple[Phase | None, bool]], phase: Phase | None) -> None:
    """A deeper cause may make a phase more precise, never take it back."""
    assert combined_phase(facts) == phase


@pytest.mark.parametrize("says", ["reading timeout", "timeout"])
def test_wrong_row_is_named(says: str) -> None:
    """A mistake in the table is reported with its place."""
    data = {
        "mine": {"modules": ["mine"], "classes": {"Slow": says}},
        "frames": {},
        "symbols": {},
        "messages": [],
    }
    with pytest.raises(ConfigurationError, match=r"mine\.classes\.Slow"):
        ClassTable(data)
