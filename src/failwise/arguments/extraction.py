"""Finding the one call in what a model wrote: prose, fences, tags, call syntax, envelopes.

A text may hold objects, calls in Python syntax, and the tags in which open models wrap their
calls. What names another tool is not ours; what stands inside something unreadable counts only
when it names our tool. Exactly one distinct call must be left.
"""

import contextlib
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from failwise.arguments.decode import Malformed, same, scan
from failwise.arguments.readings import fold, fold_name
from failwise.arguments.tags import tagged_calls
from failwise.arguments.tolerant import Parser
from failwise.arguments.validators import pointer
from failwise.vocabulary.kinds import Grade
from failwise.vocabulary.result import Repair

MAXIMUM_RECOVERED = 256 * 1024
"""Longest text that is searched and repaired, in characters."""

_ATTEMPTS = 100
_START = re.compile(r"[{｛\[［]|(?<![\w.\\-])[^\W\d](?:\w|\\_|[.-](?=\w)){0,200}\s?\(")
_BRACKETS = re.compile(r"[{}｛｝\[\]［］()]")
_ALL_BRACKETS = "{}｛｝[]［］()"
_MAXIMUM_BRACKETS = 20_000
_PAIRS = {"}": "{", "｝": "｛", "]": "[", "］": "［", ")": "("}
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "api", "action")
_VALUES = ("arguments", "parameters", "params", "args", "input", "kwargs", "action_input")
_LISTS = ("tool_calls", "function_calls", "calls", "function_call", "tool_call", "function")
_DEBRIS = frozenset({"id", "type", "index", "call_id", "tool_call_id", "thought", "reasoning"})
_BEFORE = re.compile(
    r"([^\W\d](?:[\w.-]|\\_)*)(?::\d+)?[`\"'*]*\s*"
    r"(?:<[|｜/]?[\w▁|｜ =.-]{1,60}>\s*|```\w{0,12}\s*|\[ARGS\]\s*|:\s*|\bjson\s*|=\s*)*$"
)
_ADDRESS = re.compile(
    r"(?:to=(?:functions\.)?|<function=|\[TOOL_CALLS\]\s*|tool▁sep[｜|]>\s*|tool_call_begin[｜|]>\s*"
    r"|functions\.)([^\W\d][\w.-]*)(?:<\|channel\|>\w*)?[^{}\[\]()]{0,120}$"
)
_CALLEE = re.compile(r"([^\W\d][\w.\\-]*)[\"'`]?\s*\(\s*$")
_CAREFUL = re.compile(r"\\u|\d[.eE]")
"""Halves of characters have to be looked for, and the spellings of floats kept."""
_CONSUMERS = frozenset({"print", "dumps", "loads", "dict", "json.dumps", "json.loads", "parse"})
_ADJACENT = re.compile(r"[}｝]\s*[,;]?\s*[{｛]")
_LEFT_OVER = re.compile(r"""[^"'“{\n]{0,200}["'”]\s{0,20}[}｝]""")
"""The rest of a text that was closed too early: its own quote, and the brace behind it."""
_GOES_ON = re.compile(r"""\s*[,，]\s*["'“]""")
_INNER = re.compile(r"[\s\]}）)]*(?:```[\s`]*|</?[\w|▁｜]+>|<[|｜][^>]*>|[\s\]})])*", re.ASCII)


class Found:
    """One call that a text holds: `arguments`, the repairs its syntax needed, and how it is named.

    `ours`: True when it names our tool, None when it names none. `bare` are the paths of words
    without quotes, `spellings` the floats as they were written.
    """

    __slots__ = ("arguments", "bare", "ours", "repairs", "spellings")

    def __init__(
        self,
        arguments: dict[str, Any],
        ours: bool | None,
        repairs: list[Repair],
        bare: Collection[str] = (),
        spellings: dict[float, set[str]] | None = None,
    ) -> None:
        self.arguments, self.ours, self.repairs = arguments, ours, repairs
        self.bare, self.spellings = frozenset(bare), spellings or {}


def envelope(
    value: Any, tool: str, names: Collection[str]
) -> Iterator[tuple[bool | None, dict[str, Any], tuple[str | int, ...], str]]:
    """The calls a decoded value stands for: ``(ours, arguments, path, kind)``.

    An object that is no envelope is itself the arguments. `names` are the tool's own parameters: an
    object made of them is not taken for an envelope. `ours` is False for another tool's call.
    """
    yield from _envelope(value, tool, names, (), 0)


