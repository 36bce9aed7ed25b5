"""Bounds in time and memory: no pattern is worse than linear, a long log takes no more memory than a short one."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import failwise.classify
import failwise.evidence
import failwise.profiles
import failwise.redaction
from failwise.classify import fingerprint, violations
from failwise.evidence.forms import forms
from failwise.evidence.named import segments
from failwise.evidence.wait_forms import phrases
from failwise.profiles import build
from failwise.redaction.rules import built_in_rules
from failwise.vocabulary.needs import required

_ROOMS = (failwise.classify, failwise.evidence, failwise.profiles, failwise.redaction)
_SIZE = 3_072
_SOON = 0.3
"""Seconds of processor time below which nobody asks any further."""
_PIECES = (
    "a", "A", " ", "\n", "1", "1 ", "a.", "a: ", "a=", ": ", "(", "[", "{", "<", "<a ", '"', "'", "\\", "/a", "-", "_",
    "\n  at ", "error ", "error: ", "503 ", "错误", "请求", "é", "\u200b",
)  # fmt: skip


def _found(name: str, thing: Any, depth: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(thing, re.Pattern):
        if isinstance(thing.pattern, str):
            yield name, thing
    elif isinstance(thing, tuple | list) and depth < 3:
        for place, inner in enumerate(thing):
            yield from _found(f"{name}[{place}]", inner, depth + 1)
    elif isinstance(thing, dict) and depth < 3:
        for key, inner in thing.items():
            yield from _found(f"{name}[{key}]", inner, depth + 1)


def _patterns() -> dict[str, re.Pattern[str]]:
    """Every pattern of the rooms that read texts of others: in code and in data."""
    found: dict[str, re.Pattern[str]] = {}
    for room in _ROOMS:
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            if module.name.endswith(".build"):
                continue  # reads our own sources only
            for name, thing in vars(importlib.import_module(module.name)).items():
                short = module.name.removeprefix("failwise.")
                found.update(_found(f"{short}.{name}", thing))
    known = forms()
    for place, form in enumerate(known.status):
        found[f"texts.toml status {place}"] = form.pattern
    found.update({f"texts.toml {cause.name}": cause.pattern for cause in known.causes})
    found.update({f"texts.toml {name}": form.pattern for name, form in known.places.items()})
    found.update(_found("waits.toml before", [forms for _, forms in phrases().before]))
    found.update({"waits.toml own": phrases().own, "waits.toml amount": phrases().amount})
    found.update(_found("fingerprint", [pattern for pattern, _ in fingerprint._rules()]))
    found.update(_found("violations", [form.pattern for _, form in violations._forms()]))
    found.update({f"redaction {rule.id}": rule.pattern for rule in built_in_rules()})
    for file in sorted((Path(failwise.profiles.__file__).parent / "data").glob("*.yaml")):
        data, _ = build.load(file.read_text("utf-8"))
        for path, text in build.expressions(data):
            place = ".".join(map(str, path))
            found[f"profile {file.stem} {place}"] = re.compile(text)
    return found


_ALL = _patterns()


def _attacks(pattern: re.Pattern[str]) -> Iterator[str]:
    """What nearly matches, over and over: single pieces, and what the pattern needs."""
    yield from _PIECES
    needed = [min(literals, key=len) for literals in required(pattern.pattern, pattern.flags)]
    for glue in ("", " ", "a"):
        yield glue.join(needed) + glue or "a"


def _took(pattern: re.Pattern[str], piece: str, size: int) -> float:
    text = piece * (size // len(piece)) + "\x00"
    begun = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - begun


@pytest.mark.parametrize("name", sorted(_ALL))
def test_no_pattern_is_worse_than_linear(name: str) -> None:
    """On hostile texts: quick, or at least no more than in proportion to the text's length."""
    pattern = _ALL[name]
    for piece in _attacks(pattern):
        took = _took(pattern, piece, _SIZE)
        if took > _SOON:
            assert took < 1, piece
            shorter = min(_took(pattern, piece, _SIZE // 4) for _ in range(3))
            assert took < 8 * shorter, piece


def test_reading_a_long_chain_takes_linear_time() -> None:
    """A trace of thousands of frames and causes, at the size of the text that is read."""
    chain = (
        "ValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n"
    )
    begun = time.process_time()
    assert sum(1 for _ in segments(chain * 600)) >= 600
    assert time.process_time() - begun < 2


def _peaks(counts: tuple[int, ...]) -> list[int]:
    """Peak resident kilobytes of the command after so many lines each, fed through one pipe."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
    try:
        import bench_classify
    finally:
        sys.path.pop(0)
    command = [sys.executable, "-m", "failwise.cli.main", "classify", "--jsonl", "-"]
    peaks = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        text = bench_classify.log(sum(counts), 0.1)
        number = 0
        for count in counts:
            for _ in range(count // 100):
                batch = [
                    json.dumps({"id": number, "kind": "text", "input": {"text": next(text)}})
                    for _ in range(100)
                ]
                number += len(batch)
                process.stdin.write("\n".join(batch).encode() + b"\n")
                process.stdin.flush()
                for _ in batch:
                    assert process.stdout.readline()
            status = Path(f"/proc/{process.pid}/status").read_text("ascii")
            found = re.search(r"VmHWM:\s+(\d+) kB", status)
            assert found
            peaks.append(int(found[1]))
        process.stdin.close()
        assert process.wait(60) == 0
    return peaks


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_log() -> None:
    """What is remembered has bounds: three times the lines, and hardly any memory more."""
    first, last = _peaks((6_000, 12_000))
    assert last - first < 6_000, (first, last)


def test_a_tie_is_decided_alike_in_every_process() -> None:
    """Rules of equal strength at one place: the order of sets decides nothing."""
    code = (
        "from failwise.classify import classify_text\n"
        "print([classify_text(text).rule for text in "
        "('API Key 无效或已过期', 'no such file or directory: ファイルが見つかりません', 'not found, no existe')])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
        ).stdout
        for seed in ("1", "7")
    }
    assert len(told) == 1
