"""What people read of a pasted error, of arguments, of a text with secrets."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Failwise

GATEWAY = "获取首页数据失败: exception: 伺服器错误 502: !doctype htmlhtml lang"
UNTRUSTED = "建立安全连接失败 由于不能验证所收到的数据是否可信,无法显示您想要查看的页面"
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA), "utf-8")
    return str(file)


def row(out: str, name: str) -> str:
    """The value beside a name in a table of facts."""
    line = next(line for line in out.splitlines() if line.startswith(name))
    return line[len(name) :].strip()


def test_a_log_line_is_taken_apart(failwise: Failwise) -> None:
    """Context, wrapper, message and HTML remnant are shown apart, with the verdict and its rule."""
    ended = failwise("classify", GATEWAY)
    assert ended.code == 0
    assert row(ended.out, "code") == "network.bad_gateway"
    assert row(ended.out, "HTTP status") == "502"
    assert row(ended.out, "context") == "获取首页数据失败"
    assert row(ended.out, "wrapper") == "exception"
    assert row(ended.out, "message") == "伺服器错误 502"
    assert row(ended.out, "HTML remnant") == "!doctype htmlhtml lang"
    assert row(ended.out, "effect").startswith("unknown")


def test_the_same_in_chinese(failwise: Failwise) -> None:
    """In Chinese every name and sentence is Chinese; not sent, no retry, where to look."""
    ended = failwise("classify", "--lang", "zh", UNTRUSTED)
    assert row(ended.out, "代码") == "security.certificate_unverified"
    assert row(ended.out, "是否生效").startswith("未发出")
    assert row(ended.out, "能否重试") == "不要重试"
    assert "系统时间" in row(ended.out, "处理办法")


def test_json_has_the_whole_failure(failwise: Failwise) -> None:
    """``--json`` is the failure as data with the retry verdict; a success says so."""
    data = json.loads(failwise("classify", "--json", GATEWAY).out)
    assert (data["failed"], data["code"], data["retry"]) == (True, "network.bad_gateway", "yes")
    assert data["details"]["parts"]["context"] == "获取首页数据失败"
    data = json.loads(failwise("classify", "--json", "Order 4291 created").out)
    assert (data["failed"], data["category"]) == (False, "success")


def test_text_file_and_standard_input_are_alike(failwise: Failwise, tmp_path: Path) -> None:
    """The same text by argument, by file and by pipe gives the same answer."""
    file = tmp_path / "error.log"
    file.write_text(GATEWAY, "utf-8")
    outs = {
        failwise("classify", GATEWAY).out,
        failwise("classify", str(file)).out,
        failwise("classify", "-", stdin=GATEWAY).out,
        failwise("classify", stdin=GATEWAY).out,
    }
    assert len(outs) == 1


def test_the_exit_code_tells_on_demand(failwise: Failwise) -> None:
    """``--exit-code`` gives 1 for a failure and 0 for none."""
    assert failwise("classify", "--exit-code", GATEWAY).code == 1
    ended = failwise("classify", "--exit-code", "all is well")
    assert (ended.code, ended.out) == (0, "No failure found.\n")


def test_lines_are_judged_alone(failwise: Failwise) -> None:
    """With ``--lines`` only the lines that tell of a failure are shown, with their numbers."""
    log = (
        "started\nConnectionRefusedError: [Errno 111] Connection refused\nserved 404 users\n"
        + GATEWAY
    )
    found = [
        json.loads(line)
        for line in failwise("classify", "--lines", "--json", stdin=log).out.splitlines()
    ]
    assert [(one["line"], one["code"]) for one in found] == [
        (2, "network.connect_refused"),
        (4, "network.bad_gateway"),
    ]
    shown = failwise("classify", "--lines", stdin=log).out
    assert "network.connect_refused" in shown
    assert "served" not in shown
    assert "2 lines" not in failwise("classify", "--lines", stdin="a\nb\n").out


def test_the_trail_names_the_rules(failwise: Failwise) -> None:
    """``--trail`` shows which rules spoke and which won."""
    out = failwise("classify", "--trail", UNTRUSTED).out
    assert "text.connection.untrusted" in row(out, "winner")
    assert out.count("rules that spoke") >= 1


def test_nothing_steers_the_terminal(failwise: Failwise) -> None:
    """Control characters of the pasted text never reach the terminal, nor is it read as markup."""
    out = failwise("classify", "\x1b]0;owned\x07 502 Bad Gateway [bold]x[/bold]").out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_repairs_are_shown_as_a_difference(failwise: Failwise, schema: str) -> None:
    """Each edit: where, what stood there, what stands there now; then the arguments."""
    ended = failwise("arguments", "--schema", schema, "{'query': 'shoes', \"limit\": \"5\"}")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert '- "5"' in lines
    assert "+ 5" in lines
    assert json.loads(ended.out[ended.out.index("\n{") :]) == {"query": "shoes", "limit": 5}


def test_right_arguments_are_left_alone(failwise: Failwise, schema: str) -> None:
    """What is right is said to be right."""
    ended = failwise("arguments", "--schema", schema, '{"query": "shoes"}')
    assert "right as they are" in ended.out


def test_refused_arguments_say_why(failwise: Failwise, schema: str) -> None:
    """What cannot be used: exit code 1 and the reason, in either language; as data too."""
    ended = failwise("arguments", "--schema", schema, '{"limit": "many"}')
    assert ended.code == 1
    assert "query" in ended.out
    assert "必填" in failwise("arguments", "--schema", schema, '{"limit": "x"}', "--lang", "zh").out
    data = json.loads(failwise("arguments", "--schema", schema, "--json", "no").out)
    assert data["arguments"] is None
    assert data["failure"]["category"] == "model_output"


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "search", "parameters": SCHEMA}},
        {"name": "search", "input_schema": SCHEMA},
        {"name": "search", "inputSchema": SCHEMA},
    ],
)
def test_a_tools_definition_will_do(
    failwise: Failwise, tmp_path: Path, definition: dict[str, object]
) -> None:
    """Where the file holds a tool as models' APIs or MCP define it, its schema is found."""
    file = tmp_path / "tool.json"
    file.write_text(json.dumps(definition), encoding="utf-8")
    data = json.loads(failwise("arguments", "--json", "--schema", str(file), '{"limit": 1}').out)
    assert data["failure"]["code"] == "model_output.schema_violation"


def test_a_wrong_schema_names_the_file(failwise: Failwise, tmp_path: Path) -> None:
    """A schema that is no JSON is told with its line; without a schema, what to give."""
    file = tmp_path / "schema.json"
    file.write_text('{\n  "type": object\n}', "utf-8")
    ended = failwise("arguments", "--schema", str(file), "{}")
    assert ended.code == 2
    assert f"{file}:2: not JSON" in ended.err
    assert "--schema" in failwise("arguments", "{}").err


def test_redact_keeps_the_rest(failwise: Failwise) -> None:
    """Secrets go, everything else stays, at every way in."""
    token = "ghp_" + "a1B2" * 9
    ended = failwise("redact", "-", stdin=f"GET /orders\nauthorization: Bearer {token}\n")
    assert ended.code == 0
    assert token not in ended.out
    assert ended.out.startswith("GET /orders\n")
    data = json.loads(failwise("redact", "--json", "nothing to hide").out)
    assert data == {"text": "nothing to hide", "changed": False}
