"""Reads the messages around a hit: those beside it that it needs, or its whole session."""

import asyncio
from collections.abc import Sequence

from recollect.memory.language.punctuation import asks
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.vector_index import Entry, episode
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.request import Request
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import message_item
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

MOST_HITS = 10
"""How many of the best hits get neighbours."""
LONGEST_NEIGHBOUR = 600
"""The most characters of a neighbour: a longer message must be a hit by itself."""
SESSION_SIDE = 100
"""How many messages before and after the hit a session has at most."""


async def neighbours_of(
    timeline: Timeline, hits: Sequence[Hit], *, shown: Sequence[str], asked: Filter | None = None
) -> dict[str, list[Entry]]:
    """Read, by the id of each of the best hits, the messages beside it without which it says little.

    An answer needs the message that it answers, and a question needs its answer. Messages of the turns `shown` are left
    out, because the caller shows them already, and those that do not fulfil the filter `asked`.
    """
    wanted = [hit.entry for hit in hits[:MOST_HITS] if _is_placed(hit.entry)]
    beside = await asyncio.gather(*(_around(timeline, entry, 1, asked) for entry in wanted))
    found: dict[str, list[Entry]] = {}
    for entry, messages in zip(wanted, beside, strict=True):
        before = [message for message in messages if message.position < (entry.position or 0)]
        after = [message for message in messages if message.position > (entry.position or 0)]
        needed = [message for message in before if _answers(entry, message)]
        needed += [message for message in after if asks(entry.content)]
        found[entry.id] = [episode(message) for message in needed if _is_worth(message, shown)]
    return found


async def expanded(
    timeline: Timeline, request: Request, filtered: CandidateFilter, hits: Sequence[Hit]
) -> Sequence[Hit]:
    """Add their whole sessions to the hits where the request asks for them, but for turns that its caller shows."""
    if request.options.expand != "thread":
        return hits
    chosen, shown = {hit.entry.id for hit in hits}, set(request.shown)
    found = await _sessions_of(timeline, hits, asked=request.options.filter)
    given = [hit for hit in found if hit.entry.turn_id not in shown]
    filtered.add("session", [hit for hit in given if hit.entry.id not in chosen])
    return given


async def _sessions_of(timeline: Timeline, hits: Sequence[Hit], *, asked: Filter | None) -> list[Hit]:
    """Return the whole sessions of the hits, each once, the best hit's first, each in its own order.

    Messages that do not fulfil the filter `asked` are left out.

    A message that was no hit gets the score of the best hit of its session, and similarity 0.
    """
    by_id = {hit.entry.id: hit for hit in hits}
    first: dict[tuple[str, str | None], Hit] = {}
    for hit in hits:
        first.setdefault((hit.entry.user_id, hit.entry.thread_id or hit.entry.id), hit)
    found = list[Hit]()
    for leading in first.values():
        if not _is_placed(leading.entry):
            found.append(leading)
            continue
        around = await _around(timeline, leading.entry, SESSION_SIDE, asked)
        entries = [episode(message) for message in around]
        before = [entry for entry in entries if (entry.position or 0) < (leading.entry.position or 0)]
        for entry in [*before, leading.entry, *entries[len(before) :]]:
            found.append(by_id.get(entry.id) or Hit(entry, leading.score, 0.0, leading.recency))
    given = {hit.entry.id for hit in found}
    return found + [hit for hit in hits if hit.entry.id not in given]


def _is_worth(message: Message, shown: Sequence[str]) -> bool:
    return len(message.content) <= LONGEST_NEIGHBOUR and message.turn_id not in shown


async def _around(timeline: Timeline, entry: Entry, side: int, asked: Filter | None) -> list[Message]:
    scope = Scope(entry.user_id, entry.thread_id)
    found = await timeline.around(scope, entry.position or 0, before=side, after=side)
    return found if asked is None else [one for one in found if asked.fulfilled(message_item(one))]


def _is_placed(entry: Entry) -> bool:
    return entry.kind == "episode" and entry.thread_id is not None and entry.position is not None


def _answers(entry: Entry, before: Message) -> bool:
    return (before.turn_id == entry.turn_id and entry.role == "assistant") or asks(before.content)
