"""Reads the newest items of the store, without the index: for want of a hit, or where the index is down."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from recollect.memory.index.expected import fact_entry
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Kind, episode
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.request import Request
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import fact_item, message_item
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

MOST_THREADS, MOST_TURNS = 20, 50
"""Of how many threads how many last turns are read whose messages the index does not have yet."""


async def newest_entries(
    store: Store,
    request: Request,
    now: datetime,
    *,
    limit: int,
    is_index_down: bool = False,
    where: Narrow = ALL,
) -> list[Entry]:
    """Return the newest messages and facts that the request may find, newest first.

    `is_index_down`: the messages that the index does not have yet, too. `where` holds for all messages that fulfil the
    request's filter.
    """
    options, scope = request.options, request.scope
    messages = list[Message]()
    if "episode" in options.kinds and not options.tags:
        messages = await _messages(store, scope, limit=limit, asked=options.filter, where=where)
        if is_index_down:
            messages += await _unindexed(store, scope, asked=options.filter)
    facts = list[Entry]()
    if "fact" in options.kinds:
        facts = await _facts(
            store,
            Scope(scope.user_id, request.thread_id or scope.thread_id),
            options,
            now=now,
            homes=request.fact_homes,
            given_apart=request.for_turn,
        )
    shown = set(request.shown)
    messages = [message for message in messages if message.turn_id not in shown]
    return _newest_first(messages, facts, options.kinds)[:limit]


async def _messages(store: Store, scope: Scope, *, limit: int, asked: Filter | None, where: Narrow) -> list[Message]:
    """Return the newest indexed messages that fulfil `asked`, newest first; read `limit` for which `where` holds."""
    latest = await store.timeline.latest(scope, limit=limit, where=where)
    return [message for message in latest if asked is None or asked.fulfilled(message_item(message))]


async def _unindexed(store: Store, scope: Scope, *, asked: Filter | None) -> list[Message]:
    """Return messages of the last turns of the latest threads, which the index need not have."""
    threads = [scope.thread_id] if scope.thread_id is not None else []
    if not threads:
        threads = [one.thread_id for one in await store.conversations.overviews(scope.user_id, limit=MOST_THREADS)]
    reads = (store.conversations.recent(Scope(scope.user_id, thread), limit=MOST_TURNS) for thread in threads)
    turns = [exchange for exchanges in await asyncio.gather(*reads) for exchange in exchanges]
    messages = [message for turn in turns for message in turn.messages]
    return [message for message in messages if asked is None or asked.fulfilled(message_item(message))]


async def _facts(
    store: Store,
    scope: Scope,
    options: RecallOptions,
    *,
    now: datetime,
    homes: frozenset[str | None] | None,
    given_apart: bool,
) -> list[Entry]:
    """Return facts that hold `now`, newest first: of these `homes`, and with the tags that the options want.

    `given_apart`: the caller shows keyed and pinned facts anyway, so they are left out.
    """
    tags, asked = options.tags, options.filter

    def fits(fact: Fact) -> bool:
        is_wanted = fact.holds(now) and (homes is None or fact.home in homes)
        is_given = given_apart and (fact.key is not None or fact.pinned)
        is_tagged = not tags or not set(tags).isdisjoint(fact.tags)
        return is_wanted and not is_given and is_tagged and (asked is None or asked.fulfilled(fact_item(fact)))

    living = await store.facts.living(scope, at=now, limit=MOST_FACTS)
    return [fact_entry(fact) for fact in living if fits(fact)]


def _newest_first(messages: Sequence[Message], facts: Sequence[Entry], kinds: Sequence[Kind]) -> list[Entry]:
    """Return the entries of the wanted kinds, each once, newest first."""
    said = {message.id: episode(message) for message in messages} if "episode" in kinds else {}
    known = {entry.id: entry for entry in facts} if "fact" in kinds else {}
    return sorted([*said.values(), *known.values()], key=lambda one: (one.created_at, one.position or 0), reverse=True)
