"""The form's settings of a search: read from the address, shown again as they were typed, made into a request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import QueryParams

from recollect.api.errors import invalid_request
from recollect.api.schemas.requests import SearchRequest
from recollect.memory.recall.recall_options import KINDS
from recollect.memory.values.frozen import frozen

MOST_TYPED = 2_000
"""Characters of a typed setting that are read."""


def _number(text: str) -> Any:
    """Return a number; a text that is none is left for the request to refuse."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _share(text: str) -> Any:
    number = _number(text)
    return float(number) if isinstance(number, int) else number


def _list(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]


def _flag(text: str) -> bool:
    return text == "1"


def _text(text: str) -> str:
    return text


FIELDS: Mapping[str, Callable[[str], Any]] = {
    "thread_id": _text,
    "top_k": _number,
    "score_threshold": _share,
    "recency_weight": _share,
    "mmr_lambda": _share,
    "token_budget": _number,
    "tags": _list,
    "domains": _list,
    "now": _text,
    "timezone": _text,
    "time": _text,
    "expand": _text,
    "fallback_recent": _flag,
    "coverage": _text,
}
"""Each typed setting, under the API's name, and how it is read; one that is left empty takes its default."""


@frozen
class SearchSettings:
    """One column of the form: `typed` by name, and the kinds that are looked for (none: all).

    `prefix` begins its fields' names in the address.
    """

    prefix: str
    typed: Mapping[str, str]
    kinds: Sequence[str]

    @classmethod
    def read(cls, query: QueryParams, prefix: str = "") -> "SearchSettings":
        """Read the column from the address."""
        typed = {name: query.get(prefix + name, "").strip()[:MOST_TYPED] for name in FIELDS}
        kinds = [kind for kind in query.getlist(f"{prefix}kinds") if kind in KINDS]
        return cls(prefix, typed, list(dict.fromkeys(kinds)))

    def copied(self, prefix: str) -> "SearchSettings":
        """Return an equal column under another prefix."""
        return SearchSettings(prefix, self.typed, self.kinds)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was chosen."""
        return not self.kinds and not any(self.typed.values())

    def request(self, user_id: str, text: str) -> SearchRequest:
        """Return the request that `POST /api/memory/search` would take.

        Raises:
            InvalidRequest: a setting is not valid.
        """
        said: dict[str, Any] = {name: FIELDS[name](typed) for name, typed in self.typed.items() if typed}
        if self.kinds:
            said["kinds"] = list(self.kinds)
        try:
            return SearchRequest.model_validate({"user_id": user_id, "query": text, "explain": True, **said})
        except ValidationError as error:
            raise invalid_request(error.errors()) from None
