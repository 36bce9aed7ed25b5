"""``failwise policy``: each value in force, and where it comes from."""

import argparse
import difflib
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from failwise.cli import configuration
from failwise.cli.terminal import add_common, console, language, named, print_json, say, table
from failwise.vocabulary.codes import registry
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from rich.console import Console

    from failwise.cli.origins import Policy, Value
    from failwise.vocabulary.spec import ToolSpec

_DECLARATIONS: Final = (
    "read_only", "idempotent", "destructive", "timeout", "fallback", "verify", "verify_final_after",
    "idempotency_key", "credential", "profile", "upstream", "repair", "fixer",
)  # fmt: skip
_SWITCHES: Final = ("refresh", "repair", "fallback")

_EPILOG: Final = """\
examples:
  failwise policy                                   the default preset, or failwise.toml if it is here
  failwise policy --policy interactive --explain network.read_timeout
  failwise policy --config failwise.toml --explain create_order

--explain shows every column of one code or category, or the rows in force for one tool."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy", metavar="FILE|PRESET", help="default, interactive, batch, a file"
    )
    parser.add_argument("--config", metavar="FILE", help="a configuration, with its tools")
    parser.add_argument("--explain", metavar="TOOL|CODE", help="one tool, code or category")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Show a policy, or explain a part of it."""
    from failwise.cli.origins import Policy

    file = arguments.config
    if file is None and arguments.policy is None and os.path.isfile(configuration.NAME):
        file = configuration.NAME
    policy = Policy(arguments.policy, configuration.read(file) if file is not None else None)
    lang = language(arguments.lang)
    wanted = arguments.explain
    if wanted is None:
        rows = {key: policy.row(key) for key in policy.keys}
        if arguments.json:
            print_json(_data(policy, rows))
        else:
            _all(policy, rows, lang)
    elif wanted in policy.tool_names:
        rows = {key: policy.row(key, wanted) for key in policy.keys}
        if arguments.json:
            print_json({"tool": wanted, **_data(policy, rows)})
        else:
            _tool(policy, wanted, rows, lang)
    elif wanted in registry() or wanted in set(Category):
        rows = {wanted: policy.row(wanted)}
        if arguments.json:
            print_json(_data(policy, rows))
        else:
            _code(rows[wanted], wanted, lang)
    else:
        known = [*policy.tool_names, *registry(), *Category]
        near = difflib.get_close_matches(wanted, map(str, known), 3)
        told = f"did you mean {' or '.join(near)}?" if near else "failwise codes lists the codes"
        raise UsageError(f"--explain {wanted}: no tool, code or category of that name; {told}")
    return 0


def _data(policy: "Policy", rows: Mapping[str, Mapping[str, "Value"]]) -> dict[str, Any]:
    def plain(values: Mapping[str, "Value"]) -> dict[str, Any]:
        return {name: {"value": one.value, "origin": one.origin} for name, one in values.items()}

    return {
        "policy": policy.name,
        "settings": plain(policy.settings()),
        "rows": {key: plain(row) for key, row in rows.items()},
    }


def _all(policy: "Policy", rows: Mapping[str, Mapping[str, "Value"]], lang: Language) -> None:
    out = console()
    out.print(say(lang, "policy_title", name=policy.name), style="bold")
    _table(out, policy, rows, lang)
    out.print(say(lang, "policy_values"), style="bold")
    _values(out, policy.settings(), lang)


def _tool(
    policy: "Policy", tool: str, rows: Mapping[str, Mapping[str, "Value"]], lang: Language
) -> None:
    out = console()
    spec = policy.tools.get(tool)
    if spec is not None:
        out.print(say(lang, "declares", tool=tool), style="bold")
        shown = table("", "")
        shown.show_header = False
        for name, value in _declared(spec):
            shown.add_row(name, value)
        out.print(shown)
    _table(out, policy, rows, lang)


def _declared(spec: "ToolSpec") -> Iterable[tuple[str, str]]:
    for name in _DECLARATIONS:
        value = getattr(spec, name)
        if value in (None, ()):
            continue
        if callable(value):
            value = getattr(value, "__qualname__", value)
        yield name, ", ".join(value) if isinstance(value, tuple) else str(value)


def _code(row: Mapping[str, "Value"], code: str, lang: Language) -> None:
    out = console()
    out.print(say(lang, "policy_code", code=code), style="bold")
    _values(out, row, lang)


def _values(out: "Console", values: Mapping[str, "Value"], lang: Language) -> None:
    shown = table("", say(lang, "value"), say(lang, "origin"))
    for name, one in values.items():
        shown.add_row(name, _text(one.value), one.origin)
    out.print(shown)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(value))
    return f"{value:g}" if isinstance(value, float) else str(value) or "–"


def _table(
    out: "Console",
    policy: "Policy",
    rows: Mapping[str, Mapping[str, "Value"]],
    lang: Language,
) -> None:
    """A line for each row, with the sources that changed it."""
    shown = table(
        say(lang, "code"),
        say(lang, "strategy"),
        say(lang, "retries"),
        say(lang, "reads"),
        "",
        say(lang, "then"),
        say(lang, "origin"),
        whole=(0, 1),
    )
    for key, row in rows.items():
        shown.add_row(
            key,
            _wait(row, lang),
            str(row["retries"].value),
            str(row["retries_read"].value),
            ", ".join(_switched_on(row)),
            _text(row["then"].value),
            ", ".join(policy.spoke(row)),
        )
    out.print(shown)


def _switched_on(row: Mapping[str, "Value"]) -> Iterable[str]:
    yield from (name for name in _SWITCHES if row[name].value)
    if row["interrupt"].value:
        yield f"interrupt {row['interrupt'].value}"


def _wait(row: Mapping[str, "Value"], lang: Language) -> str:
    strategy = str(row["strategy"].value)
    if strategy == "none":
        return named(lang, "strategy", "none")
    text = f"{strategy} {row['base'].value:g} s"
    if strategy == "exponential":
        text += f" × {row['multiplier'].value:g}"
    if strategy != "fixed":
        text += f" ≤ {row['cap'].value:g} s"
    jitter = row["jitter"].value
    return f"{text} ± {jitter * 100:g} %" if jitter else text
