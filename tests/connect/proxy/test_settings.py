"""The proxy's file: what it takes, and what it says of what it does not."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from failwise import ConfigurationError
from failwise.connect.proxy import ToolSettings, read_settings
from failwise.connect.proxy.settings import filled
from failwise.connect.proxy.tools import LONGEST_NAME, shown_name
from failwise.redaction import default


def written(folder: Path, data: Any) -> Path:
    path = folder / "mcp.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=2))
    return path


def test_a_hosts_file_is_read_as_it_is(tmp_path: Path) -> None:
    """Entries of desktop hosts, disabled ones left out, our keys beside them."""
    path = written(
        tmp_path,
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server"], "env": {"A": "b"}},
                "off": {"command": "x", "disabled": True},
                "remote": {
                    "type": "http",
                    "url": "https://api.example/mcp",
                    "headers": {"Authorization": "Bearer ${TOKEN}"},
                    "failwise": {
                        "timeout": 5,
                        "trust_annotations": True,
                        "tools": {"get_*": {"read_only": True}, "pay": {"verified_by": "get_pay"}},
                    },
                },
            },
            "failwise": {"lang": "zh", "hide_open": True},
        },
    )
    settings = read_settings(path)
    files, remote = settings.servers
    assert (files.name, files.command, files.args) == ("files", "npx", ("-y", "server"))
    assert (remote.url, remote.timeout, remote.trust_annotations) == (
        "https://api.example/mcp",
        5.0,
        True,
    )
    assert remote.of("get_user") == ToolSettings(read_only=True)
    assert remote.of("pay").verified_by == "get_pay"
    assert remote.of("other") == ToolSettings()
    assert (settings.lang, settings.hide_open, settings.notes) == ("zh", True, True)


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ({}, 'either "command" or "url"'),
        ({"command": "x", "url": "http://x"}, 'either "command" or "url"'),
        ({"command": "x", "argz": []}, "did you mean 'args'"),
        ({"command": "x", "args": "y"}, '"args" is a list'),
        ({"url": "ftp://x"}, "begins with http"),
        ({"url": "http://x", "type": "sse"}, "streamable HTTP"),
        ({"command": "x", "env": {"A": 1}}, "write a text"),
        ({"command": "x", "failwise": {"timout": 1}}, "did you mean 'timeout'"),
        ({"command": "x", "failwise": {"timeout": 0}}, "a number above 0"),
        ({"command": "x", "failwise": {"tools": {"t": {"read_only": "yes"}}}}, "true or false"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, server: Any, told: str) -> None:
    """File, line where there is one, and what to write instead."""
    path = written(tmp_path, {"mcpServers": {"one": server}})
    with pytest.raises(ConfigurationError, match=told) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)
    assert caught.value.line is not None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": {}}', '{"mcpServers": 1}'])
def test_a_file_without_servers_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError):
        read_settings(written(tmp_path, text))


def test_secrets_come_from_variables_and_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filled in, and known to the redactor from then on; a missing one is named, no value ever."""
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-of-the-environment")
    script = "print('hunter3-of-the-command')"
    found = filled(
        {
            "Authorization": "Bearer ${SHOP_TOKEN}",
            "X-Other": {"command": [sys.executable, "-c", script]},
            "Plain": {"value": "${NOT_A_TEMPLATE}"},
        },
        "shop",
    )
    assert found == {
        "Authorization": "Bearer hunter2-of-the-environment",
        "X-Other": "hunter3-of-the-command",
        "Plain": "${NOT_A_TEMPLATE}",
    }
    shown = default().text("said hunter2-of-the-environment and hunter3-of-the-command")
    assert "hunter2" not in shown
    assert "hunter3" not in shown
    filled(
        {
            "Authorization": {"value": "Bearer written-in-the-file-1"},
            "X-Api-Key": {"value": "written-in-the-file-2"},
            "GIT_AUTHOR_NAME": {"value": "Annabel Smithson"},
        },
        "shop",
    )
    shown = default().text(
        "written-in-the-file-1, written-in-the-file-2 of Annabel Smithson; "
        "said Authorization: Bearer 0a1b2c3d4e5f6789 and Bearer 0a1b2c3d4e5f6780"
    )
    assert "written-in" not in shown
    assert "0a1b2c3d" not in shown, "a scheme that became a secret hides no token any more"
    assert "Annabel Smithson" in shown
    with pytest.raises(ConfigurationError, match="MISSING_VARIABLE"):
        filled({"A": "${MISSING_VARIABLE}"}, "shop")
    with pytest.raises(ConfigurationError, match="ended with 1"):
        filled({"A": {"command": [sys.executable, "-c", "raise SystemExit(1)"]}}, "shop")


def test_names_fit_what_model_providers_allow() -> None:
    """Allowed characters, 64 at most; what was cut or changed stays apart by a digest."""
    assert shown_name("shop__", "get_user") == "shop__get_user"
    first, second = shown_name("s__", "a" * 80 + "1"), shown_name("s__", "a" * 80 + "2")
    assert len(first) == len(second) == LONGEST_NAME
    assert first != second
    assert shown_name("", "get user") != shown_name("", "get.user")
