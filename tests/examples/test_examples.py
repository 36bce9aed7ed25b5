"""The examples run as they stand, in a process of their own, without a network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "quickstart.py": ["'shoes 2'", "(2 requests)", "unsafe_effect (1 request)", "调用失败"],
    "http_tool.py": ["search: 2 request(s), success True", "corrected /page_size: 500 -> 100"],
    "chain.py": ["answered by search_cache", "runtime.chain_aborted, 0 sent"],
    "effects.py": ["orders asked for: 2, orders placed: 2", "effect_open"],
    "own_loop_openai.py": [
        "FAILED: tool weather · business (not_found)",
        "no station in Atlantis.",
    ],
    "own_loop_anthropic.py": ["False 3", "True FAILED: tool stock", "there is no B-2."],
    "agent.py": ["model: claude-haiku-5", "May have happened", "partial: The order may have been"],
    "mcp_server.py": [
        "/limit was corrected to 5",
        "effect_open",
        "searches sent: 2, orders placed: 1",
    ],
    "own_loop_openai_shape.py": ["Tools there are: weather.", "It is 9 degrees in Paris."],
}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_shows_what_it_promises(name: str, tmp_path: Path) -> None:
    """Each example ends well, says what it is there to show, and leaves nothing behind."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FAILWISE")}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    said = ended.stdout.decode()
    assert ended.returncode == 0, ended.stderr.decode()
    for words in SAID[name]:
        assert words in said
    assert list(tmp_path.iterdir()) == []