def _envelope(
    value: Any, tool: str, names: Collection[str], path: tuple[str | int, ...], depth: int
) -> Iterator[tuple[bool | None, dict[str, Any], tuple[str | int, ...], str]]:
    if depth > 6:
        return
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict):
            if fold_name(value[0]) == fold_name(tool):
                yield True, value[1], (*path, 1), "envelope"
            return
        for index, item in enumerate(value[:50]):
            if isinstance(item, dict | list):
                yield from _envelope(item, tool, names, (*path, index), depth + 1)
            elif isinstance(item, str) and (called := _called(item, tool)) is not None:
                yield True, called, (*path, index), "call_syntax"
        return
    if not isinstance(value, dict):
        return
    keys = set(value)
    name_key = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    value_key = next((key for key in _VALUES if isinstance(value.get(key), dict | str)), None)
    own = keys <= set(names) and bool(keys)
    if name_key is not None and not own:
        ours = _is_tool(value[name_key], tool)
        rest = keys - {name_key} - _DEBRIS
        if value_key is not None and rest == {value_key}:
            inner = _inner(value[value_key])
            if inner is not None:
                yield ours, inner, (*path, value_key), "envelope"
                return
        if ours and name_key not in names:
            if not rest:
                yield True, {}, path, "envelope"
            elif value_key is None or value_key in names:
                flat = {key: value[key] for key in value if key not in {name_key} | _DEBRIS}
                if flat.keys() <= set(names):
                    yield True, flat, path, "envelope"
            return
    if not own and keys:
        for key in _LISTS:
            if key in keys - set(names) and isinstance(value[key], dict | list):
                yield from _envelope(value[key], tool, names, (*path, key), depth + 1)
                return
        if len(keys) == 1:
            (only,) = keys
            inner = _inner(value[only])
            if inner is not None and tool and fold_name(only) == fold_name(tool):
                yield True, inner, (*path, only), "envelope"
                return
            if inner is not None and only in _VALUES and only not in names:
                yield None, inner, (*path, only), "wrapper"
                return
    yield None, value, path, ""


def _called(text: str, tool: str) -> dict[str, Any] | None:
    """The arguments of a text that is a call of the tool and nothing else."""
    name, mark, _ = text.partition("(")
    if not mark or not _is_tool(name.strip(), tool):
        return None
    parser = Parser(text, len(name), may_close=False)
    try:
        arguments = parser.call()
    except Malformed:
        return None
    return None if text[parser.position :].strip() else arguments


def _inner(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "｛"):
        try:
            parser = Parser(value, may_close=False)
            inner = parser.value()
        except Malformed:
            return None
        if isinstance(inner, dict) and not value[parser.position :].strip():
            return inner
    return None


def _is_tool(name: str, tool: str) -> bool:
    """The same tool: spelt with other separators, behind a namespace, or with channel debris."""
    name = re.split(r"<[|｜]", name, maxsplit=1)[0].removeprefix("functions.")
    return bool(tool) and fold_name(name) == fold_name(tool)


def find_calls(text: str, tool: str, names: Collection[str], *, may_close: bool) -> list[Found]:
    """All distinct calls in a text that may be ours; those that name our tool alone, if any do.

    Raises `Malformed` when nothing readable is there, or only calls of other tools.
    """
    search = _Search(text, tool, names, may_close)
    tagged = [
        Found(arguments, True, [_repair("tags", text, arguments)])
        for name, arguments in tagged_calls(text)
        if _is_tool(name, tool)
    ]
    found = _distinct(tagged + list(search.run()))
    if len(found) == 1 and not search.others:
        return found
    ours = [call for call in found if call.ours]
    if ours:
        return _distinct(ours)
    if found:
        if search.others:
            raise Malformed("other_tool")
        if _ADJACENT.search(text):
            return found
        # In prose, an object with none of the tool's parameters is something else.
        keys = {fold(name) for name in names}
        own = [call for call in found if any(fold(key) in keys for key in call.arguments)]
        return own or found
    if search.others:
        raise Malformed("other_tool")
    raise search.first or Malformed("no_object")


def _distinct(calls: Sequence[Found]) -> list[Found]:
    distinct: list[Found] = []
    for call in calls:
        alike = next((other for other in distinct if same(other.arguments, call.arguments)), None)
        if alike is None:
            distinct.append(call)
        elif call.ours and not alike.ours:
            distinct[distinct.index(alike)] = call
    return distinct


