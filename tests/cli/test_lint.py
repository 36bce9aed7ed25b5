"""``failwise lint``: real packages, real decorators; each rule, and what is no finding."""

import json
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise.cli.linting.rules import is_risky, rule_names
from tests.cli.conftest import Failwise

Lint = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own, which is the working directory; modules from it are forgotten after.

    What they did to logging is undone: an MCP server sets it up for its whole process.
    """
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    before = set(sys.modules), list(sys.path)
    yield tmp_path
    for name in set(sys.modules) - before[0]:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]
    sys.path[:] = before[1]
    logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]


@pytest.fixture
def lint(failwise: Failwise, folder: Path) -> Lint:
    """Lint a program; the findings as rule → tools, and everything the command gave."""

    def run(program: str, *words: str, thing: str = "") -> dict[str, Any]:
        (folder / "agent.py").write_text(textwrap.dedent(program), "utf-8")
        ended = failwise("lint", f"agent.py{thing}", "--json", *words)
        assert ended.code in (0, 1), ended.err
        told = json.loads(ended.out)
        rules: dict[str, list[str]] = {}
        for finding in told["findings"]:
            rules.setdefault(finding["rule"], []).append(finding["tool"])
        assert ended.code == (1 if told["findings"] or not told["tools"] else 0)
        return {"rules": rules, "all": told["findings"], "tools": told["tools"]}

    return run


def test_tools_that_say_all_there_is_are_clean(lint: Lint) -> None:
    """Nothing found, exit code 0."""
    found = lint(
        """
        import failwise
        rt = failwise.Runtime(":memory:")

        @rt.tool(read_only=True, timeout=10)
        def search(query: str) -> list[str]:
            "Search."
            return []

        @rt.tool(read_only=False, timeout=10, fallback=["search"])
        def create_order(sku: str) -> str:
            "Order."
            return sku

        rt.add(failwise.HttpTool("get_item", "GET", "https://a.example/items/{id}"))
        """
    )
    assert found == {"rules": {}, "all": [], "tools": 3}


def test_undeclared_and_risky_tools_are_told_with_their_line(lint: Lint) -> None:
    """Each with the line of its function and what to write."""
    found = lint(
        """
        import failwise
        rt = failwise.Runtime(":memory:")

        @rt.tool
        def search(query: str) -> list[str]:
            "Search."
            return []

        @rt.tool(timeout=5)
        def delete_account(name: str) -> None:
            "Delete."

        @rt.tool(read_only=True, timeout=5)
        def send_mail(to: str) -> None:
            "Send."

        rt.add(failwise.HttpTool("make_it", "POST", "https://a.example/items"))
        """
    )
    assert found["rules"] == {
        "undeclared": ["search"],
        "no_timeout": ["search"],
        "risky_name": ["delete_account", "make_it"],
        "contradiction": ["send_mail"],
    }
    risky = next(one for one in found["all"] if one["tool"] == "delete_account")
    assert risky["file"].endswith("agent.py")
    assert risky["line"] == 10
    assert risky["level"] == "error"
    assert "idempotency_key" in risky["write"]
    made = next(one for one in found["all"] if one["tool"] == "make_it")
    assert made["line"] == 18, "a tool without a function: where its name stands"


def test_blind_retries_are_found(lint: Lint) -> None:
    """tenacity's decorator, a loop that sleeps, a client of an SDK, a session's adapter, httpx's."""
    found = lint(
        """
        import time
        import failwise, httpx, openai, requests, tenacity
        rt = failwise.Runtime(":memory:")
        client = openai.OpenAI(api_key="none", max_retries=4)
        calm = openai.OpenAI(api_key="none", max_retries=0)
        session = requests.Session()
        session.mount("https://", requests.adapters.HTTPAdapter(max_retries=2))
        web = httpx.Client(transport=httpx.HTTPTransport(retries=3))
        said = dict(read_only=True, timeout=5)

        @rt.tool(**said)
        @tenacity.retry(stop=tenacity.stop_after_attempt(3))
        def look_up(name: str) -> None: ...

        @rt.tool(**said)
        @tenacity.retry
        async def look_again(name: str) -> None: ...

        @rt.tool(**said)
        def look_long(name: str) -> None:
            for attempt in range(3):
                try:
                    return web.get(name)
                except Exception:
                    time.sleep(1)

        @rt.tool(**said)
        def ask(name: str) -> None:
            return client.responses.create(model="m", input=name)

        @rt.tool(**said)
        def ask_calmly(name: str) -> None:
            return calm.responses.create(model="m", input=name)

        @rt.tool(**said)
        def fetch(name: str) -> None:
            return session.get(name)

        @rt.tool(**said)
        def walk(name: str) -> None:
            for page in range(3):
                try:
                    session_page = page
                except ValueError:
                    raise
                time.sleep(0)
        """
    )
    assert found["rules"] == {
        "blind_retry": ["look_up", "look_again", "look_long"],
        "client_retry": ["look_long", "ask", "fetch"],
    }
    assert "tenacity" in found["all"][0]["message"]
    hows = [one["message"] for one in found["all"] if one["rule"] == "client_retry"]
    assert "retries=3" in hows[0]
    assert "max_retries=4" in hows[1]
    assert "max_retries=2" in hows[2]


