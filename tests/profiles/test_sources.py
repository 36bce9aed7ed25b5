"""The sources of the package: valid, in our vocabulary, and compiled as they stand."""

import functools
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from failwise.profiles import Profiles, build, check
from failwise.vocabulary.codes import category_of, registry

ROOM = Path(str(resources.files("failwise.profiles")))
SOURCES = ROOM / "data"
NAMES = sorted(path.stem for path in SOURCES.glob("*.yaml"))


@functools.cache
def sources() -> dict[str, Any]:
    """All sources, read once."""
    return dict(build.sources(SOURCES))


def test_all_are_there() -> None:
    """The package carries 71 profiles, and the library names them all."""
    assert len(NAMES) == 71
    assert list(Profiles.default().names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_is_valid(name: str) -> None:
    """Each source fits the schema and the rules beyond it, with registered codes only."""
    schema = json.loads((ROOM / "schema.json").read_text("utf-8"))
    data = sources()[name]
    jsonschema_rs.validator_for(schema).validate(data)
    assert list(build.faults(data, registry(), strict=True)) == []
    assert data["sources"]
    for entry in data["codes"]:
        assert re.search("[\u4e00-\u9fff]", entry["zh"]), entry["code"]
        assert not re.search("[\u4e00-\u9fff]", entry["en"]), entry["code"]


def test_statuses_mean_the_same_everywhere() -> None:
    """Bare 408, 502 and 504 are the network's; a bare 503 promises nothing about the effect."""
    wanted = {"408": "network.request_timeout", "502": "network.bad_gateway", "504": "network.gateway_timeout"}  # fmt: skip
    for name, data in sources().items():
        for entry in data["codes"]:
            code = entry["code"].removeprefix("http:")
            if entry["code"].startswith("http:") and code in wanted:
                assert entry["as"] == wanted[code], (name, code)
            if entry["code"] == "http:503":
                assert entry["effect"] == "unknown", name


def test_nothing_is_retried_that_no_wait_cures() -> None:
    """An exhausted quota, an empty balance or an unpaid bill is never advised to be repeated."""
    cured_by_people = {
        "business.quota_exhausted",
        "business.insufficient_balance",
        "business.billing",
    }
    for name, data in sources().items():
        for entry in data["codes"]:
            if entry["as"] in cured_by_people:
                assert entry["action"] not in build.RETRIES, (name, entry["code"])
            if category_of(entry["as"]) == "rate_limit":
                assert entry["transient"], (name, entry["code"])


def test_compiled_files_are_those_of_the_sources(tmp_path: Path) -> None:
    """A rebuild gives, byte for byte, what the package carries (where it has been built)."""
    made = build.build(SOURCES)
    assert made == build.build(SOURCES)
    compiled = ROOM / "compiled"
    if not (compiled / build.INDEX).is_file():
        pytest.skip("never built here: the sources are used")
    assert {path.name: path.read_text("utf-8") for path in compiled.glob("*.json")} == made, (
        "a source has changed: run python src/failwise/profiles/build.py"
    )


def test_the_index_is_small() -> None:
    """What is read at the first failure stays below 60 kB."""
    made = build.build(SOURCES)
    assert len(made[build.INDEX].encode()) < 60_000


def test_writing_removes_what_is_gone(tmp_path: Path) -> None:
    """A profile that was taken out of the sources leaves no compiled file behind."""
    source, target = tmp_path / "data", tmp_path / "compiled"
    source.mkdir()
    for name in ("slack", "stripe"):
        (source / f"{name}.yaml").write_text((SOURCES / f"{name}.yaml").read_text("utf-8"), "utf-8")
    build.write(source, target)
    (source / "stripe.yaml").unlink()
    build.write(source, target)
    assert sorted(path.name for path in target.iterdir()) == ["index.json", "slack.json"]


def test_a_checkout_that_was_never_built_reads_its_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiled files the same profiles are made in memory."""
    from failwise.profiles import library

    for cached in (
        library._shipped_index,
        library._shipped_ids,
        library._recognition,
        library._shipped,
    ):
        cached.cache_clear()
    monkeypatch.setattr(library, "_compiled", lambda name: None)
    try:
        slack = Profiles().get("slack")
        assert slack is not None
        assert any(entry.code == "channel_not_found" for entry in slack.entries)
    finally:
        for cached in (library._shipped_index, library._shipped_ids, library._recognition, library._shipped):  # fmt: skip
            cached.cache_clear()


def test_reading_a_source_is_plain_yaml() -> None:
    """Our reader with its line numbers gives what YAML's own safe reader gives."""
    for name in ("feishu", "github", "redis"):
        text = (SOURCES / f"{name}.yaml").read_text("utf-8")
        data, lines = build.load(text)
        assert data == yaml.safe_load(text)
        assert text.splitlines()[lines["codes", 0] - 1].lstrip().startswith("- {code:")


def test_the_check_passes_on_our_own() -> None:
    """`check` finds nothing wrong with the package's own folder."""
    assert check(SOURCES) == []
