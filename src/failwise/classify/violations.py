"""What an upstream said of the arguments → a list of violations: parameter, rule, what was due, what it got.

Rules: ``required``, ``type``, ``enum`` (`allowed`), ``range`` (`minimum`, `maximum`), ``digits`` and
``length`` (`length`, or `minimum`/`maximum`), ``pattern``, ``format``, ``unknown`` (a parameter
nobody knows), ``invalid``. Each has `parameter` (a dotted path) and, where told, `got` and `message`.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from failwise.vocabulary.needs import Way, whole
from failwise.vocabulary.records import MAPPING

Violation: TypeAlias = dict[str, Any]

LIMIT: Final = 20
_NAME: Final = r"[\"'`“「\[]?(?<![A-Za-z_])(?P<name>[A-Za-z_][\w.\[\]-]{0,80})[\"'`”」\]]?"
_GOT: Final = re.compile(
    r"(?:,|，|;|；|\.|。|\s)\s{0,3}(?:but )?(?:got|received|was given|found|you (?:sent|passed|provided)|given|actual|当前(?:值)?为|收到(?:的是)?|实际(?:值)?(?:为|是)|传入(?:的是)?|而不是)"
    r"\s{0,3}[:：]?\s{0,3}[\"'`“「]?(?P<got>[^\"'`”」,，。\n]{0,120})[\"'`”」]?",
    re.IGNORECASE,
)
_NOT_NAMES: Final = frozenset(
    {"parameter", "param", "field", "value", "argument", "input", "it", "this", "request", "body", "the", "a", "required",
     "missing", "and", "or", "must", "should", "error", "message", "data", "query", "is", "be", "array", "object",
     "string", "number", "integer", "boolean", "valid", "invalid", "which", "that", "you", "parameters", "fields"}
)  # fmt: skip


@functools.cache
def _forms() -> tuple[tuple[str, Way], ...]:
    """The forms below, compiled when the first violation is looked for."""
    forms = []
    for rule, form in _FORMS:
        way = whole(re.compile(form.replace("{name}", _NAME), re.IGNORECASE))
        needed = (_MUST_WORDS, *way.needed) if form.startswith(_MUST) else way.needed
        forms.append((rule, Way(needed, way.pattern)))
    return tuple(forms)


_MUST: Final = r"(?:parameter |field |参数|字段)?{name}\s{0,3}(?:的?(?:值|长度|格式))?\s{0,3}(?:must(?: only)?(?: be| have| contain)?|should(?: be| have)?|has to be|needs? to be|is expected to be|expected|应为|必须为|必须是|必须|应该是|应该为|应是|须为|需为|需要是|只能是|只能为|(?=不能(?:超过|大于|小于)|不得(?:超过|小于))|的?取值(?:范围)?(?:为|是))\s{0,3}"
_MUST_WORDS: Final = (
    "must", "should", "has to be", "need", "expected", "应为", "必须", "应该", "应是", "须为", "需为", "需要是", "只能",
    "不能", "不得", "取值",
)  # fmt: skip
"""One of these stands in every text that `_MUST` matches."""
_FORMS: Final = (
    ("digits", _MUST + r"(?:exactly )?(?P<length>\d{1,4})\s{0,3}(?:digits?|位(?:纯)?数字|位数字)"),
    ("length", _MUST + r"(?:exactly )?(?P<length>\d{1,6})\s{0,3}(?:characters?|chars?|letters?|bytes|items?|elements?|个字符|位字符|位|个元素)(?: long)?"),
    ("length_range", _MUST + r"(?:between )?(?P<minimum>\d{1,6})\s{0,3}(?:and|to|-|–|~|到|至)\s{0,3}(?P<maximum>\d{1,6})\s{0,3}(?:characters?|chars?|digits|items?|个字符|位)"),
    ("length_max", _MUST + r"(?:at most|no (?:more|longer) than|less than|shorter than|不超过|最多)\s{0,3}(?P<maximum>\d{1,6})\s{0,3}(?:characters?|chars?|digits|items?|个字符|位)"),
    ("length_min", _MUST + r"(?:at least|no (?:less|shorter) than|longer than|至少|不少于)\s{0,3}(?P<minimum>\d{1,6})\s{0,3}(?:characters?|chars?|digits|items?|个字符|位)"),
    ("enum", _MUST + r"(?:one of|either|in|any of|之一|其中之一)?\s{0,3}[:：]?\s{0,3}[\[({（【](?P<allowed>[^\])}）】\n]{1,400})[\])}）】]"),
    ("enum", _MUST + r"(?:one of|either|any of)\s{0,3}[:：]?\s{0,3}(?P<allowed>[^\n;.。，]{1,300})"),
    ("enum", r"{name}[^\n]{0,40}(?:不在|可选值(?:为|是)?|取值范围(?:为|是)?|允许的值(?:为|是)?)[:：]?\s{0,3}[\[({（【]?(?P<allowed>[^\])}）】\n。]{1,300})"),
    ("range", _MUST + r"(?:a (?:number|value|integer) )?(?:between|in (?:the )?range(?: of)?|from|在|介于)\s{0,3}[\[(]?(?P<minimum>-?\d{1,12}(?:\.\d{1,6})?)\s{0,3}(?:and|to|,|-|–|~|到|至|和)\s{0,3}(?P<maximum>-?\d{1,12}(?:\.\d{1,6})?)"),
    ("range", _MUST + r"(?P<minimum>-?\d{1,12})\s{0,3}(?:到|至|-|~|–)\s{0,3}(?P<maximum>-?\d{1,12})(?:\s{0,3}之间)?"),
    ("maximum", _MUST + r"(?:at most|no more than|(?:less|smaller|lower) than(?: or equal to)?|<=?|不超过|不能超过|不得超过|不大于|不能大于|小于(?:等于)?|最大(?:为)?|最多)\s{0,3}(?P<maximum>-?\d{1,12}(?:\.\d{1,6})?)"),
    ("minimum", _MUST + r"(?:at least|no less than|(?:greater|larger|more|bigger) than(?: or equal to)?|>=?|不小于|不能小于|不得小于|不少于|大于(?:等于)?|最小(?:为)?|至少)\s{0,3}(?P<minimum>-?\d{1,12}(?:\.\d{1,6})?)"),
    ("type", _MUST + r"(?:of type |a valid |an? |类型)?(?P<type>string|text|integer|int|number|float|decimal|boolean|bool|array|list|object|dictionary|字符串|整数|数字|布尔值?|数组|对象|列表)(?![\w-])"),
    ("format", _MUST + r"(?:in |an? )?(?:a |the )?(?:valid )?(?:format:? ?|formatted as )?(?P<format>e-?mail|url|uri|uuid|date(?:-time)?|datetime|ISO ?8601|RFC ?3339|YYYY-MM-DD[^\s,，。;]{0,20}|HH:mm(?::ss)?|手机号码?|邮箱|日期|时间)(?![\w-])"),
    ("required", r"(?:missing|lacks?|缺少|缺失|遗漏)(?: a| the| some)?\s{0,3}(?:required |mandatory |必填的?|必要的?|必需的?)?(?:query |body |path |header |request |请求)?(?:parameters?|params?|fields?|argument|property|properties|keys?|value|参数|字段|入参)(?: for| of| named)?\s{0,3}[:：]?\s{0,3}{name}"),
    ("required", r"(?:required |必填)(?:query |body |request )?(?:parameter|param|field|argument|property|参数|字段)\s{0,3}[:：]?\s{0,3}{name}\s{0,3}(?:is |was )?(?:missing|not (?:provided|given|present|set|specified|found|supplied)|缺失|未提供|为空)?"),
    ("required", r"{name}\s{0,3}(?:parameter |field |参数|字段)?(?:is (?:a )?(?:required|mandatory)|must be (?:provided|specified|set|given)|is missing|was not provided|(?:must not|cannot|can't|may not|should not) be (?:empty|blank|null)|can't be blank|不能为空|不可为空|为必填(?:项|参数|字段)?|是必填(?:项|参数|字段)?|必填|缺失)"),
    ("unknown", r"(?:unknown|unexpected|unrecognized|unsupported|extra|未知的?|不支持的?)(?: request| query| keyword)?\s{0,3}(?:parameter|param|field|argument|property|key|参数|字段)s?(?: supplied| given)?\s{0,3}[:：]?\s{0,3}{name}"),
    ("invalid", r"(?:invalid|illegal|malformed|bad|wrong|无效的?|非法的?|错误的?)(?: value)?(?: for| of)?(?: the)?\s{0,3}(?:query |request |body )?(?:parameter|param|field|argument|property|参数|字段)s?\s{0,3}[:：]?\s{0,3}{name}"),
    ("invalid", r"(?:parameter |field |argument |参数|字段)?{name}\s{0,3}(?:is |are |was )?(?:not (?:a )?valid|invalid|illegal|malformed|not allowed|not supported|格式(?:错误|不正确|有误)|不合法|无效|非法|错误)"),
)  # fmt: skip
_CHOICE: Final = re.compile(
    r"(?<![a-zA-Z])(?:supported|allowed|valid|accepted|permitted|possible|可选|允许的?|支持的?)\s?(?:values?|options?|choices?|取?值)"
    r"\s{0,3}(?:are|is|include|为|是|有|包括)?\s{0,3}[:：]?\s{0,3}(?P<allowed>[^\n.。;；]{1,300})",
    re.IGNORECASE,
)
"""The values there are, where the parameter is named elsewhere."""
_RULE_NAMES: Final = {
    "length_range": "length",
    "length_max": "length",
    "length_min": "length",
    "maximum": "range",
    "minimum": "range",
}
_SPLIT: Final = re.compile(r"\s{0,3}(?:,|，|、|\||/| or | and |或)\s{0,3}")
_QUOTES: Final = " \"'`“”「」"


def violations(body: Any, message: str | None) -> list[Violation]:
    """What is wrong with which parameter, from a validation body or from a message's words."""
    found = list(_of_body(body))[:LIMIT]
    if found or not message:
        return found
    return list(_of_text(message))[:LIMIT]


