"""Accuracy on the shared case files: runs each scorer beside the checkout against the commands.

    python scripts/scores.py [--full] [NAME ...]

The scorers and their data are kept beside the repository, in ``../shared``. Where they are not, this says
so and ends well: they are not needed to use or to test Failwise.
"""

import argparse
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT.parent / "shared" / "tools"
TIMEOUT = 900.0


@dataclass(frozen=True)
class Scorer:
    """One scorer: its script, the command it asks, and the lines of its output that matter."""

    name: str
    script: str
    command: tuple[str, ...]
    lines: str
    quoted: bool = False


def _failwise(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "failwise.cli.main", *words)


def _script(name: str) -> tuple[str, ...]:
    return (sys.executable, str(ROOT / "scripts" / name))


SCORERS = (
    Scorer(
        "cases",
        "score_cases.py",
        _failwise("classify", "--jsonl", "-"),
        r"category accuracy  |retry decision \(def|^  effect  |said 'nothing|told wait|exact value|false pos|called success|unsafe",
        quoted=True,
    ),
    Scorer("outcomes", "outcomes.py", _script("score_outcomes.py"), r"right|^failed:"),
    Scorer(
        "arguments",
        "recovered_arguments.py",
        _failwise("arguments", "--jsonl", "-"),
        r"^stratum|^ALL",
    ),
    Scorer("retry_after", "retry_after.py", _script("score_retry_after.py"), r"."),
    Scorer("redaction", "redaction.py", _failwise("redact", "--jsonl", "-"), r"planted|benign"),
    Scorer("tls", "tls.py", _failwise("tls", "--json"), r"^diagnosis|^BAD"),
)


def main() -> int:
    """Run the scorers asked for, print their figures, give 1 when one could not run."""
    parser = argparse.ArgumentParser(description="accuracy on the shared case files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases, outcomes, arguments, ...")
    parser.add_argument("--full", action="store_true", help="everything the scorers print")
    arguments = parser.parse_args()
    known = [scorer.name for scorer in SCORERS]
    for name in arguments.names:
        if name not in known:
            parser.error(f"there is no scorer {name!r}: {', '.join(known)}")
    if not TOOLS.is_dir():
        _say("The shared scorers are not beside this checkout (../shared/tools): nothing to score.")
        return 0
    wanted = arguments.names or known
    ended = [_run(scorer, arguments.full) for scorer in SCORERS if scorer.name in wanted]
    return 0 if all(ended) else 1


def _run(scorer: Scorer, full: bool) -> bool:
    script = TOOLS / scorer.script
    if not script.is_file():
        _say(f"── {scorer.name}: {scorer.script} is not there\n")
        return True
    command = list(scorer.command)
    call = (
        ["--cmd", " ".join(f"'{word}'" for word in command)] if scorer.quoted else ["--", *command]
    )
    began = time.monotonic()
    try:
        ended = subprocess.run(
            [sys.executable, str(script), *call],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        _say(f"── {scorer.name}: not done within {TIMEOUT:g} s\n")
        return False
    _say(f"── {scorer.name} ({scorer.script}, {time.monotonic() - began:.1f} s)")
    wanted = re.compile("." if full else scorer.lines)
    for line in ended.stdout.splitlines():
        if wanted.search(line):
            _say(f"   {line.rstrip()}")
    if ended.returncode:
        _say(f"   ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
    _say("")
    return ended.returncode == 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
