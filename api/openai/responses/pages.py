"""Pages of items, as OpenAI's clients ask for them: newest first where nothing else is said."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query

Json = dict[str, Any]

Limit = Annotated[int, Query(ge=1, le=100, description="Most items of the page.")]
Order = Annotated[Literal["asc", "desc"], Query(description="`desc`: the newest first.")]
After = Annotated[str | None, Query(max_length=200, description="The item that the page stands behind.")]


def page_of(items: Sequence[Json], *, limit: int, order: str, after: str | None) -> Json:
    """Return a page of `items`, which come oldest first. Behind an item that is none of them there is nothing."""
    ordered = list(items) if order == "asc" else list(reversed(items))
    if after is not None:
        places = [place for place, item in enumerate(ordered) if item["id"] == after]
        ordered = ordered[places[0] + 1 :] if places else []
    return page(ordered[:limit], has_more=len(ordered) > limit)


def page(shown: Sequence[Json], *, has_more: bool) -> Json:
    """Return these items as a page."""
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"object": "list", "data": list(shown), "first_id": first, "last_id": last, "has_more": has_more}