def _of_body(body: Any, depth: int = 0) -> Iterator[Violation]:
    if isinstance(body, str) and depth < 3 and body.lstrip()[:1] in ("{", "["):
        from failwise.classify.shape import parsed

        yield from _of_body(parsed(body), depth + 1)
        return
    if isinstance(body, list):
        for item in body[:LIMIT]:
            if isinstance(item, MAPPING):
                yield from _of_item(item)
        return
    if not isinstance(body, MAPPING) or depth > 3:
        return
    for name in (
        "detail",
        "errors",
        "details",
        "violations",
        "fieldErrors",
        "invalid_params",
        "invalid-params",
    ):
        value = body.get(name)
        if isinstance(value, list | str) and value:
            yield from _of_body(value, depth + 1)
        elif isinstance(value, MAPPING):
            yield from _of_fields(value)
    if depth == 0 and body and all(map(_is_texts, body.values())):
        yield from _of_fields({key: body[key] for key in body if key not in _NOT_FIELDS})
    error = body.get("error")
    if isinstance(error, MAPPING):
        yield from _of_body(error, depth + 1)
        yield from _of_named(error)


_NOT_FIELDS: Final = frozenset(
    {"detail", "details", "error", "errors", "message", "messages", "warnings", "non_field_errors"}
)


