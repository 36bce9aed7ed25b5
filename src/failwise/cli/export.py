"""``failwise export``: a recorded failure as a regression test, or as a case to classify."""

import argparse
import sys
from pathlib import Path
from typing import Final

from failwise.cli.terminal import add_common, print_json
from failwise.vocabulary.errors import UsageError

_EPILOG: Final = """\
examples:
  failwise export call_7 --as pytest > test_call_7.py && pytest test_call_7.py
  failwise export call_7 --as pytest --output tests/test_call_7.py
  failwise export call_7 --as case | failwise classify --jsonl -

The test holds the recorded evidence, redacted, and today's verdict on it. It needs failwise and pytest,
no journal and no network. Whole journals are moved by `failwise journal`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("call_id", metavar="CALL_ID", help="a recorded call that failed")
    parser.add_argument("--journal", metavar="JOURNAL", help="its path or URL")
    parser.add_argument(
        "--as", dest="form", choices=("pytest", "case"), default="pytest", help="what to make of it"
    )
    parser.add_argument("--output", metavar="FILE", help="write it there; an existing file stays")
    add_common(parser, json_help="print JSON: the case")
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Write the test or the case."""
    import json

    from failwise.cli.replay import load_policy
    from failwise.insight.pytest_case import pytest_case
    from failwise.insight.replaying import replay
    from failwise.journal.reader import open_reader
    from failwise.redaction import default

    with open_reader(arguments.journal) as reader:
        call = reader.call(arguments.call_id)
        if call is None:
            raise UsageError(f"there is no call {arguments.call_id} in this journal")
        raw = reader.raw_answers(arguments.call_id)
    found = replay(call, policy=load_policy(None), raw=raw)
    if arguments.json or arguments.form == "case":
        if found.case is None:
            raise UsageError(f"call {found.call_id} has no evidence to judge ({found.before.code})")
        case = default().data({"id": found.call_id, **found.case})
        if arguments.output is None:
            print_json(case)
            return 0
        text = json.dumps(case, ensure_ascii=False) + "\n"
    else:
        text = pytest_case(found, default())
    if arguments.output is None:
        sys.stdout.write(text)
        return 0
    try:
        with Path(arguments.output).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{arguments.output} exists already; name another file") from None
    except OSError as error:
        raise UsageError(f"{arguments.output}: cannot be written ({error.strerror})") from error
    return 0
