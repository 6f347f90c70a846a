"""The query of a list of facts: kind, filters and place, as the address keeps them."""

from datetime import datetime
from typing import Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field, field_validator

from recollect.api.inspector.rendering import moment
from recollect.api.schemas.requests import Id, Time
from recollect.memory.ports.facts import FactFilter
from recollect.memory.values.fact import FactSource, FactStatus

Kind = Literal["keyed", "notes", "thread", "global"]


class FactsQuery(BaseModel):
    """Fields of an address; one that is missing or empty does not filter."""

    kind: Kind | None = None
    text: str | None = Field(None, max_length=200)
    tag: str | None = Field(None, max_length=64)
    source: FactSource | None = None
    status: FactStatus | None = None
    as_of: Time | None = None
    thread_id: Id | None = None
    cursor: str | None = Field(None, max_length=500)

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_none(cls, given: object) -> object:
        """Return None for the empty fields that a form sends."""
        return None if given == "" else given

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the kind is asked for."""
        return bool(self._said(kind=None, cursor=None))

    def shown(self, now: datetime) -> FactFilter:
        """Return the filter of the store; threads are for working memory alone."""
        return FactFilter(
            now,
            scope="thread" if self.kind == "thread" else None,
            thread_id=self.thread_id if self.kind == "thread" else None,
            tag=self.tag,
            as_of=self.as_of,
            status=self.status,
            text=self.text,
            source=self.source,
            keyed={"keyed": True, "notes": False}.get(self.kind or ""),
            newest_first=True,
        )

    def query(self, **changes: str | None) -> str:
        """Return the address's query with `changes`, and without a cursor unless they name one; "" for none."""
        said = self._said(**{"cursor": None, **changes})
        return f"?{urlencode(said)}" if said else ""

    def _said(self, **changes: str | None) -> dict[str, str]:
        told = {**self.model_dump(), **changes}
        if isinstance(told["as_of"], datetime):
            told["as_of"] = moment(told["as_of"])[0]
        return {name: value for name, value in told.items() if value is not None}
