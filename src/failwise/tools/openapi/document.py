"""An OpenAPI document as plain data: read within bounds, from a file, a text or a mapping."""

import functools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from failwise.vocabulary.errors import ConfigurationError, UsageError

SIZE_LIMIT: Final = 20_000_000
"""Bytes of a document."""
_NODES: Final = 2_000_000
_DEPTH: Final = 200

Source = str | os.PathLike[str] | Mapping[str, Any]


def read_document(source: Source) -> dict[str, Any]:
    """The document, its keys all texts. JSON or YAML: a path, the text itself, or a mapping.

    Raises `ConfigurationError` naming the file (and the line, where it is known) for what is no
    OpenAPI 3 document, and `UsageError` for a URL: nothing is fetched here.
    """
    name = "openapi"
    data: Any = source
    if not isinstance(source, Mapping):
        name, text = _text(source)
        data = _parsed(name, text)
    document = _plain(data, name)
    if not isinstance(document, dict):
        raise ConfigurationError("no OpenAPI document: its root is no mapping", file=name)
    if "swagger" in document:
        raise ConfigurationError(
            f"Swagger {document['swagger']}: convert it to OpenAPI 3 first, for example with "
            "swagger2openapi",
            file=name,
        )
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise ConfigurationError(f"openapi: {version!r}: OpenAPI 3.0 or 3.1 is needed", file=name)
    if not isinstance(document.get("paths", {}), dict):
        raise ConfigurationError("paths: is no mapping", file=name)
    return document


def _text(source: "str | os.PathLike[str]") -> tuple[str, str]:
    if isinstance(source, str):
        if re.match(r"https?://", source):
            raise UsageError(
                f"add_openapi({source!r}): nothing is fetched here: download the document, and give "
                "its path, its text or its parsed content"
            )
        if "\n" in source or source.lstrip().startswith("{"):
            return "openapi", source
    path = Path(source)
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise ConfigurationError(f"larger than {SIZE_LIMIT} bytes", file=str(path))
        return str(path), path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot be read ({error.strerror})", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"not UTF-8: {error}", file=str(path)) from error


def _parsed(name: str, text: str) -> Any:
    if len(text) > SIZE_LIMIT:
        raise ConfigurationError(f"larger than {SIZE_LIMIT} characters", file=name)
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            reason = error.msg
            json_line = error.lineno
        except RecursionError:
            raise ConfigurationError("nested too deep", file=name) from None
        try:  # YAML may begin with a brace too
            if not name.endswith(".json"):
                return _yaml(name, text)
            raise ConfigurationError(reason)
        except ConfigurationError:
            raise ConfigurationError(f"not JSON: {reason}", file=name, line=json_line) from None
    return _yaml(name, text)


def _yaml(name: str, text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a SafeLoader with fewer types
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigurationError(f"not YAML: {error.problem}", file=name, line=line) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigurationError(f"not YAML: {type(error).__name__}", file=name) from error


@functools.cache
def _loader() -> type[Any]:
    """A safe loader that takes dates and ``no`` for the texts they are (YAML 1.2)."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    left_out = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")

    class Loader(base):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag not in left_out]
        for first, found in base.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool",
        re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
        list("tTfF"),
    )
    return Loader


def _plain(data: Any, name: str) -> Any:
    """The same data with texts for keys, written out within bounds: aliases can stand for gigabytes."""
    if _size(data, {}, name, 0) > _NODES:
        raise ConfigurationError(f"too large: more than {_NODES} values", file=name)

    def copied(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): copied(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copied(item) for item in value]
        return value

    return copied(data)


def _size(value: Any, known: dict[int, int], name: str, depth: int) -> int:
    """How many values this is when written out; what stands behind several aliases is counted once and
    added each time."""
    if not isinstance(value, Mapping | list | tuple):
        return 1
    size = known.get(id(value))
    if size is None:
        if depth > _DEPTH:
            raise ConfigurationError(f"nested too deep: more than {_DEPTH} levels", file=name)
        inner = value.values() if isinstance(value, Mapping) else value
        size = known[id(value)] = 1 + sum(_size(item, known, name, depth + 1) for item in inner)
    return size
