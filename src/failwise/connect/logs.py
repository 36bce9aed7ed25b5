"""A JSON formatter for the lines that `failwise` logs, one object a line.

The runtime logs each finished call at INFO to the logger ``failwise.calls``; that logger has no handler
and no level of its own until you give it one:

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("failwise.calls")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
"""

import datetime
import json
import logging
from typing import Any

__all__ = ["JsonFormatter"]

_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}


class JsonFormatter(logging.Formatter):
    """Any log record as one line of JSON: ``time`` (UTC, ISO 8601), ``level``, ``logger``, ``message``,
    what it carries beside (for a call: tool, category, code, attempts, ...), ``exception``.

    What is None is left out. Texts are redacted, the exception's too.
    """

    def format(self, record: logging.LogRecord) -> str:
        from failwise.redaction import default

        redactor = default()
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redactor.text(record.getMessage()),
        }
        for name, value in record.__dict__.items():
            if name not in _STANDARD and value is not None:
                line[name] = redactor.text(value) if isinstance(value, str) else value
        if record.exc_info:
            line["exception"] = redactor.text(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)
