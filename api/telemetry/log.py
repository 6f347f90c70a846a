"""Log lines as events: time, level, logger, message, then `action=` and the ids. Never user text, never a secret."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from recollect.api.telemetry.current_trace import current_trace_id
from recollect.api.telemetry.masking import Masking, told_error

_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "color_message"}
QUIET = (
    "aiosqlite",
    "httpx",
    "httpx2",
    "httpcore",
    "openai",
    "urllib3",
    "uvicorn.access",
    "pymongo",
    "langchain",
    "langsmith",
    "mcp",
)
"""Loggers whose INFO and DEBUG may hold addresses, bodies and the values of statements."""


class EventFormatter(logging.Formatter):
    """Formats a record as one line, with its extra fields as name=value and the traceback behind it.

    `with_texts`: the texts of foreign errors are logged too (LOG_LEVEL=DEBUG); they may quote a user.
    """

    def __init__(self, masking: Masking | None = None, *, with_texts: bool = False) -> None:
        super().__init__()
        self._masking = masking or Masking()
        self._with_texts = with_texts

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line with secrets masked."""
        return self._masking(self._line(_fields(record), _extra(record), self._error(record)))

    def _line(self, fields: Mapping[str, str], extra: Mapping[str, Any], error: str | None) -> str:
        line = f"{fields['time']} {fields['level']} {fields['logger']}: {fields['message']}"
        if extra:
            line = f"{line} {' '.join(f'{name}={value}' for name, value in extra.items())}"
        return f"{line}\n{error}" if error else line

    def _error(self, record: logging.LogRecord) -> str | None:
        error = record.exc_info[1] if record.exc_info else None
        return None if error is None else told_error(error, with_texts=self._with_texts)


class JsonFormatter(EventFormatter):
    """Formats a record as one JSON object: `time`, `level`, `logger`, `message`, the extra fields, and `exception`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line with secrets masked."""
        error, fields = self._error(record), _fields(record)
        free = {"message": fields.pop("message"), **_extra(record), **({"exception": error} if error else {})}
        masked = {name: self._masked(value) for name, value in free.items() if name not in fields}
        return json.dumps({**fields, **masked}, ensure_ascii=False)

    def _masked(self, value: Any) -> Any:
        """Return the value as JSON can hold it. Texts are masked before they are quoted: a mask cuts no syntax."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return self._masking(str(value))


def _fields(record: logging.LogRecord) -> dict[str, str]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "level": record.levelname, "logger": record.name, "message": record.getMessage()}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """Return the record's fields, and the trace that it was logged in, where there is one."""
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    trace_id = current_trace_id()
    return extra if trace_id is None else {**extra, "trace_id": trace_id}


def configure_logging(level: str, *, as_json: bool = False, secrets: Sequence[str] = ()) -> None:
    """Log to standard error from `level` on, masking `secrets` and whatever looks like one."""
    handler = logging.StreamHandler(sys.stderr)
    kind = JsonFormatter if as_json else EventFormatter
    handler.setFormatter(kind(Masking(secrets), with_texts=level == "DEBUG"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # The exporter's logger repeats itself while a collector is down; `api/telemetry/traces.py` warns once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
