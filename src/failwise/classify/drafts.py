"""A provider profile begun from recorded answers: a draft for a person to complete and confirm."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from failwise.classify.classifier import Classifier
from failwise.classify.contract import RecordedAnswer
from failwise.classify.shapes import recognise
from failwise.evidence import Evidence, from_response
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category
from failwise.vocabulary.records import Unset

_LOOKED_AT: Final = 2_000
_DEPTH: Final = 6
_ACTIONS: Final = {
    Category.NETWORK: Action.RETRY_BACKOFF,
    Category.SERVER: Action.RETRY_BACKOFF,
    Category.RATE_LIMIT: Action.RETRY_BACKOFF,
    Category.INVALID_REQUEST: Action.REPAIR_ARGUMENTS,
    Category.AUTH: Action.ASK_USER,
    Category.BUSINESS: Action.ASK_MODEL,
}


def evidence_of_answer(answer: Mapping[str, Any]) -> Evidence:
    """The evidence of a recorded answer: ``status``, and ``headers``, ``body``, ``method``, ``url``
    where they are known. `body` is a text or JSON data. Raises `UsageError` for what is none."""
    import json

    status, headers, body = answer.get("status"), answer.get("headers"), answer.get("body")
    if not isinstance(status, int) or not 100 <= status <= 599:
        raise UsageError(f"status={status!r} is no HTTP status: write one from 100 to 599")
    if headers is not None and not isinstance(headers, Mapping):
        raise UsageError("headers: write an object of names and values")
    given = {str(name).lower(): str(value) for name, value in (headers or {}).items()}
    if body is None:
        text = ""
    elif isinstance(body, str):
        text = body
    else:
        text = json.dumps(body, ensure_ascii=False)
        given.setdefault("content-type", "application/json")
    return from_response(
        RecordedAnswer(status, given, text, answer.get("method"), answer.get("url"))
    )


def draft(name: str, answers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A profile called `name` as data, in the form of the YAML files.

    Hosts come from the URLs, the places of code, message and request id from the bodies, a row of
    the table from each code that failed: all of them ``confirmed: false``, with the verdict that is
    given without a profile. Raises `UsageError` where no answer failed with a code of its own.
    """
    hosts: dict[str, None] = {}
    places: dict[str, dict[str, None]] = {"code": {}, "message": {}, "request_id": {}}
    rows: dict[str, dict[str, Any]] = {}
    good: list[Any] = []
    in_success = in_status = False
    classifier = Classifier()
    for answer in answers:
        host = urlsplit(str(answer.get("url") or "")).hostname
        if host:
            hosts[host] = None
        evidence = evidence_of_answer(answer)
        body = None if isinstance(evidence.body, Unset) else evidence.body
        shape = recognise(body, evidence.status)
        failure = classifier.classify(evidence)
        if failure is None:
            good.append(body)
        if failure is None or shape is None:
            continue
        told = {"code": shape.code, "message": shape.message, "request_id": shape.request_id}
        for field, value in told.items():
            place = _place(body, value)
            if place is not None:
                places[field][place] = None
        in_success = in_success or (evidence.status or 0) < 400
        in_status = in_status or (evidence.status or 0) >= 400
        if shape.code is not None and places["code"]:
            rows.setdefault(shape.code, _row(shape.code, evidence.status, failure))
    if not rows:
        raise UsageError("none of the answers failed with a code of its own: record some that did")
    fields = {field: list(found) for field, found in places.items() if found}
    detect: dict[str, Any] = {"hosts": list(hosts)} if hosts else {"body": list(places["code"])}
    success = _success(next(iter(places["code"])), good) if in_success and places["code"] else None
    return {
        "schema": 1,
        "id": name,
        "name": name,
        "kind": "api",
        "detect": detect,
        "error_in": "both" if in_success and in_status else "body" if in_success else "http_status",
        **({"success": [success]} if success else {}),
        "fields": fields,
        "codes": list(rows.values()),
    }


def _success(place: str, good: list[Any]) -> dict[str, Any]:
    """What the good answers hold where failing ones have their code; nothing there: it is absent."""
    values: list[Any] = []
    for body in good:
        value = body
        for step in place.replace("[0]", ".0").split("."):
            if isinstance(value, Mapping):
                value = value.get(step)
            else:
                value = value[0] if isinstance(value, list) and value and step == "0" else None
        if isinstance(value, str | int | float | bool) and value not in values:
            values.append(value)
    return {"at": place, "equals": values} if values else {"at": place, "absent": True}


def _row(code: str, status: int | None, failure: Failure) -> dict[str, Any]:
    entry = lookup(failure.code)
    meaning = entry.meaning if entry is not None else {}
    action = failure.advice or _ACTIONS.get(failure.category, Action.ABORT)
    row: dict[str, Any] = {"code": code}
    if status is not None and status >= 400:
        row["http"] = status
    return row | {
        "en": meaning.get("en", failure.code),
        "zh": meaning.get("zh", failure.code),
        "as": failure.code,
        "transient": bool(failure.transient),
        "action": action.value,
        "effect": failure.effect.value,
        "confirmed": False,
    }


def _place(body: Any, wanted: str | None) -> str | None:
    """The path of a value in a body, the shallowest one."""
    if wanted is None:
        return None
    waiting: list[tuple[Any, str, int]] = [(body, "", 0)]
    for _ in range(_LOOKED_AT):
        if not waiting:
            return None
        value, path, depth = waiting.pop(0)
        if isinstance(value, Mapping) and depth < _DEPTH:
            waiting += [
                (child, f"{path}.{key}" if path else str(key), depth + 1)
                for key, child in value.items()
                if isinstance(key, str) and key.replace("_", "").replace("-", "").isalnum()
            ]
        elif isinstance(value, list) and depth < _DEPTH and value:
            waiting.append((value[0], f"{path}[0]", depth + 1))
        elif path and isinstance(value, str | int) and str(value) == wanted:
            return path
    return None
