"""Docstrings → a tool's description and those of its parameters (Google, NumPy, Sphinx forms)."""

import re

_SPHINX = re.compile(
    r"^:(?:param|parameter|arg|argument|key)\s+(?:[^:\n]*\s)?\*{0,2}(\w+):\s*(.*)$"
)
_SPHINX_FIELD = re.compile(r"^:\w[^:\n]{0,80}:")
_PARAMETERS = frozenset(
    {
        "args",
        "arguments",
        "parameters",
        "params",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "attributes",
    }
)
_SECTIONS = _PARAMETERS | {
    "example",
    "examples",
    "note",
    "notes",
    "raise",
    "raises",
    "references",
    "return",
    "returns",
    "see also",
    "warning",
    "warnings",
    "warns",
    "yield",
    "yields",
}
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)\n]{0,200}\))?:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


def split_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the parameters' descriptions by name."""
    if not docstring:
        return "", {}
    import inspect

    lines = inspect.cleandoc(docstring).splitlines()
    text: list[str] = []
    found: dict[str, list[str]] = {}
    index = 0
    in_text = True
    while index < len(lines):
        line = lines[index].strip()
        if _SPHINX_FIELD.match(line):
            in_text = False
            index = _sphinx_field(lines, index, found)
        elif (section := _section(lines, index)) is not None:
            in_text = False
            name, numpy, start = section
            index = _section_end(lines, start, numpy)
            if name in _PARAMETERS:
                (_read_numpy if numpy else _read_google)(lines[start:index], found)
        else:
            if in_text:
                text.append(lines[index])
            index += 1
    texts = {name: " ".join(part for part in parts if part) for name, parts in found.items()}
    return "\n".join(text).strip(), {name: line for name, line in texts.items() if line}


def parameter_descriptions(docstring: str | None) -> dict[str, str]:
    """Only the parameters' descriptions."""
    return split_docstring(docstring)[1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _section(lines: list[str], index: int) -> tuple[str, bool, int] | None:
    """Name, whether underlined (NumPy), and the first line after the heading."""
    line = lines[index]
    if _indent(line):
        return None
    if line.rstrip().endswith(":") and (name := line.strip()[:-1].lower()) in _SECTIONS:
        return name, False, index + 1
    name = line.strip().lower()
    if name in _SECTIONS and index + 1 < len(lines):
        rule = lines[index + 1].strip()
        if len(rule) >= 3 and set(rule) <= {"-", "="}:
            return name, True, index + 2
    return None


def _section_end(lines: list[str], start: int, numpy: bool) -> int:
    index = start
    while index < len(lines):
        if _section(lines, index) is not None:
            break
        if not numpy and lines[index].strip() and not _indent(lines[index]):
            break
        index += 1
    return index


def _sphinx_field(lines: list[str], index: int, found: dict[str, list[str]]) -> int:
    match = _SPHINX.match(lines[index].strip())
    parts = [match.group(2).strip()] if match else []
    depth = _indent(lines[index])
    index += 1
    while index < len(lines) and lines[index].strip() and _indent(lines[index]) > depth:
        parts.append(lines[index].strip())
        index += 1
    if match:
        found.setdefault(match.group(1), parts)
    return index


def _read_google(lines: list[str], found: dict[str, list[str]]) -> None:
    level: int | None = None
    parts: list[str] | None = None
    for line in lines:
        if not line.strip():
            continue
        level = _indent(line) if level is None else level
        match = _GOOGLE.match(line.strip()) if _indent(line) <= level else None
        if match:
            parts = found.setdefault(match.group(1), [match.group(2).strip()])
        elif parts is not None:
            parts.append(line.strip())


def _read_numpy(lines: list[str], found: dict[str, list[str]]) -> None:
    parts: list[list[str]] = []
    for line in lines:
        if not line.strip():
            continue
        match = _NUMPY.match(line.strip()) if not _indent(line) else None
        if match:
            names = [name.strip(" *") for name in match.group(1).split(",")]
            parts = [found.setdefault(name, []) for name in names]
        else:
            for part in parts:
                part.append(line.strip())
