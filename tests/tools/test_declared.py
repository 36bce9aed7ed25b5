"""Declarations of tools made elsewhere: whom they speak of, who has the last word, what is refused."""

from pathlib import Path
from typing import Any

import pytest

import failwise
from failwise.cli.configuration import load
from failwise.testing import SteppingClock
from failwise.tools.declared import Declarations


def spec(name: str, **options: Any) -> failwise.ToolSpec:
    return failwise.ToolSpec(name, call=lambda arguments, context: 1, **options)


def test_the_person_has_the_last_word() -> None:
    """Option by option: what the declarations say wins over the tool, what they do not say stays."""
    with failwise.Runtime(
        ":memory:", declarations={"pay_*": {"read_only": False, "timeout": 20, "upstream": "bank"}}
    ) as runtime:
        runtime.add(spec("pay_bill", read_only=True, timeout=5, idempotent=True))
        runtime.add(spec("search", read_only=True))
        paying = runtime.tools["pay_bill"]
        assert (paying.read_only, paying.timeout, paying.upstream) == (False, 20, "bank")
        assert paying.idempotent is True
        assert runtime.tools["search"].read_only is True


def test_exact_beats_glob_and_the_longer_glob_the_shorter() -> None:
    """Whatever their order; of equals the later one."""
    declared = Declarations(
        {
            "shop_order": {"timeout": 1},
            "shop_*": {"timeout": 2, "read_only": True},
            "*": {"timeout": 3, "read_only": False, "repair": "off"},
            "s[a-z]op_*": {"timeout": 4},
            "?hop_*": {"upstream": "a"},
            "sho?_*": {"upstream": "b"},
        }
    )
    assert declared.of("shop_order") == {
        "timeout": 1, "read_only": True, "repair": "off", "upstream": "b",
    }  # fmt: skip
    assert declared.of("other") == {"timeout": 3, "read_only": False, "repair": "off"}


def test_a_declared_read_is_repeated_and_a_declared_write_is_not() -> None:
    """The effect rule goes by what the person says."""
    calls = {"look": 0, "act": 0}

    def counting(name: str) -> Any:
        def call(arguments: Any, context: Any) -> Any:
            calls[name] += 1
            raise ConnectionResetError(104, "reset by peer")

        return call

    declarations = {"look": {"read_only": True}, "act": {"read_only": False}}
    with failwise.Runtime(
        ":memory:", declarations=declarations, clock=SteppingClock(), jitter=0
    ) as runtime:
        for name, said in (("look", None), ("act", True)):
            runtime.add(failwise.ToolSpec(name, call=counting(name), read_only=said))
            runtime.call_sync(name, {})
    assert calls == {"look": 4, "act": 1}


def test_requests_are_another_matter() -> None:
    """A pattern with a method speaks of a client's requests, one without of tools; neither of both."""
    declared = Declarations(
        {"*": {"timeout": 3, "read_only": True}, "POST *": {"idempotency_key": "Key"}}
    )
    assert declared.of("anything") == {"timeout": 3, "read_only": True}
    assert declared.of_request("POST", "a.example/x") == {"idempotency_key": "Key"}
    assert declared.of_request("GET", "a.example/x") == {}


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"a": {"readonly": True}}, "did you mean read_only"),
        ({"a": {"idempotency_key": "Key"}}, "the tool itself must send it"),
        ({"a": {"credential": "shop"}}, "the tool itself must send it"),
        ({"a": {"read_only": "yes"}}, "write true or false"),
        ({"a": {"timeout": -1}}, "seconds above 0"),
        ({"a": {"timeout": "30"}}, "seconds above 0"),
        ({"a": {"fallback": 3}}, "name tools"),
        ({"a": {"verify": "nowhere"}}, "import path"),
        ({"a": {"verify": 3}}, "name a function"),
        ({"a": {"repair": "yes"}}, "write one of"),
        ({"a": {"policy": 3}}, "write rows"),
        ({"a": {"read_only": True, "destructive": True}}, "contradict"),
        ({"a": 3}, "write a table"),
        ({" ": {}}, "name a tool"),
        ({"get a.example": {}}, "a method and an address"),
        ({"POST a.example/*": {"timeout": 3}}, "unknown option 'timeout'"),
        (3, "write a mapping"),
    ],
)
def test_what_cannot_be_meant_is_refused(tables: Any, told: str) -> None:
    """With what to write instead."""
    with pytest.raises(failwise.ConfigurationError, match=told):
        Declarations(tables)


def test_what_a_tool_cannot_be_is_refused_when_it_comes() -> None:
    """A declaration that contradicts the tool's own, and a policy that cannot be read."""
    with failwise.Runtime(":memory:") as runtime:
        runtime.declare({"wipe": {"read_only": True}, "look": {"policy": {"netwrk": {}}}})
        with pytest.raises(failwise.UsageError, match="contradict"):
            runtime.add(spec("wipe", destructive=True))
        with pytest.raises(failwise.UsageError, match="netwrk"):
            runtime.add(spec("look"))
        assert not runtime.tools
        runtime.declare({})
        runtime.add(spec("wipe", destructive=True))


FILE = """
[declare."*"]
timeout = 30

[declare."pay_*"]
read_only = false
verify = "checks:paid"
fallback = ["look"]

[declare.pay_small.policy.network]
retries = 1

[declare."POST */search"]
read_only = true

[tools.look]
url = "https://shop.example/items"
timeout = 5
"""


def test_a_file_declares(tmp_path: Path) -> None:
    """``[declare]`` tables hold for tools that code registers; a tool's own table beats a glob."""
    (tmp_path / "checks.py").write_text("def paid(arguments): return True\n", "utf-8")
    path = tmp_path / "failwise.toml"
    path.write_text(FILE, "utf-8")
    with load(path) as runtime:
        runtime.add(spec("pay_small", read_only=True, timeout=1))
        pay = runtime.tools["pay_small"]
        assert (pay.read_only, pay.timeout, pay.fallback) == (False, 30, ("look",))
        assert pay.verify is not None
        assert pay.policy == {"network": {"retries": 1}}
        assert runtime.tools["look"].timeout == 5
        assert runtime._declarations is not None
        assert runtime._declarations.of_request("POST", "a/search") == {"read_only": True}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[declare."pay_*"]\nreadonly = true\n', "toml:2: .*did you mean read_only"),
        ('\n[declare]\n"pay_*" = 3\n', "toml:3: .*write a table"),
        ("[declare.pay]\ntimeout = 0\n", "toml:2: .*seconds above 0"),
        ('[declare.pay]\nverify = "nowhere:f"\n', "toml:2: .*cannot be imported"),
        ("[declared.pay]\ntimeout = 3\n", "toml:1: .*did you mean declare"),
    ],
)
def test_mistakes_in_a_file_have_their_line(tmp_path: Path, text: str, told: str) -> None:
    """File, line, and what to write."""
    path = tmp_path / "failwise.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(failwise.ConfigurationError, match=told):
        load(path)
