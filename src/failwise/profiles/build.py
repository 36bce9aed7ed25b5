"""Provider profiles from YAML, for people, to an index and one JSON each, for the runtime.

This module stands alone: `hatch_build.py` loads it by its path, before failwise is installed, and
the runtime uses it for users' own files. It needs PyYAML, imported by whoever first reads a source.

Compiled, a profile's codes are rows, grouped for one look-up: ``exact`` (code → rows), ``globs``
(longest first) and ``status`` (HTTP status → rows of ``http:`` entries). `ROW` names the columns.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

VERSION = 1
"""Of the compiled form: files of another version are not read."""

INDEX = "index.json"
LAST_RESORT = "http_status"
"""The profile of bare HTTP statuses, never found by what an answer looks like."""

SIZE_LIMIT = 1_000_000
"""Characters of one source file."""

ROW = (
    "code",
    "as",
    "http",
    "field",
    "match",
    "phase",
    "transient",
    "action",
    "effect",
    "en",
    "zh",
    "name",
    "confirmed",
)

LOCATOR = re.compile(
    r"http:status|header:[a-z0-9_*-]+|xml:[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*|text(?::.+)?"
    r"|[A-Za-z_~*\[][\w~*\[\].$@-]*"
)
RETRIES = ("retry_backoff", "retry_exact")
_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)[+*{]")

Path_: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = Mapping[Path_, int]


class SourceError(ValueError):
    """A source file is wrong: `reason`, and the `line` it is on (1 is the first)."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def load(text: str) -> tuple[Any, Lines]:
    """A YAML text as plain data, and the line on which each part of it begins.

    Lines are keyed by path, such as ``("codes", 3, "action")``. Anchors and aliases are refused: a
    few lines of them could stand for gigabytes. Raises `SourceError`.
    """
    import yaml

    if len(text) > SIZE_LIMIT:
        raise SourceError(f"the file is larger than {SIZE_LIMIT} characters")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # CSafeLoader and SafeLoader differ in speed alone
        reader = loader(text)
        try:
            root = reader.get_single_node()
            lines: dict[Path_, int] = {}
            seen: set[int] = set()

            def plain(node: Any, path: Path_) -> Any:
                line = node.start_mark.line + 1
                lines[path] = line
                if id(node) in seen:
                    raise SourceError("anchors and aliases are not allowed; write it out", line)
                seen.add(id(node))
                if len(path) > 20:
                    raise SourceError("nested too deep", line)
                if isinstance(node, yaml.MappingNode):
                    made: dict[str, Any] = {}
                    for key_node, value_node in node.value:
                        key = str(reader.construct_object(key_node))
                        if key in made:
                            raise SourceError(f"{key} is given twice", key_node.start_mark.line + 1)
                        made[key] = plain(value_node, (*path, key))
                    return made
                if isinstance(node, yaml.SequenceNode):
                    return [plain(child, (*path, at)) for at, child in enumerate(node.value)]
                value = reader.construct_object(node)
                if value is None or isinstance(value, str | int | float):
                    return value
                return node.value  # a date, for one: as it is written

            return (plain(root, ()) if root is not None else None), lines
        finally:
            reader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise SourceError(
            f"not valid YAML: {error.problem}", mark.line + 1 if mark else None
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"not valid YAML: {error}") from error


def faults(
    data: Mapping[str, Any], known: Collection[str], *, strict: bool = False
) -> Iterator[tuple[Path_, str]]:
    """What a JSON Schema cannot say about a profile: where, and what is wrong with it.

    `known` holds the registered codes. `strict` asks that every `as` is one of them; otherwise a
    code of the user's own is welcome below a known category (``business.seat_taken``).
    """
    if data["error_in"] in ("body", "both") and not data.get("success"):
        yield (
            ("error_in",),
            "errors can sit in a 2xx: say under `success` what a success looks like",
        )
    for path, locator in _locators(data):
        if not LOCATOR.fullmatch(locator):
            yield path, f"{locator!r} is not a locator; data/README.md has the forms"
    for path, text in expressions(data):
        yield from _expression(path, text)
    if data.get("retry_after", {}).get("at") and "unit" not in data["retry_after"]:
        yield ("retry_after",), "a place is given but no unit"
    categories = {code.partition(".")[0] for code in known}
    seen: set[tuple[Any, ...]] = set()
    for at, entry in enumerate(data.get("codes", ())):
        here: Path_ = ("codes", at)
        key = tuple(entry.get(name) for name in ("code", "http", "field", "match", "phase"))
        if key in seen:
            yield here, f"{entry['code']}: the same entry stands here twice"
        seen.add(key)
        if entry["action"] in RETRIES and not entry["transient"]:
            yield here, f"{entry['code']}: {entry['action']} on an entry that is not transient"
        if entry["code"].startswith("http:") and entry["code"] != f"http:{entry.get('http')}":
            yield here, f"{entry['code']}: `http` does not agree with the code"
        if entry["as"] not in known and (strict or entry["as"].partition(".")[0] not in categories):
            yield (*here, "as"), f"{entry['as']} is not a registered code"


