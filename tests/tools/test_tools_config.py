"""Tools from the ``[tools.NAME]`` tables of a configuration file."""

import tomllib
from pathlib import Path

import pytest

from failwise.tools import tools_from_config
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.spec import CallContext, ToolSpec

GOOD = """
[tools.get_order]
description = "查询订单"
url = "https://shop.example/orders/{order_id}"
fallback = ["cached_order"]
credential = "shop"
ca_file = "shop.pem"

[tools."create.order"]
method = "POST"
url = "https://shop.example/orders"
idempotency_key = "Idempotency-Key"
read_timeout = 20
schema_file = "order.json"
policy = { network = { retries = 1 } }

[tools.cached_order]
function = "sample_shop_tools:cached_order"
read_only = true
verify = "sample_shop_tools:Shop.verify"
"""

MODULE = '''
def cached_order(order_id: str) -> str:
    """From the cache."""
    return f"cached {order_id}"

class Shop:
    @staticmethod
    def verify(arguments):
        return True

CONSTANT = 5
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sample_shop_tools.py").write_text(MODULE, "utf-8")
    (tmp_path / "sample_broken_tools.py").write_text("import no_such_module_anywhere", "utf-8")
    (tmp_path / "order.json").write_text('{"properties": {"sku": {"type": "string"}}}', "utf-8")
    (tmp_path / "broken.json").write_text("{", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def load(folder: Path, text: str) -> list[ToolSpec]:
    file = folder / "failwise.toml"
    file.write_text(text, "utf-8")
    return tools_from_config(tomllib.loads(text)["tools"], file=str(file))


def test_http_tools_and_functions(folder: Path) -> None:
    """Both kinds come out as specs, in the file's order, with their options."""
    order, create, cached = load(folder, GOOD)
    assert (order.name, order.description, order.read_only) == ("get_order", "查询订单", True)
    assert (order.fallback, order.credential) == (("cached_order",), "shop")
    assert create.name == "create.order"
    assert create.schema == {"properties": {"sku": {"type": "string"}}}
    assert (create.idempotency_key, create.policy) == (
        "Idempotency-Key",
        {"network": {"retries": 1}},
    )
    assert cached.call is not None
    assert cached.verify is not None
    assert cached.call({"order_id": "7"}, CallContext()) == "cached 7"
    assert cached.verify({}) is True
    assert cached.description == "From the cache."


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", "give either url"),
        ('url = "https://a.example"\nfunction = "a:b"', "give either url"),
        ('url = "/orders"', "absolute"),
        ('url = "https://a.example"\nmethod = "FETCH"', "GET, HEAD"),
        ('url = "https://a.example"\nread_timout = 3', "did you mean read_timeout"),
        ('url = "https://a.example"\nverify_tls = false', "unknown option 'verify_tls'"),
        ('url = "https://a.example"\nname = "other"', "unknown option 'name'"),
        ('url = "https://a.example"\ntimeout = 0', "seconds above 0"),
        ('url = "https://a.example"\nmax_response_bytes = "5 MB"', "wrong type"),
        ('url = "https://a.example"\nheaders = "X"', "wrong type"),
        ('url = "https://a.example"\nschema_file = "missing.json"', "cannot be read"),
        ('url = "https://a.example"\nschema_file = "broken.json"', "no JSON"),
        ('url = "https://a.example"\nschema_file = "order.json"\nschema = {}', "not both"),
        ('url = "https://a.example"\nfallback = ["gone"]', r"there is no \[tools.gone\]"),
        ('function = "sample_shop_tools"', "write an import path"),
        ('function = "sample_shop_tools:missing"', "has no missing"),
        ('function = "sample_shop_tools:CONSTANT"', "is no function"),
        ('function = "sample_broken_tools:x"', "no_such_module_anywhere"),
        ('function = "sample_shop_tools:cached_order"\nmethod = "GET"', "unknown option 'method'"),
        ('function = "sample_shop_tools:cached_order"\nverify = 5', "write an import path"),
    ],
)
def test_errors_name_file_line_and_table(folder: Path, table: str, says: str) -> None:
    """What cannot work is told with its place and what to do."""
    with pytest.raises(ConfigurationError, match=says) as caught:
        load(folder, f"# tools\n\n[tools.broken]\n{table}\n")
    assert caught.value.file == str(folder / "failwise.toml")
    assert caught.value.line == 3
    assert "[tools.broken]" in str(caught.value)


def test_tables_that_are_none() -> None:
    """A value in a table's place is told, also where there is no file to read."""
    with pytest.raises(ConfigurationError, match=r"failwise.toml: \[tools.a\]: write a table"):
        tools_from_config({"a": 5})
    with pytest.raises(ConfigurationError, match=r"one \[tools.NAME\] table"):
        tools_from_config([])  # type: ignore[arg-type]
