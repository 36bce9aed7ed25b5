"""The table of frameworks, and what an adapter says where its framework is missing."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import failwise

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((ROOT / "docs" / "frameworks.toml").read_text("utf-8"))
LINES = {
    "langchain": ("middleware", ()),
    "pydantic_ai": ("capability", ()),
    "openai_agents": ("tools", ([],)),
    "google_adk": ("plugin", ()),
}


def test_the_page_is_what_the_table_says() -> None:
    """The compatibility part of docs/frameworks.md is made of docs/frameworks.toml, and current."""
    script = ROOT / "scripts" / "frameworks.py"
    ended = subprocess.run([sys.executable, script, "page", "--check"], check=False)
    assert ended.returncode == 0, "run: python scripts/frameworks.py page"


@pytest.mark.parametrize("name", list(TABLE))
def test_what_is_supported_is_what_is_installed(name: str) -> None:
    """An extra demands the oldest version that is tested; each framework has a page, a test, an adapter."""
    row = TABLE[name]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    if row["extra"]:
        [demand] = extras[row["extra"]]
        package, _, oldest = demand.partition(">=")
        assert package == row["package"]
        assert row["oldest"].startswith(oldest + ".")
    assert (ROOT / "docs" / "frameworks" / f"{name}.md").is_file()
    assert (ROOT / "tests" / "frameworks" / f"test_{row['suite']}.py").is_file()
    assert importlib.import_module(f"failwise.connect.{name}").__all__


@pytest.mark.parametrize("name", list(LINES))
def test_a_missing_framework_is_said_with_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its framework an adapter says which extra to install."""
    for package in ("langchain", "langgraph", "pydantic_ai", "agents", "google.adk"):
        monkeypatch.setitem(sys.modules, package, None)
    module = importlib.import_module(f"failwise.connect.{name}")
    for made in ("_middleware_class", "_classes", "_plugin_class"):
        getattr(getattr(module, made, None), "cache_clear", lambda: None)()
    line, given = LINES[name]
    said = pytest.raises(failwise.ConfigurationError, match=r"pip install 'failwise\[")
    with failwise.Runtime(":memory:") as rt, said:
        getattr(module, line)(rt, *given)


@pytest.mark.parametrize("wrong", [{"runtime": "rt"}, {"lang": "fr"}])
def test_options_that_cannot_work_are_refused(wrong: dict[str, str]) -> None:
    """A bridge wants a runtime or a run, and a language there is."""
    from failwise.connect.bridge import Bridge

    with failwise.Runtime(":memory:") as rt, pytest.raises(failwise.UsageError):
        Bridge(**{"runtime": rt, **wrong})  # type: ignore[arg-type]
