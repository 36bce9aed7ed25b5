"""``failwise redact``: a text without its secrets."""

import argparse
import sys

from failwise.cli.inputs import answer_lines, read_text
from failwise.cli.terminal import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT|FILE|-", help="what to read")
    parser.add_argument(
        "--jsonl", metavar="FILE|-", help='answer {"id", "text"} lines with {"text"} lines'
    )
    parser.add_argument("--json", action="store_true", help='print {"text", "changed"}')
    parser.epilog = (
        "examples:\n  failwise redact app.log > clean.log\n  kubectl logs pod | failwise redact -"
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the text without secrets. Known values of the environment go too."""
    if arguments.jsonl is not None:
        from failwise.redaction.contract import answer

        return answer_lines(arguments.jsonl, answer, '{"id": "1", "text": "..."}')
    from failwise.redaction import default

    text = read_text(arguments.text)
    clean = default().text(text)
    if arguments.json:
        print_json({"text": clean, "changed": clean != text})
    else:
        sys.stdout.write(clean if clean.endswith("\n") else clean + "\n")
    return 0