def test_duplicates_and_fallbacks(lint: Lint) -> None:
    """Two tools of a name, one function of two names, a write that falls back on a write."""
    found = lint(
        """
        import failwise
        one, other = failwise.Runtime(":memory:"), failwise.Runtime(":memory:")

        @one.tool(read_only=False, timeout=5, fallback=["create_elsewhere", "nobody"])
        def create_order(sku: str) -> None: ...

        @one.tool(read_only=False, timeout=5)
        def create_elsewhere(sku: str) -> None: ...

        @other.tool(name="create_order", read_only=False, timeout=5)
        def also(sku: str) -> None: ...

        def look(x: int) -> None: ...
        one.add(look, read_only=True, timeout=5)
        other.add(look, name="look_too", read_only=True, timeout=5)
        """
    )
    assert found["rules"] == {
        "fallback_of_write": ["create_order"],
        "unknown_fallback": ["create_order"],
        "duplicate_name": ["create_order"],
        "duplicate_function": ["look_too"],
    }


def test_an_mcp_servers_tools_are_known(lint: Lint) -> None:
    """Their annotations are their declarations."""
    found = lint(
        """
        from mcp.server import MCPServer
        from mcp_types import ToolAnnotations
        server = MCPServer("shop")

        @server.tool()
        def pay(amount: int) -> None: ...

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def prices(sku: str) -> None: ...
        """,
        "--ignore",
        "no_timeout",
        thing=":server",
    )
    assert found["tools"] == 2
    assert found["rules"] == {"risky_name": ["pay"]}
    assert found["all"][0]["framework"] == "mcp"


def test_other_frameworks_tools_are_known_by_their_looks(lint: Lint) -> None:
    """Objects with the attributes of LangChain's, OpenAI Agents' and pydantic-ai's tools."""
    found = lint(
        """
        class StructuredTool:
            def __init__(self, func):
                self.name, self.func, self.args_schema, self.coroutine = func.__name__, func, {}, None

        class FunctionTool:
            def __init__(self, function):
                self.name, self.params_json_schema = function.__name__, {}
                async def on_invoke_tool(context, text):
                    return function(text)
                self.on_invoke_tool = on_invoke_tool
                self.timeout_seconds = 30.0

        class Tool:
            def __init__(self, function):
                self.name, self.function, self.takes_ctx = function.__name__, function, False

        class Agent:
            def __init__(self, tools):
                self.tools = tools

        def send_money(to): ...
        def get_weather(city): ...
        def book_flight(number): ...

        agent = Agent([StructuredTool(send_money), FunctionTool(get_weather)])
        toolset = {"book": Tool(book_flight)}
        """,
        "--ignore",
        "no_timeout",
    )
    assert found["tools"] == 3
    assert found["rules"] == {
        "risky_name": ["send_money", "book_flight"],
        "undeclared": ["get_weather"],
    }
    lines = {one["tool"]: one["line"] for one in found["all"]}
    assert lines == {"send_money": 22, "get_weather": 23, "book_flight": 24}
    frameworks = {one["tool"]: one["framework"] for one in found["all"]}
    assert frameworks["get_weather"] == "openai-agents"
    assert frameworks["book_flight"] == "pydantic-ai"


