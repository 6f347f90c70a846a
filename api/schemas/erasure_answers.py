"""Describes what the erasure routes answer, for the OpenAPI text."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_COUNTS = {
    "keys": 0,
    "sessions": 0,
    "work": 0,
    "conversations": 4,
    "facts": 2,
    "threads": 1,
    "documents": 0,
    "index": 7,
}
_EXAMPLE: dict[str, Any] = {
    "erasure_id": "5f0c9c1e2b7d4f6a8e3d1c0b9a8f7e6d",
    "erased_at": "2026-01-31T09:30:00.000Z",
    "counts": {**_COUNTS, "terminal": 3, "query_cache": 0},
    "remaining": dict.fromkeys([*_COUNTS, "terminal", "query_cache"], 0),
}


class ErasureAnswer(BaseModel):
    """A receipt: by data holder how much there was, and how much a scan found afterwards."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    erasure_id: str
    erased_at: str
    counts: dict[str, int]
    remaining: dict[str, int]


class ReceiptAnswer(BaseModel):
    """The same, or how far an erasure is."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    erasure_id: str
    erased_at: str
    counts: dict[str, int]
    remaining: dict[str, int | None] = Field(description="Null: it could not be asked.")
    pending: bool = Field(False, description="Only there, and true, while the erasure goes on.")
