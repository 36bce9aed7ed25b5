"""`ImportedCall`: a tool call as somebody else recorded it, before it is judged."""

import datetime
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from failwise.vocabulary.records import record

_FRACTION: Final = re.compile(r"\.(\d{6})\d{1,9}")


@record
class ImportedCall:
    """A tool call and its end. `started` in epoch seconds (None: nothing told it).

    `arguments` as they were recorded: an object, or the raw text of the model. `answer` is what came
    back, `error` the text of an exception; `failed`: the record itself says that it failed, None
    where it does not say. `status`: the HTTP status below it. `answered`: an end was recorded at all.
    `by_model`: the answer went back to a model. `source`: where it stood, ``file:line``.
    """

    tool: str
    call_id: str
    run_id: str
    answer: Any = None
    error: str = ""
    failed: bool | None = None
    arguments: Any = None
    started: float | None = None
    duration_ms: float = 0.0
    status: int | None = None
    upstream: str = ""
    model: str = ""
    answered: bool = True
    by_model: bool = False
    source: str = ""


def digest(*parts: object) -> str:
    """16 hexadecimal digits that stay the same for the same parts."""
    text = "\x1f".join(str(part) for part in parts)
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def epoch_of(value: Any) -> float | None:
    """Epoch seconds of a moment as records have it: ISO 8601, or a number of s, ms, µs or ns."""
    if isinstance(value, str):
        if value.isdigit():
            return epoch_of(int(value))
        try:
            moment = datetime.datetime.fromisoformat(_FRACTION.sub(r".\1", value[:64]))
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool):
        for scale in (1, 1e3, 1e6, 1e9):
            if 1e8 < value / scale < 1e10:
                return round(value / scale, 6)
    return None


def first(data: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that holds something."""
    return next((data[name] for name in names if data.get(name) not in (None, "")), None)
