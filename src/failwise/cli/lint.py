"""``failwise lint``: what the tools of an agent leave undeclared, and what repeats them blindly."""

import argparse
import importlib
import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.terminal import add_common, clean, console, language, print_json
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    from failwise.cli.linting.rules import Finding
    from failwise.cli.linting.tool import Found
    from failwise.vocabulary.result import Language

_CONFIG: Final = "failwise.toml"
_EPILOG: Final = """\
examples:
  failwise lint agent                         the module agent, in this folder or on PYTHONPATH
  failwise lint shop.agent:tools              one object of it: a Runtime, a list of tools, an agent, a server
  failwise lint agent.py --ignore undeclared  in CI, without the gentlest rule

The module is imported: what stands at its top level runs. Tools of Failwise, LangChain, OpenAI Agents,
pydantic-ai, ADK, Strands, smolagents, LlamaIndex, Microsoft Agent Framework and MCP servers are known by
their objects. What the module's runtimes and failwise.toml declare beside them counts.

The exit code is 0 when nothing is found, 1 when something is, 2 for wrong usage."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("module", metavar="MODULE[:OBJECT]", help="where the agent's tools are")
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="RULE",
        help="leave a rule out (repeatable)",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"whose declarations count too ({_CONFIG}, if there is one)",
    )
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Import, look, tell; 1 where something is found."""
    from failwise.cli.linting.found import tools_in
    from failwise.cli.linting.rules import lint, rule_names

    for rule in arguments.ignore:
        if rule not in rule_names():
            raise UsageError(f"--ignore {rule}: rules are {', '.join(rule_names())}")
    lang = language(arguments.lang)
    module, thing = _imported(arguments.module)
    tools = _with_declarations(tools_in(thing, module), arguments.config)
    findings = [one for one in lint(tools) if one.rule not in arguments.ignore]
    if arguments.json:
        told = [finding.to_dict(lang) for finding in findings]
        print_json({"tools": len(tools), "findings": told})
    else:
        _show(findings, len(tools), arguments.module, lang)
    return 1 if findings or not tools else 0


def _imported(given: str) -> tuple[ModuleType, Any]:
    """The module and the object in it. Raises `UsageError` where it cannot be imported."""
    path, _, names = given.rpartition(":")
    if not path or not all(name.isidentifier() for name in names.split(".")):
        path, names = given, ""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = _from_file(path) if path.endswith(".py") else _from_name(path)
    thing: Any = module
    for name in names.split(".") if names else ():
        try:
            thing = getattr(thing, name)
        except AttributeError:
            raise UsageError(f"{path} has no {names}") from None
    return module, thing


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise _not_imported(name, error) from error


def _from_file(path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{path}: no such file")
    folder = str(file.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _not_imported(path, error) from error
    return module


def _not_imported(name: str, error: Exception) -> UsageError:
    from failwise.redaction import default

    told = default().text(f"{type(error).__name__}: {error}")[:300]
    return UsageError(f"{name} cannot be imported ({told}): check the name, and PYTHONPATH")


def _with_declarations(tools: "list[Found]", config: str | None) -> "list[Found]":
    """The tools with what a configuration file declares of them."""
    if config is None and not os.path.exists(_CONFIG):
        return tools
    from failwise.cli.configuration import read

    declarations = read(config or _CONFIG).declarations()
    found = []
    for tool in tools:
        said = declarations.of(tool.name)
        found.append(replace(tool, declared={**tool.declared, **said}) if said else tool)
    return found


def _show(findings: "list[Finding]", count: int, module: str, lang: "Language") -> None:
    from rich.text import Text

    from failwise.cli.linting.rules import book

    out, words = console(), book()["words"][lang]
    if not count:
        out.print(words["none"].format(module=module.partition(":")[0]))
        return
    here = os.getcwd() + os.sep
    for finding in findings:
        place = finding.tool.place.removeprefix(here)
        line = Text(clean(place), style="dim")
        line.append(f"  {finding.rule}", style="bold red" if finding.level == "error" else "bold")
        line.append(f"  {clean(finding.tool.name)}: {clean(finding.told(lang))}")
        out.print(line, soft_wrap=True)
        out.print(Text(f"    {words['write']}: {clean(finding.fix(lang))}"), soft_wrap=True)
    told = words["summary" if findings else "clean"]
    out.print(told.format(count=count, findings=len(findings)))