def _locators(data: Mapping[str, Any]) -> Iterator[tuple[Path_, str]]:
    for name, locators in data["fields"].items():
        for at, locator in enumerate(locators):
            yield ("fields", name, at), locator
    for at, test in enumerate(data.get("success", ())):
        yield ("success", at, "at"), test["at"]
    for at, place in enumerate(data.get("retry_after", {}).get("at", ())):
        yield ("retry_after", "at", at), place if isinstance(place, str) else place["at"]
    for at, locator in enumerate(data.get("rate_limit", {}).get("body", ())):
        yield ("rate_limit", "body", at), locator
    for at, hint in enumerate(data["detect"].get("body", ())):
        for part in hint.split(" & "):
            yield ("detect", "body", at), part.partition("=")[0]
    for at, entry in enumerate(data.get("codes", ())):
        if "field" in entry:
            yield ("codes", at, "field"), entry["field"]


def expressions(data: Mapping[str, Any]) -> Iterator[tuple[Path_, str]]:
    """The regular expressions of a profile, each with its place."""
    for path, locator in _locators(data):
        if locator.startswith("text:") and LOCATOR.fullmatch(locator):
            yield path, locator[5:]
    for at, text in enumerate(data["detect"].get("text", ())):
        yield ("detect", "text", at), text
    for at, entry in enumerate(data.get("codes", ())):
        if "match" in entry:
            yield ("codes", at, "match"), entry["match"]


def _expression(path: Path_, text: str) -> Iterator[tuple[Path_, str]]:
    if len(text) > 500:
        yield path, "the expression is longer than 500 characters"
        return
    try:
        re.compile(text)
    except re.error as error:
        yield path, f"{text!r} is not a regular expression: {error}"
    else:
        if _NESTED_REPEAT.search(text):
            yield path, f"{text!r} repeats a repetition: it could take for ever on some texts"


def compiled(data: Mapping[str, Any]) -> dict[str, Any]:
    """One profile in the form the runtime reads: what people only read is left out."""
    exact: dict[str, list[list[Any]]] = {}
    globs: dict[str, list[list[Any]]] = {}
    status: dict[str, list[list[Any]]] = {}
    places: list[str] = []
    for entry in data.get("codes", ()):
        row = [entry.get(column) for column in ROW]
        row[-1] = entry.get("confirmed", True)
        code = entry["code"]
        if code.startswith("http:"):
            status.setdefault(code[5:], []).append(row)
        elif "*" in code and code != "*":
            globs.setdefault(code, []).append(row)
        else:
            exact.setdefault(code, []).append(row)
        place = entry.get("field")
        if place and place not in data["fields"]["code"] and place not in places:
            places.append(place)
    retry = data.get("retry_after", {})
    idempotency = data.get("idempotency", {"support": "unknown"})
    resets = [
        [header["name"], header["unit"]]
        for header in data.get("rate_limit", {}).get("headers", ())
        if header["role"] == "reset"
    ]
    return {
        "version": VERSION,
        "id": data["id"],
        "name": data["name"],
        "kind": data["kind"],
        "error_in": data["error_in"],
        "success": [
            [test["at"], "equals", test["equals"]]
            if "equals" in test
            else [test["at"], _test(test)]
            for test in data.get("success", ())
        ],
        "fields": data["fields"],
        "places": places,
        "waits": [
            [place, retry["unit"]] if isinstance(place, str) else [place["at"], place["unit"]]
            for place in retry.get("at", ())
        ],
        "resets": resets,
        "idempotency": {
            name: idempotency.get(name) for name in ("support", "name", "window", "note")
        },
        "deadline": [data["deadline"]["header"], data["deadline"]["unit"]]
        if "deadline" in data
        else None,
        "exact": exact,
        "globs": sorted(globs.items(), key=lambda item: (-len(item[0]), item[0])),
        "status": status,
    }


def _test(test: Mapping[str, Any]) -> str:
    name = "absent" if "absent" in test else "empty"
    return name if test[name] else "present"


