"""XML answers and pages: the few elements that errors have."""

import re
from typing import Final

from failwise.classify.shape import Shape
from failwise.evidence.facts import Evidence

_ELEMENT: Final = re.compile(
    r"<(?:\w{1,20}:)?(Code|code|Message|message|RequestId|RequestID|Error|err_code|err_code_des|return_code|return_msg|result_code|"
    r"faultstring|faultcode|errorCode|errorMessage|errorDescription|errMsg|returnAuthMsg|returnReasonCode|Text|Value|HostId|Resource)"
    r"(?:\s[^<>]{0,300})?>\s{0,64}(?:<!\[CDATA\[)?([^<\]]{0,600})"
)
_XML_ERROR: Final = re.compile(
    r"<(?:\w{1,20}:)?(?:Error|ErrorResponse|Errors|Fault|XMLFault|error|OpenAPI_ServiceResponse)[\s>]"
)
_PIECE: Final = re.compile(
    r"<(/?)(?:[\w-]{1,40}:)?([A-Za-z_][\w.-]{0,60})(?:\s[^<>]{0,500})?(/?)>|<!\[CDATA\[([^\]]{0,2000})\]\]>|([^<]{1,2000})"
)
_ELEMENTS: Final = 60
_DEEP: Final = 6
_PAGES: Final = frozenset({"html", "rss", "feed", "svg", "urlset", "sitemapindex"})
LOOKED_AT: Final = 16_384


def xml_shape(text: str) -> Shape | None:
    """S15, S16: an XML error document, under any status; None where it is none."""
    text = text[:LOOKED_AT]
    if text.lstrip()[:1] != "<":
        return None
    found: dict[str, str] = {}
    for match in _ELEMENT.finditer(text):
        found.setdefault(match.group(1), match.group(2).strip())
    levels = [found[name] for name in ("return_code", "result_code") if name in found]
    if levels:
        if all(level == "SUCCESS" for level in levels):
            return None
        message = found.get("err_code_des") or found.get("return_msg")
        return Shape("S16", True, found.get("err_code"), message)
    if not _XML_ERROR.search(text[:2_048]):
        from failwise.classify.shapes import recognise

        body = xml_body(text)
        return recognise(body, None) if body else None
    code = _first(found, _CODES)
    message = _first(found, _MESSAGES)
    if not code and not message:
        return None
    asked = _first(found, ("faultcode", "Value"))
    return Shape(
        "S15",
        True,
        code,
        message,
        request_id=_first(found, ("RequestId", "RequestID")),
        status=400 if asked and _SENDER.search(asked) else None,
    )


_CODES: Final = ("Code", "code", "errorCode", "returnReasonCode", "faultcode", "Value")
_MESSAGES: Final = (
    "Message", "message", "errorMessage", "errorDescription", "returnAuthMsg", "errMsg", "faultstring", "Text",
)  # fmt: skip
_SENDER: Final = re.compile(r"(?:^|:)(?:Client|Sender)\b", re.ASCII)
"""SOAP 1.1 §4.4.1, SOAP 1.2 §5.4.6: the message itself was at fault, though the status is 500."""


def _first(found: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((found[name] for name in names if found.get(name)), None)


def xml_body(text: str) -> dict[str, object] | None:
    """What stands in the root of a small document, by the names of its elements, without attributes;
    None for pages, for feeds, and for what is larger than an answer that says how it ended."""
    levels: list[tuple[str, dict[str, object], list[str]]] = [("", {}, [])]
    seen = 0
    for closes, name, empty, quoted, plain in _PIECE.findall(text[:LOOKED_AT]):
        if quoted or plain:
            levels[-1][2].append(quoted or plain)
        elif not closes:
            seen += 1
            if seen > _ELEMENTS or len(levels) > _DEEP or name.lower() in _PAGES:
                return None
            if empty:
                levels[-1][1].setdefault(name, "")
            else:
                levels.append((name, {}, []))
        elif len(levels) > 1 and levels[-1][0] == name:
            _, inner, words = levels.pop()
            levels[-1][1].setdefault(name, inner or "".join(words).strip())
        else:
            return None
    root = next(iter(levels[0][1].values()), None)
    return root if len(levels) == 1 and isinstance(root, dict) else None


def stream_shape(text: str) -> Shape | None:
    """S23: an error event inside a stream of server-sent events."""
    if "data:" not in text[:4_096] and "event:" not in text[:4_096]:
        return None
    import json

    from failwise.classify.shapes import recognise

    failing = False
    for line in text[:LOOKED_AT].splitlines():
        if line.startswith("event:"):
            failing = line[6:].strip() == "error"
        elif line.startswith("data:"):
            payload = line[5:].strip()
            if not payload.startswith("{"):
                continue
            try:
                body = json.loads(payload)
            except ValueError:
                continue
            if isinstance(body, dict) and str(body.get("type", "")).endswith(".failed"):
                body = body.get("response", body)  # the whole answer, with its error inside
            if failing or (
                isinstance(body, dict) and (body.get("type") == "error" or body.get("error"))
            ):
                shape = recognise(body, None)
                return shape if shape and shape.failed else Shape("S23", True, None, payload[:300])
    return None


def is_html(evidence: Evidence) -> bool:
    """A web page, by what the evidence found or by its type."""
    if evidence.problem == "html" or evidence.title is not None:
        return True
    kind = (evidence.content_type or "").lower()
    return "text/html" in kind and (evidence.text or "").lstrip()[:1] == "<"
