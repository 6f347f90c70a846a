"""`?filter=` of lists and exports: a filter as JSON, and what an answer says of it."""

from typing import Annotated, Any

from fastapi import Depends, Query

from recollect.api.auth.caller import WhoCalls
from recollect.memory.background.scanning import Fitting
from recollect.memory.values.filter import Filter
from recollect.memory.values.filter_reading import MOST_FILTER_CHARACTERS, read_filter_text

SAID = 'Conditions as JSON, URL-encoded, such as {"project": "apollo", "priority": {"gte": 2}}.'


async def _filter(
    caller: WhoCalls,
    text: Annotated[str | None, Query(alias="filter", description=SAID, max_length=MOST_FILTER_CHARACTERS)] = None,
) -> Filter | None:
    return caller.narrowed(read_filter_text(text) if text else None)


Filtered = Annotated[Filter | None, Depends(_filter)]
"""The filter of a list or an export, within the label of an agent's key; None without one."""


def shown(found: Fitting[Any]) -> dict[str, Any]:
    """Return what a page says of its filter."""
    return {"filter": {"complete": found.is_complete}}
