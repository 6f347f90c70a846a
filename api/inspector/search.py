"""`/users/{user_id}/search`: a playground over `POST /api/memory/search`."""

import json
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.errors import error_body
from recollect.api.inspector.page import OpenPage
from recollect.api.inspector.rendering import share
from recollect.api.inspector.score_bars import bars_of, most_of
from recollect.api.inspector.search_settings import SearchSettings
from recollect.api.inspector.waterfall import Waterfall, waterfall_of
from recollect.api.state import OpenMemory
from recollect.memory.memory import Memory
from recollect.memory.recall.recall_options import KINDS
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.frozen import frozen
from recollect.memory.values.left_out import MOST_LEFT_OUT
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/users/{user_id}/search")

SECOND = "second_"
"""The beginning of the names of the second settings' fields."""
MOST_QUERY = 2_000
"""Characters of a query that a page asks for; an address holds no more."""
Json = dict[str, Any]


@frozen
class SearchOutcome:
    """What one search found: HITs, what it left out (at most 50), and the bars of both; or why it was refused.

    `is_degraded`: the index was down, and the newest memories were searched by words.
    """

    error: Json | None = None
    hits: tuple[Json, ...] = ()
    left_out: tuple[Json, ...] = ()
    bars: tuple[Any, ...] = ()
    left_out_bars: tuple[Any, ...] = ()
    waterfall: Waterfall | None = None
    took_ms: float = 0.0
    body: str = ""
    is_degraded: bool = False


@router.get("")
async def show_search(
    page: OpenPage,
    user_id: PathUser,
    memory: OpenMemory,
    query: Annotated[str, Query(max_length=MOST_QUERY)] = "",
    compare: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Show the form, and what the query finds by one setting or by two."""
    columns = [SearchSettings.read(page.request.query_params)]
    if compare:
        second = SearchSettings.read(page.request.query_params, SECOND)
        columns.append(columns[0].copied(SECOND) if second.is_empty else second)
    found = [await _found(memory, user_id, query, column) for column in columns] if query.strip() else []
    return page.show(
        "search.html",
        title="Search",
        status=422 if any(one.error for one in found) else 200,
        query=query,
        compares=bool(compare),
        columns=columns,
        found=found,
        most=share(hit["content"] for one in found for hit in one.hits),
        kinds=KINDS,
        most_query=MOST_QUERY,
    )


async def _found(memory: Memory, user_id: str, query: str, settings: SearchSettings) -> SearchOutcome:
    """Search as the API's route does."""
    try:
        body = settings.request(user_id, query)
        memory.check_message(query, field="query")
        started = perf_counter()
        scope = Scope(user_id, body.thread_id)
        recalled = await memory.recall.find(scope, query, body.options(memory.config), now=body.now)
        took = (perf_counter() - started) * 1000
    except InvalidRequest as error:
        return SearchOutcome(error=error_body(error)["error"])
    traces = list(recalled.trace())
    dropped = [trace.left_out() for trace in traces if not trace.is_hit][:MOST_LEFT_OUT]
    scores = {trace.id: trace.scores for trace in traces}
    parts = [scores.get(hit.entry.memory_id) for hit in recalled.hits]
    most = most_of([*parts, *(one.scores for one in dropped)])
    return SearchOutcome(
        hits=tuple(hit.as_json() for hit in recalled.hits),
        left_out=tuple(await memory.turns.explaining.left_out(user_id, dropped)),
        bars=tuple(bars_of(one, most) for one in parts),
        left_out_bars=tuple(bars_of(one.scores, most) for one in dropped),
        waterfall=waterfall_of(traces),
        took_ms=round(took, 1),
        body=json.dumps(body.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, indent=2),
        is_degraded=recalled.is_degraded,
    )
