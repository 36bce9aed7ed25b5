"""The time left is told to upstreams that know a header for it."""

from pathlib import Path

import pytest

import failwise
from failwise.faults import Fault, FaultServer
from failwise.profiles import Profiles
from failwise.tools.deadline import deadline_header
from failwise.vocabulary.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds", "value"),
    [
        ("X-Request-Timeout", 2.0, "2"),
        ("X-Request-Timeout seconds", 2.1, "3"),
        ("X-Request-Timeout", 0.0, "1"),
        ("X-Timeout-Ms milliseconds", 1.5, "1500"),
        ("X-Timeout-Ms milliseconds", 0.0, "1"),
        ("grpc-timeout grpc", 1.5, "1500m"),
        ("grpc-timeout grpc", 1e6, "1000000S"),
        ("grpc-timeout grpc", 1e12, "99999999S"),
    ],
)
def test_each_unit_has_its_words(text: str, seconds: float, value: str) -> None:
    """Rounded up, never zero, at most gRPC's eight digits."""
    assert deadline_header("look", text).value(seconds) == value


@pytest.mark.parametrize("text", ["", "two words", "name: value", "x-a years"])
def test_what_is_no_header_is_refused(text: str) -> None:
    """With an example of each form."""
    with pytest.raises(UsageError, match="grpc-timeout grpc"):
        failwise.HttpTool("look", "GET", "https://shop.example/", deadline_header=text)


def sent(tool_options: dict[str, object], deadline: float | None) -> dict[str, str]:
    """The headers that a server gets from one call."""
    with FaultServer() as server:
        server.route("GET", "/", [Fault.json({})])
        runtime = failwise.Runtime(":memory:")
        runtime.add(failwise.HttpTool("look", "GET", server.url("/"), **tool_options))  # type: ignore[arg-type]
        runtime.call_sync("look", {}, deadline=deadline)
        runtime.close()
        return {name.lower(): value for name, value in server.requests[0].headers.items()}


def test_the_call_s_deadline_goes_along_cut_like_the_attempt_s_limit() -> None:
    """The shorter of the tool's timeout and the call's deadline."""
    options: dict[str, object] = {"deadline_header": "X-Timeout-Ms milliseconds", "timeout": 30}
    assert 4000 < int(sent(options, 5.0)["x-timeout-ms"]) <= 5000
    assert 29000 < int(sent(options, None)["x-timeout-ms"]) <= 30000


def test_a_profile_knows_the_header_and_the_tool_s_own_word_wins() -> None:
    """grpc: ``grpc-timeout``; google: ``X-Server-Timeout``; none where nothing is known."""
    assert sent({"profile": "grpc", "timeout": 5}, None)["grpc-timeout"].endswith("m")
    assert sent({"profile": "google", "timeout": 5}, None)["x-server-timeout"] == "5"
    own = sent({"profile": "grpc", "deadline_header": "X-Mine", "timeout": 5}, None)
    assert own["x-mine"] == "5"
    assert "grpc-timeout" not in own
    fixed = sent({"profile": "grpc", "headers": {"Grpc-Timeout": "1H"}, "timeout": 5}, None)
    assert fixed["grpc-timeout"] == "1H"
    assert not any("timeout" in name for name in sent({"profile": "stripe", "timeout": 5}, None))
    assert not any("timeout" in name for name in sent({"profile": "grpc", "timeout": None}, None))


def test_a_profile_of_one_s_own_names_it_in_yaml(tmp_path: Path) -> None:
    """``deadline: {header, unit}``, checked at load."""
    file = tmp_path / "shop.yaml"
    text = (
        "schema: 1\nid: shop\nname: Shop\nkind: api\ndetect: {hosts: [shop.example]}\n"
        "error_in: http_status\nfields: {code: [code], message: [message]}\n"
        "deadline: {header: x-wait, unit: milliseconds}\n"
        "codes:\n  - {code: gone, en: Gone, zh: 没有了, as: business.not_found, transient: false, "
        "action: ask_model, effect: rejected}\n"
    )
    file.write_text(text, "utf-8")
    profiles = Profiles()
    profiles.add(file)
    profile = profiles.get("shop")
    assert profile is not None
    assert profile.deadline_header == "x-wait milliseconds"
