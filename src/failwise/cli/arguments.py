"""``failwise arguments``: what a model sent for a tool, read and repaired."""

import argparse
import json
from collections.abc import Mapping
from typing import Any, Final

from failwise.cli.asking import show_difference
from failwise.cli.inputs import answer_lines, opened, read_text
from failwise.cli.terminal import add_common, clean, console, language, print_json, say
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.result import Language, Repair

_FORM: Final = '{"id": "1", "tool": "name", "schema": {...}, "raw": "..."}'
_SCHEMA_LIMIT: Final = 10_000_000
_SCHEMA_KEYS: Final = ("parameters", "input_schema", "inputSchema")

_EPILOG: Final = """\
examples:
  failwise arguments --schema search.json "{'query': 'shoes', limit: '5',}"
  failwise arguments --jsonl cases.jsonl

With --jsonl each line {"id", "tool", "schema", "raw"} is answered by one line {"arguments": object or
null}, in the same order. The exit code is 1 when the arguments cannot be used."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("raw", nargs="?", metavar="RAW|FILE|-", help="what the model sent")
    parser.add_argument(
        "--schema", metavar="FILE", help="the tool's JSON Schema, or its definition"
    )
    parser.add_argument("--tool", default="", metavar="NAME", help="the tool's name")
    parser.add_argument("--jsonl", metavar="FILE|-", help="answer JSON lines (see below)")
    add_common(parser)
    parser.epilog = _EPILOG


def main(arguments: argparse.Namespace) -> int:
    """Read one text by a schema, or answer JSON lines."""
    if arguments.jsonl is not None:
        from failwise.arguments.contract import answer

        return answer_lines(arguments.jsonl, answer, _FORM)
    if arguments.schema is None:
        raise UsageError(
            "arguments: give --schema FILE (the tool's JSON Schema), or --jsonl FILE|-"
        )
    from failwise.arguments import ArgumentReader
    from failwise.redaction import default

    lang = language(arguments.lang)
    name, schema = _definition(_read_json(arguments.schema))
    raw = read_text(arguments.raw, "what the model sent")
    reader = ArgumentReader(schema, arguments.tool or name, redact=default().named)
    reading = reader.read(raw)
    failure = reading.failure
    if arguments.json:
        print_json(
            {
                "arguments": reading.arguments,
                "repairs": [repair.to_dict() for repair in reading.repairs],
                "failure": failure.to_dict() if failure else None,
            }
        )
    elif failure is not None:
        _refuse(failure, lang)
    else:
        _show(reading.arguments, reading.repairs, lang)
    return 1 if failure is not None else 0


def _definition(data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The tool's name and schema: from a JSON Schema, or a tool as models' APIs and MCP define one."""
    inner = data.get("function")
    if data.get("type") == "function" and isinstance(inner, Mapping):
        data = inner
    for key in _SCHEMA_KEYS:
        schema = data.get(key)
        if isinstance(schema, Mapping) and "properties" not in data:
            return str(data.get("name") or ""), schema
    return "", data


def _read_json(path: str) -> Mapping[str, Any]:
    with opened(path) as file:
        data = file.read(_SCHEMA_LIMIT + 1)
    if len(data) > _SCHEMA_LIMIT:
        raise UsageError(f"{path} is larger than {_SCHEMA_LIMIT} bytes")
    try:
        schema = json.loads(data)
    except RecursionError as error:
        raise ConfigurationError("nested too deeply", file=path) from error
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"not JSON: {error.msg}", file=path, line=error.lineno) from error
    except ValueError as error:
        raise ConfigurationError(f"not JSON: {error}", file=path) from error
    if not isinstance(schema, Mapping):
        raise ConfigurationError("a JSON Schema is an object, such as {}", file=path)
    return schema


def _refuse(failure: Any, lang: Language) -> None:
    from rich.text import Text

    out = console()
    text = failure.detail("text")
    said = text.get(lang) if isinstance(text, Mapping) else failure.message
    out.print(Text(clean(say(lang, "arguments_refused", text=said)), style="red"))
    out.print(Text(f"{failure.code}"), style="dim")


def _show(arguments: Any, repairs: tuple[Repair, ...], lang: Language) -> None:
    """The arguments, and every edit as a difference: what stood there, what stands there now."""
    from rich.text import Text

    out = console()
    sentence = "arguments_repaired" if repairs else "arguments_fine"
    out.print(Text(say(lang, sentence, count=len(repairs)), style="bold"))
    show_difference(out, repairs)
    out.print(Text(clean(json.dumps(arguments, ensure_ascii=False, indent=2))), soft_wrap=True)