def _is_texts(value: Any) -> bool:
    """A list of sentences, as stands under a field's name where nothing stands around it."""
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _of_named(error: Mapping[str, Any]) -> Iterator[Violation]:
    """``error.param`` beside a message (S1)."""
    name, message = error.get("param"), error.get("message")
    if isinstance(name, str) and name and isinstance(message, str):
        told = next(_of_text(message), None) or {"rule": "invalid"}
        choice = _CHOICE.search(message[:2_000])
        if choice is not None:
            told = {"rule": "enum", "allowed": _values(choice["allowed"])}
        yield {**told, "parameter": name[:120], "message": message[:300]}


def _of_fields(fields: Mapping[str, Any]) -> Iterator[Violation]:
    """S11: each key is a parameter, its value a text or a list of texts."""
    for name, texts in list(fields.items())[:LIMIT]:
        items = texts if isinstance(texts, list) else [texts]
        for text in items[:3]:
            if isinstance(text, str):
                told = next(_of_text(f"{name} {text}"), None)
                yield {
                    **(told or {"rule": _rule_of(text)}),
                    "parameter": str(name)[:120],
                    "message": text[:300],
                }


_PLACES: Final = ("body", "query", "path", "header", "cookie", "params", "arguments")
_TYPES: Final = {
    "missing": "required", "value_error.missing": "required", "enum": "enum", "literal_error": "enum",
    "extra_forbidden": "unknown", "unrecognized_keys": "unknown", "invalid_type": "type", "invalid_enum_value": "enum",
    "string_too_short": "length", "string_too_long": "length", "too_short": "length", "too_long": "length",
    "string_pattern_mismatch": "pattern", "greater_than": "range", "greater_than_equal": "range", "less_than": "range",
    "less_than_equal": "range", "too_small": "range", "too_big": "range", "type_error.enum": "enum",
}  # fmt: skip


