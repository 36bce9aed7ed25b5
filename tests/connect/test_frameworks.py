"""The table of frameworks, and what an adapter says where its framework is missing."""

import importlib
import importlib.util
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
    "fastmcp": ("middleware", ()),
    "strands": ("plugin", ()),
    "llama_index": ("tools", ([],)),
    "agent_framework": ("middleware", ()),
    "litellm": ("client", ()),
}
PACKAGES = (
    "langchain",
    "langgraph",
    "pydantic_ai",
    "agents",
    "google.adk",
    "fastmcp",
    "strands",
    "llama_index.core",
    "agent_framework",
    "litellm",
)


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
        assert f"{row['oldest']}.".startswith(oldest.partition(",")[0] + ".")
    assert (ROOT / "docs" / "frameworks" / f"{name}.md").is_file()
    assert (ROOT / "tests" / "frameworks" / f"test_{row['suite']}.py").is_file()
    assert importlib.import_module(f"failwise.connect.{name}").__all__


@pytest.mark.parametrize("name", list(LINES))
def test_a_missing_framework_is_said_with_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its framework an adapter says which extra to install."""
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    module = importlib.import_module(f"failwise.connect.{name}")
    for made in ("_middleware_class", "_classes", "_plugin_class", "_tool_class"):
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


def test_the_matrix_installs_what_the_table_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The oldest version with what it needs beside it, as old; the newest with the newest; and an unknown name
    is refused with those that are known."""
    place = ROOT / "scripts" / "frameworks.py"
    found = importlib.util.spec_from_file_location("frameworks_script", place)
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    row = TABLE["langchain"]
    oldest, newest = (script.requirements(row, age) for age in ("oldest", "newest"))
    assert f"langchain=={row['oldest']}" in oldest
    assert set(row["beside"]) <= set(oldest)
    assert f"langchain=={row['newest']}" in newest
    assert "langchain-openai" in newest
    ended = script.Ended("LangChain", "1.0.0", "oldest", False, "1 failed, 2 passed", 61.2)
    assert "| LangChain | 1.0.0   | oldest | not good |" in script.shown([ended])
    with pytest.raises(SystemExit) as refused:
        script.main(["matrix", "lang"])
    assert refused.value.code == 2
    assert "langchain" in capsys.readouterr().err