class _Search:
    def __init__(self, text: str, tool: str, names: Collection[str], may_close: bool) -> None:
        self._text, self._tool, self._names, self._may_close = text, tool, names, may_close
        self.first: Malformed | None = None
        self.others = False
        self._strict = True

    def run(self) -> Iterator[Found]:
        text, position, tainted, attempts, work = self._text, 0, 0, 0, 0
        partners: dict[int, int] | None = None
        while attempts < _ATTEMPTS and work <= 4 * len(text) + 10_000:
            start = _START.search(text, position)
            if start is None:
                return
            attempts += 1
            begin = start.start()
            parser = Parser(text, begin, may_close=self._may_close, names=self._names)
            called = start[0].endswith("(")
            try:
                if called:
                    found = list(self._call(parser, start, tainted > begin))
                else:
                    found = list(self._object(parser, begin, tainted > begin))
            except Malformed as error:
                if error.reason == "too_deep":
                    raise
                work += max(parser.position, error.position or 0) - begin
                if not called:
                    self.first = self.first or error
                    # What stands inside something unreadable is not the call, unless it says so.
                    partners = _partners(text) if partners is None else partners
                    tainted = max(tainted, partners.get(begin, len(text)))
                position = begin + len(start[0])
                continue
            work += parser.position - begin
            position = max(parser.position, begin + 1)
            yield from found

    def _call(self, parser: Parser, start: re.Match[str], tainted: bool) -> Iterator[Found]:
        name = start[0][:-1].strip().replace("\\_", "_")
        ours = _is_tool(name.removeprefix("tools."), self._tool)
        before = self._text[max(0, start.start() - 12) : start.start()]
        if re.search(r"\b(?:def|function|class|fn|func)\s+$", before):
            raise Malformed("syntax", start.start())
        parser.position = start.end() - 1
        try:
            arguments = parser.call()
        except Malformed as error:
            self.first = self.first or (error if ours else None)
            raise
        if arguments is None:
            whole = self._text.strip(" \t\r\n`[];") == self._text[start.start() : parser.position]
            if not (ours and whole):
                return
            arguments = {}
        if not ours:
            if name not in _CONSUMERS and not tainted:
                self.others = True
            return
        self._check(parser)
        yield self._found(parser, arguments, True, (), "call_syntax", start.start())

    def _value(self, parser: Parser, begin: int) -> Any:
        """The value at a place: strictly, where that is enough, else tolerantly.

        Only the first place is tried strictly, so that hostile texts are not scanned again and again.
        """
        if self._strict:
            self._strict = False
            with contextlib.suppress(Exception):
                value, end = scan(self._text, begin)
                written = self._text[begin:end]
                if not _CAREFUL.search(written):
                    parser.position = end
                    return value
        return parser.value()

    def _object(self, parser: Parser, begin: int, tainted: bool) -> Iterator[Found]:
        value = self._value(parser, begin)
        self._check(parser)
        calls = list(envelope(value, self._tool, self._names))
        if not calls and isinstance(value, list):
            return
        named = self._named(begin)
        for told, arguments, path, kind in calls:
            ours = named if told is None and len(calls) == 1 else told
            if ours is False:
                self.others = True
            elif ours or not tainted:
                yield self._found(parser, arguments, ours, path, kind, begin)

    def _named(self, begin: int) -> bool | None:
        """Whether the words right before an object name our tool, another one, or none."""
        if begin == 0:
            return None
        before = self._text[max(0, begin - 200) : begin]
        callee = _CALLEE.search(before)
        if callee is not None:
            name = callee[1].replace("\\_", "_")
            if _is_tool(name, self._tool):
                return True
            return None if name in _CONSUMERS else False
        address = _ADDRESS.search(before)
        if address is not None:
            return _is_tool(address[1], self._tool)
        word = _BEFORE.search(before)
        if word is not None and _is_tool(word[1].replace("\\_", "_"), self._tool):
            return True
        return None

    def _check(self, parser: Parser) -> None:
        """What follows a value must not show that it went on."""
        end = parser.position
        if parser.inner_quotes and _INNER.fullmatch(self._text, end) is None:
            raise Malformed("ambiguous", end)
        if _GOES_ON.match(self._text, end) or _LEFT_OVER.match(self._text, end):
            raise Malformed("syntax", end, self._text[end : end + 20])

    def _found(
        self,
        parser: Parser,
        arguments: dict[str, Any],
        ours: bool | None,
        path: tuple[str | int, ...],
        kind: str,
        begin: int,
    ) -> Found:
        text, end = self._text, parser.position
        repairs: list[Repair] = []
        before, after = text[:begin].strip(), text[end:].strip()
        if before or after:
            kind_around = "fence" if _is_fence(before) and _is_fence(after) else "surroundings"
            repairs.append(_repair(kind_around, f"{before[-60:]} … {after[:60]}", ""))
        if kind:
            repairs.append(_repair(kind, text[begin : min(end, begin + 60)], arguments))
        prefix = pointer(list(path))
        if not prefix:
            return Found(arguments, ours, repairs + parser.edits, parser.bare, parser.spellings)
        for edit in parser.edits:
            inside = edit.path.startswith(prefix)
            place = edit.path[len(prefix) :] if inside else ""
            repairs.append(Repair(edit.kind, place, edit.before, edit.after, edit.grade))
        bare = {place[len(prefix) :] for place in parser.bare if place.startswith(prefix)}
        return Found(arguments, ours, repairs, bare, parser.spellings)


def _repair(kind: str, before: str, after: Any) -> Repair:
    shown = after if isinstance(after, str) else None
    return Repair(kind, "", before[:130], shown, Grade.LOSSLESS)


def _is_fence(text: str) -> bool:
    return re.fullmatch(r"(?:```|~~~)?\w{0,12}|", text) is not None


def _partners(text: str) -> dict[int, int]:
    """Opening bracket → just past its partner, quotes not looked at; one pass.

    In a text of too many brackets none has a partner.
    """
    partners: dict[int, int] = {}
    if sum(map(text.count, _ALL_BRACKETS)) > _MAXIMUM_BRACKETS:
        return partners
    stack: list[tuple[str, int]] = []
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark not in _PAIRS:
            stack.append((mark, match.start()))
        else:
            while stack and stack[-1][0] != _PAIRS[mark]:
                stack.pop()
            if stack:
                partners[stack.pop()[1]] = match.end()
    return partners
