"""What `import failwise` loads and how long it takes; and that imports go down only."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "failwise"
ALLOWED = Path(__file__).with_name("allowed_imports.txt")

FLOORS = (
    {"vocabulary", "_version"},
    {"arguments", "redaction", "guards", "profiles", "drawing"},
    {"evidence"},
    {"classify", "policy", "effects", "tools"},
    {"journal"},
    {"runtime"},
    {"insight", "simulation", "agent", "connect", "faults"},
    {"testing"},  # its providers are fault servers
    {"dashboard"},
    {"cli"},  # the command serves the dashboard
)
"""The rooms from the ground up. A room imports from lower floors and from itself, nothing else."""

HEAVY = (
    "asyncio", "sqlite3", "ssl", "socket", "http", "email", "jsonschema_rs", "yaml", "httpx", "rich",
    "cryptography", "trustme", "pydantic", "requests", "aiohttp", "mcp",
)  # fmt: skip

FRAMEWORKS = {
    "mcp", "mcp_types", "pydantic", "opentelemetry", "prometheus_client", "httpx", "httpx2", "requests", "aiohttp",
    "dbos", "celery", "temporalio", "langchain", "langchain_core", "langgraph", "pydantic_ai", "agents", "google",
    "claude_agent_sdk",
}  # fmt: skip
"""What modules of `connect` connect to."""


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads in a bare interpreter: top-level names, ours in full."""
    script = (
        f"import sys; sys.path[:0] = {[str(SOURCE), *sys.path]!r}; before = set(sys.modules)\n"
        f"{program}\nprint(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {
        name if name.startswith("failwise") else name.partition(".")[0]
        for name in done.stdout.split()
    }


def test_import_loads_only_what_is_listed() -> None:
    """`import failwise` loads modules of the checked-in list; the interpreter's own ``_x`` apart."""
    lines = ALLOWED.read_text("utf-8").splitlines()
    allowed = {line for line in lines if line and not line.startswith("#")}
    loaded = {name for name in loaded_by("import failwise") if not name.startswith("_")}
    assert loaded <= allowed, sorted(loaded - allowed)


def test_a_runtime_with_a_tool_loads_nothing_heavy() -> None:
    """Making a runtime and registering a tool needs no loop, database, HTTP, validator or YAML."""
    loaded = loaded_by(
        "import failwise; rt = failwise.Runtime(':memory:')\n"
        "def search(query: str, limit: int = 10) -> list[str]: ...\n"
        "rt.tool(read_only=True, timeout=5)(search)"
    )
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))


@pytest.mark.parametrize("module", sorted(path.stem for path in (PACKAGE / "connect").glob("*.py")))
def test_a_connection_loads_no_framework_before_it_is_used(module: str) -> None:
    """Each module of `connect` can be imported where its framework is not installed."""
    name = "failwise.connect" if module == "__init__" else f"failwise.connect.{module}"
    loaded = loaded_by(f"import {name}")
    assert loaded.isdisjoint(FRAMEWORKS), sorted(loaded & FRAMEWORKS)


def test_public_packages_need_no_import_of_their_own() -> None:
    """``import failwise`` is enough for what pages show, and what is not there is not made up."""
    loaded = loaded_by(
        "import failwise\n"
        "assert callable(failwise.connect.httpx.transport) and failwise.faults and failwise.testing\n"
        "for holder in (failwise, failwise.connect):\n"
        "    assert not hasattr(holder, 'no_such_thing')"
    )
    assert "failwise.connect.httpx" in loaded
    assert loaded.isdisjoint(FRAMEWORKS), sorted(loaded & FRAMEWORKS)


def test_import_is_quick() -> None:
    """Under 60 ms of processor time (the best of several): other programs run beside this one."""
    program = (
        f"import sys, time; sys.path[:0] = [{str(SOURCE)!r}]\n"
        "began = time.process_time(); import failwise; print(time.process_time() - began)"
    )
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", program],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout
        )
        for _ in range(5)
    ]
    assert min(seconds) < 0.060, seconds


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Every import of ours in a file, wherever it stands: (line, room)."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno}: relative import"
            module = node.module or ""
            names = [f"failwise.{a.name}" for a in node.names] if module == "failwise" else [module]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "failwise":
                yield node.lineno, rest.partition(".")[0]


def floor_of(room: str) -> int | None:
    return next((level for level, rooms in enumerate(FLOORS) if room in rooms), None)


@pytest.mark.parametrize(
    "room",
    sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()),
)
def test_imports_go_down_only(room: str) -> None:
    """Lazy imports and those for the type checker count too: a lower floor knows no higher one."""
    level = floor_of(room)
    assert level is not None, f"{room} has no floor: say in FLOORS where it stands"
    for file in sorted((PACKAGE / room).rglob("*.py")):
        for line, other in imports(file):
            below = floor_of(other)
            place = f"{file.relative_to(SOURCE)}:{line}"
            assert below is not None, f"{place} imports failwise.{other}: name the room itself"
            assert other == room or below < level, f"{place} imports {other} (floor {below})"