def test_a_files_declarations_count(lint: Lint, folder: Path) -> None:
    """What failwise.toml says of a tool made elsewhere is said."""
    (folder / "failwise.toml").write_text(
        '[declare."pay_*"]\nread_only = false\ntimeout = 20\n', "utf-8"
    )
    program = """
        class StructuredTool:
            def __init__(self, func):
                self.name, self.func, self.args_schema = func.__name__, func, {}
        def pay_bill(number): ...
        tools = [StructuredTool(pay_bill)]
        """
    assert lint(program)["rules"] == {}
    (folder / "failwise.toml").unlink()
    assert lint(program)["rules"] == {"risky_name": ["pay_bill"], "no_timeout": ["pay_bill"]}


def test_a_tool_seen_twice_is_one(lint: Lint) -> None:
    """The list of tools and the agent that holds it."""
    found = lint(
        """
        class StructuredTool:
            name, args_schema = "look", {}
            def func(self): ...
        tools = [StructuredTool()]
        class Agent: ...
        agent = Agent()
        agent.tools = tools
        """,
        "--ignore",
        "no_timeout",
    )
    assert (found["tools"], found["rules"]) == (1, {"undeclared": ["look"]})


def test_people_read_lines_and_programs_json(failwise: Failwise, folder: Path) -> None:
    """Both languages; places as paths from here."""
    (folder / "shop.py").write_text(
        "import failwise\nrt = failwise.Runtime(':memory:')\n\n"
        "@rt.tool(timeout=5)\ndef pay(amount: int) -> None: ...\n",
        "utf-8",
    )
    ended = failwise("lint", "shop:rt")
    assert ended.code == 1
    assert ended.out.startswith("shop.py:4  risky_name  pay: the name says")
    assert "write: declare it: read_only=False" in ended.out
    assert "1 findings in 1 tools." in ended.out
    chinese = failwise("lint", "shop:rt", "--lang", "zh")
    assert "应写" in chinese.out
    clean = failwise("lint", "shop:rt", "--ignore", "risky_name")
    assert (clean.code, clean.out) == (0, "1 tools, nothing to say.\n")


def test_what_cannot_be_linted_is_told(failwise: Failwise, folder: Path) -> None:
    """A module that is not there, that breaks, without tools; a rule that does not exist."""
    (folder / "empty.py").write_text("x = 1\n", "utf-8")
    (folder / "broken.py").write_text("raise RuntimeError('no database')\n", "utf-8")
    nothing = failwise("lint", "empty")
    assert nothing.code == 1
    assert "empty:OBJECT" in nothing.out
    for given, told in (
        ("nowhere", "cannot be imported"),
        ("nowhere.py", "no such file"),
        ("broken", "no database"),
        ("empty:tools", "empty has no tools"),
    ):
        ended = failwise("lint", given)
        assert ended.code == 2
        assert told in ended.err
    ended = failwise("lint", "empty", "--ignore", "nonsense")
    assert ended.code == 2
    assert all(rule in ended.err for rule in rule_names())


@pytest.mark.parametrize(
    ("name", "risky"),
    [
        ("create_order", True), ("deleteUser", True), ("shop__pay", True), ("pay", True),
        ("stripe.refund_charge", True), ("bulk-delete", True), ("SendMail", True),
        ("get_order", False), ("list_payments", False), ("search", False), ("order_status", True),
        ("check_transfer", False), ("weather", False), ("payments", False), ("is_paid", False),
        ("", False), ("查询", False),
    ],
)  # fmt: skip
def test_risky_names(name: str, risky: bool) -> None:
    """A first word that changes something, or a strong one anywhere; not after a looking word."""
    assert is_risky(name) is risky
