"""Log lines as events: time, level, logger, message, then `action=` and the ids. Never user text."""

import logging
import sys
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "color_message"}
QUIET = ("httpx", "httpx2", "httpcore", "openai", "urllib3", "uvicorn.access", "pymongo", "langchain", "langsmith")
"""Loggers whose INFO and DEBUG may hold addresses and bodies."""


class EventFormatter(logging.Formatter):
    """One line a record, its extra fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, and its traceback behind it."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        extra = " ".join(f"{name}={value}" for name, value in vars(record).items() if name not in _STANDARD)
        line = f"{time} {record.levelname} {record.name}: {record.getMessage()}"
        if extra:
            line = f"{line} {extra}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(level: str) -> None:
    """Log to standard error from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