def _of_item(item: Mapping[str, Any]) -> Iterator[Violation]:
    """One entry of a list: FastAPI/pydantic, zod, JSON:API, Google, GitHub and their like."""
    inner = item.get("fieldViolations")
    if isinstance(inner, list):
        for entry in inner[:LIMIT]:
            if isinstance(entry, MAPPING):
                yield from _of_item(entry)
        return
    parameter = _parameter(item)
    message = next(
        (
            item[name]
            for name in ("msg", "message", "detail", "description", "reason", "title")
            if isinstance(item.get(name), str)
        ),
        "",
    )
    if not parameter:
        yield from _of_text(message)
        return
    kind = str(item.get("type", item.get("code", "")))
    violation: Violation = {
        "parameter": parameter,
        "rule": _TYPES.get(kind) or _rule_of(kind.replace("_", " ")) or "invalid",
    }
    if violation["rule"] == "invalid":
        told = next(_of_text(f"{parameter} {message}"), None)
        violation.update(
            {k: v for k, v in (told or {"rule": _rule_of(message)}).items() if k != "parameter"}
        )
        if kind.endswith(("_type", "_parsing")):
            violation["rule"] = "type"
    context = item.get("ctx")
    if isinstance(context, MAPPING):
        _add_context(violation, context)
    for name, key in (
        ("expected", "expected"),
        ("received", "got"),
        ("input", "got"),
        ("rejectedValue", "got"),
        ("value", "got"),
    ):
        value = item.get(name)
        if isinstance(value, str | int | float | bool) and key not in violation:
            violation[key] = value if not isinstance(value, str) else value[:120]
    if message:
        violation["message"] = message[:300]
    yield violation


def _parameter(item: Mapping[str, Any]) -> str:
    for name in ("loc", "path"):
        value = item.get(name)
        if isinstance(value, list):
            parts = [str(part) for part in value[:12]]
            while parts and parts[0] in _PLACES:
                parts = parts[1:]
            return ".".join(parts)[:120]
    for name in (
        "field",
        "param",
        "parameter",
        "name",
        "property",
        "propertyPath",
        "pointer",
        "path",
        "instancePath",
    ):
        value = item.get(name)
        if isinstance(value, str) and value:
            return value.lstrip("#/").replace("/", ".")[:120]
    source = item.get("source")
    if isinstance(source, MAPPING):
        value = source.get("parameter") or source.get("pointer")
        if isinstance(value, str):
            return value.rpartition("/")[2][:120]
    return ""


def _add_context(violation: Violation, context: Mapping[str, Any]) -> None:
    expected = context.get("expected")
    if isinstance(expected, str) and violation["rule"] == "enum":
        violation["allowed"] = _values(expected)
    for name, key in (
        ("min_length", "minimum"),
        ("max_length", "maximum"),
        ("ge", "minimum"),
        ("gt", "above"),
        ("le", "maximum"),
        ("lt", "below"),
        ("pattern", "pattern"),
        ("limit_value", "limit"),
    ):
        value = context.get(name)
        if isinstance(value, str | int | float):
            violation[key] = value


def _rule_of(text: str) -> str:
    lowered = text.lower()
    for words, rule in (
        (
            ("missing", "required", "blank", "empty", "presence", "不能为空", "必填", "缺少"),
            "required",
        ),
        (("not a valid choice", "inclusion", "one of", "enum"), "enum"),
        (("too long", "too short", "characters", "length", "长度"), "length"),
        (("must be greater", "must be less", "range", "minimum", "maximum"), "range"),
        (("unknown", "unexpected", "not permitted", "not allowed"), "unknown"),
        (("format", "valid email", "valid date", "格式"), "format"),
        (("integer", "number", "string", "boolean", "type"), "type"),
    ):
        if any(word in lowered for word in words):
            return rule
    return "invalid"


def _of_text(message: str) -> Iterator[Violation]:
    """Violations told in words, in English or Chinese, each parameter once."""
    text = message[:2_000]
    lowered = text.lower()
    seen: set[str] = set()
    for rule, form in _forms():
        for match in form.pattern.finditer(text) if form.may_match(lowered) else ():
            name = match.group("name").rstrip(".")
            if name.lower() in _NOT_NAMES or name in seen or len(seen) >= LIMIT:
                continue
            seen.add(name)
            yield _violation(rule, name, match, text)


def _violation(rule: str, name: str, match: re.Match[str], text: str) -> Violation:
    violation: Violation = {"parameter": name, "rule": _RULE_NAMES.get(rule, rule)}
    for key, value in match.groupdict().items():
        if key == "name" or value is None:
            continue
        if key == "allowed":
            violation[key] = _values(value)
        elif key in ("length", "minimum", "maximum"):
            violation[key] = float(value) if "." in value else int(value)
        else:
            violation[key] = value.strip()
    got = _GOT.search(text, match.end() - 1)
    if got is not None:
        violation["got"] = got.group("got").strip(_QUOTES)
    return violation


def _values(text: str) -> list[str]:
    return [part for part in (piece.strip(_QUOTES) for piece in _SPLIT.split(text)[:40]) if part]
