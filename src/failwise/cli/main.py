"""The `failwise` command: finds the command's module, runs it, turns errors into exit codes.

Exit codes: 0 ok; 1 a call failed, a goal was missed, something was found; 2 wrong usage or
configuration, with what to do; 130 interrupted; 141 whoever read the output went away.
"""

import argparse
import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from failwise._version import __version__
from failwise.vocabulary.errors import FailwiseError, UsageError

OK: Final = 0
FOUND: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

COMMANDS: Final = {
    "demo": "watch an agent's tool calls meet real faults",
    "call": "run your own tools and calls from a file",
    "classify": "say what a log line or a pasted error means",
    "explain": "show how a verdict came about: evidence, rules that spoke, winner, why",
    "arguments": "read what a model sent for a tool, and repair what has one reading",
    "redact": "take secrets out of a text",
    "report": "count what a journal holds: rates, shares, latency, retries",
    "dashboard": "what fails, why, and what was done about it, in the browser",
    "clusters": "what fails, as few kinds: of a journal, or of any log file or stream",
    "watch": "find new kinds of failure and spikes, for cron and CI",
    "replay": "judge recorded failures by today's rules and policy, offline",
    "export": "make a regression test of a recorded failure",
    "import": "take over failures that were recorded elsewhere",
    "journal": "look at a journal, move, export, import, prune and check it",
    "effects": "list effects that may have happened, and settle them",
    "guards": "show what the fleet's guards know of each upstream: circuits, cool-downs, slots",
    "policy": "show each value of the policy in force, and where it comes from",
    "rules": "text rules of your own: list, draft from a journal, check, accept",
    "lint": "say what an agent's tools leave undeclared, and what repeats them blindly",
    "mcp": "stand between an MCP host and MCP servers",
    "profiles": "list, show, check, test and begin provider profiles",
    "simulate": "play outages and storms with a fleet of agents on a virtual clock",
    "tls": "say what is wrong with a TLS peer",
    "codes": "the registry of codes: what each means and what cures it",
}
"""The commands; each is the module of its name, imported only when it is asked for."""
_MODULES: Final = {"import": "importing"}
"""Commands whose name cannot be a module's."""

_EPILOG: Final = """\
exit codes: 0 ok · 1 a call failed, a goal was missed, something was found · 2 wrong usage or
configuration · 130 interrupted · 141 the reader of the output went away

language: --lang en|zh, else FAILWISE_LANG, else the locale"""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line with the way to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28, width=100)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. Never raises for what a user did wrong."""
    given = list(sys.argv[1:] if argv is None else argv)
    _speak_utf8()
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("failwise: interrupted", file=sys.stderr)  # noqa: T201
        return INTERRUPTED
    except FailwiseError as error:
        print(f"failwise: {error}", file=sys.stderr)  # noqa: T201
        return USAGE
    return code


def _run(argv: list[str]) -> int:
    parser = _Parser(
        prog="failwise",
        description="A tool runtime for AI agents in which a failure is data, not an exception.",
        epilog=_EPILOG,
        formatter_class=_formatter,
    )
    parser.add_argument("--version", action="version", version=f"failwise {__version__}")
    wanted = next((word for word in argv if not word.startswith("-")), "")
    if wanted and wanted not in COMMANDS:
        near = difflib.get_close_matches(wanted, COMMANDS, 1)
        told = f"did you mean {near[0]}?" if near else f"commands are {', '.join(COMMANDS)}"
        raise UsageError(f"there is no command {wanted!r}: {told}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, what in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            formatter_class=_formatter,
        )
        if name == wanted:
            module = importlib.import_module(f"failwise.cli.{_MODULES.get(name, name)}")
            module.add_arguments(command)
            command.set_defaults(main=module.main)
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as ended:  # argparse has said why
        return ended.code if isinstance(ended.code, int) else USAGE
    if arguments.command is None:
        parser.print_help()
        return OK
    code: int = arguments.main(arguments)
    return code


def _speak_utf8() -> None:
    """Whatever the locale, Chinese and JSON lines leave as UTF-8; half a character as its escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _silence_output() -> None:
    """Nobody reads any more: what is still buffered must not complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