def index(profiles: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """How to recognise each profile (source form, by id): what is read at the first failure.

    ``hosts`` and ``headers`` by exact name, ``suffixes`` (``*.slack.com`` as ``.slack.com``) and
    other globs apart; ``body`` by the first key of the hint, with its weight (a part that only one
    profile has counts 1, one that n have 1/n); ``exceptions`` by exact name, or by
    glob under the first word of it; ``text`` as they are. ``last`` holds the profiles of frameworks
    and protocols, which come after those of a provider.
    """
    made: dict[str, Any] = {
        "version": VERSION,
        "ids": sorted(profiles),
        "last": [
            name
            for name in sorted(profiles)
            if profiles[name]["kind"] in ("framework", "protocol") or name == LAST_RESORT
        ],
        "hosts": {},
        "suffixes": {},
        "host_globs": [],
        "headers": {},
        "header_globs": [],
        "content_types": {},
        "body": {},
        "body_globs": [],
        "exceptions": {},
        "exception_globs": {},
        "text": [],
    }
    shared = Counter(
        part
        for data in profiles.values()
        for part in {part for hint in data["detect"].get("body", ()) for part in hint.split(" & ")}
    )
    for name in sorted(profiles):
        if name == LAST_RESORT:
            continue
        detect = profiles[name]["detect"]
        for host in detect.get("hosts", ()):
            if "*" not in host:
                made["hosts"].setdefault(host, []).append(name)
            elif host.startswith("*.") and "*" not in host[1:]:
                made["suffixes"].setdefault(host[1:], []).append(name)
            else:
                made["host_globs"].append([host, name])
        for hint in detect.get("headers", ()):
            header, _, value = hint.partition("=")
            if "*" in header:
                made["header_globs"].append([header, value, name])
            else:
                made["headers"].setdefault(header, []).append([value, name])
        for content_type in detect.get("content_types", ()):
            made["content_types"].setdefault(content_type, []).append(name)
        for hint in detect.get("body", ()):
            key = first_key(hint)
            weight = round(sum(1 / shared[part] for part in hint.split(" & ")), 3)
            if "*" in key:
                made["body_globs"].append([key, hint, name, weight])
            else:
                made["body"].setdefault(key, []).append([hint, name, weight])
        for pattern in detect.get("exceptions", ()):
            if "*" in pattern:
                word = pattern.partition(".")[0]
                made["exception_globs"].setdefault(word, []).append([pattern, name])
            else:
                made["exceptions"].setdefault(pattern, []).append(name)
        made["text"].extend([text, name] for text in detect.get("text", ()))
    return made


def first_key(hint: str) -> str:
    """The first key of a body hint: ``error`` of ``error.type & error.code``, ``xml:Error``."""
    first = hint.partition(" & ")[0].partition("=")[0]
    if first.startswith("xml:"):
        return first.partition("/")[0]
    return re.split(r"\.|(?<=.)\[", first)[0]


def sources(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The profiles of a folder of YAML files, by id. Raises `SourceError` naming file and line."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            data, lines = load(path.read_text("utf-8"))
        except SourceError as error:
            raise SourceError(f"{path.name}:{error.line or 1}: {error.reason}") from error
        if not isinstance(data, dict) or data.get("id") != path.stem:
            raise SourceError(f"{path.name}:{lines.get(('id',), 1)}: id is not the file's name")
        found[path.stem] = data
    return found


def build(folder: Path) -> dict[str, str]:
    """The compiled files of a folder of sources: name → JSON text, the same for the same sources."""
    profiles = sources(folder)
    made = {INDEX: _json(index(profiles))}
    for name, data in profiles.items():
        made[f"{name}.json"] = _json(compiled(data))
    return made


def write(folder: Path, target: Path) -> list[Path]:
    """Compile `folder` into `target`; files of profiles that are gone are removed.

    Only what changed is written, each file at once: somebody may be reading them.
    """
    made = build(folder)
    target.mkdir(parents=True, exist_ok=True)
    for stale in target.glob("*.json"):
        if stale.name not in made:
            stale.unlink()
    for name, text in made.items():
        place = target / name
        if place.is_file() and place.read_text("utf-8") == text:
            continue
        fresh = target / f".{name}.{os.getpid()}"
        fresh.write_text(text, "utf-8")
        fresh.replace(place)
    return [target / name for name in made]


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":  # python src/failwise/profiles/build.py, after a source was changed
    _room = Path(__file__).parent
    write(_room / "data", _room / "compiled")
