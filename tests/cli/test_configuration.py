"""``failwise.toml``: what it makes, and how its mistakes are told."""

from pathlib import Path

import pytest

from failwise.cli.configuration import load, read
from failwise.cli.places import line_of
from failwise.redaction import default
from failwise.vocabulary.errors import ConfigurationError

TOOL = '[tools.search]\nurl = "http://127.0.0.1:1/search"\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "failwise.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_whole_configuration_becomes_a_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every section at once; paths count from the file's folder; nothing is opened."""
    monkeypatch.setenv("CONFIGURATION_TEST_KEY", "value-of-the-key-1")
    monkeypatch.setenv("CONFIGURATION_TEST_PASSWORD", "open sesame 99")
    (tmp_path / "configuration_test_login.py").write_text(
        "def get():\n    return 'a'\ndef renew():\n    return 'b'\n", encoding="utf-8"
    )
    (tmp_path / "rows.toml").write_text("[network]\nretries = 1\n", encoding="utf-8")
    (tmp_path / "profiles").mkdir()
    file = written(
        tmp_path,
        TOOL
        + """credential = "one"
[credentials.one]
env = "CONFIGURATION_TEST_KEY"
[credentials.two]
function = "configuration_test_login:get"
refresh = "configuration_test_login:renew"
[policy]
file = "rows.toml"
[guards.concurrency]
limit = 3
[journal]
path = "records/journal.db"
retention_days = 7
[profiles]
paths = ["profiles"]
[redaction]
secrets = ["CONFIGURATION_TEST_PASSWORD", "CONFIGURATION_TEST_UNSET"]
""",
    )
    runtime = load(file)
    assert list(runtime.tools) == ["search"]
    assert runtime.journal.place == str(tmp_path / "records" / "journal.db")
    assert "sesame" not in default().text("it was open sesame 99, I think")
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("[tool.search]\n", 1, "did you mean tools?"),
        ("tools = 5\n", 1, "write a table: [tools]"),
        ("[tools.search\n", 1, "not valid TOML"),
        (TOOL + "reed_only = true\n", 1, "did you mean read_only?"),
        (TOOL + 'credential = "shop"\n', 3, "there is no [credentials.shop]"),
        ("[credentials.shop]\nenv = 'NO_SUCH_VARIABLE_HERE'\n", 2, "export it first"),
        ("[credentials.shop]\n", 1, "give either env"),
        ("[credentials]\nshop = 'x'\n", 2, "write a table"),
        ("[credentials.shop]\nenv = 'A'\nvalue = 'x'\n", 3, "unknown key 'value'"),
        ("[credentials.shop]\nfunction = 'no_such_module_here:f'\n", 2, "cannot be imported"),
        ("[credentials.shop]\nfunction = 'f'\n", 2, "write an import path"),
        ("[credentials.shop]\nfunction = 'os:sep'\n", 2, "is no function"),
        (
            "[policy]\n[policy.network]\nretries = 2\n[policy.server]\nretries = -1\n",
            5,
            "0 or more",
        ),
        ("[policy.network]\nstratgy = 'fixed'\n", 2, "did you mean 'strategy'?"),
        ("[policy]\npreset = 'brave'\n", 2, "say one of default"),
        ("[policy]\nfile = 'p.toml'\nwait_ceiling = 3\n", 3, "exclude each other"),
        ("[guards.concurrency]\nlimit = 0\n", 2, "from 1 to"),
        ("[arguments]\nrepiar = 'off'\n", 2, "did you mean repair?"),
        ("[arguments]\nrepair = 'always'\n", 2, 'write "auto" or "confirm" or "off"'),
        ("[arguments]\nrepair = ['off']\n", 2, 'write "auto" or "confirm" or "off"'),
        ("[arguments]\n\nfixer = 'no_such_module_here:f'\n", 3, "cannot be imported"),
        ("[arguments]\nfixer = 5\n", 2, "write an import path"),
        ("[journal]\npth = 'x'\n", 2, "did you mean path?"),
        ("[journal]\npath = 5\n", 2, "write a path"),
        ("[journal]\nretention_days = 0\n", 2, "above 0"),
        ("[profiles]\npaths = 'x'\n", 2, "write a list"),
        ("[profiles]\npaths = ['nowhere']\n", 2, "does not exist"),
        ("[redaction]\nsecrets = 'x'\n", 2, "names of environment variables"),
    ],
)
def test_a_mistake_names_file_line_and_remedy(
    tmp_path: Path, text: str, line: int, told: str
) -> None:
    """Each mistake: the file, the line it stands on, and what to write instead."""
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load(file)
    assert told in str(caught.value)
    assert (caught.value.file, caught.value.line) == (str(file), line)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    """No file: how to name another."""
    with pytest.raises(ConfigurationError, match="--config"):
        read(tmp_path / "failwise.toml")


def test_lines_are_found_by_path() -> None:
    """Headers, keys, quoted names, inline tables: the nearest line that is there."""
    text = '# a\n[a]\nb = 1\n[a."c.d"]\ne.f = 2\n[a.g]\n# h = 1\nh = {i = 3}\n'
    assert line_of(text, "a") == 2
    assert line_of(text, "a", "b") == 3
    assert line_of(text, "a", "c.d", "e", "f") == 5
    assert line_of(text, "a", "g", "h", "i") == 8
    assert line_of(text, "a", "g", "other") == 6
    assert line_of(text, "other") is None


def test_the_look_at_a_certificate_is_switched_on_in_the_file(tmp_path: Path) -> None:
    """`[tls] probe = true`, and what is wrong in that section with its line."""
    file = tmp_path / "failwise.toml"
    file.write_text("[tls]\nprobe = true\n")
    assert load(file)._tls_probe is True
    file.write_text('[tls]\nprobe = "yes"\n')
    with pytest.raises(ConfigurationError, match=r"failwise\.toml:2: .*write true or false"):
        load(file)
    file.write_text("[tls]\nprobing = true\n")
    with pytest.raises(ConfigurationError, match="did you mean probe"):
        load(file)
