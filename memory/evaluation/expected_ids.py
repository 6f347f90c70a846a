"""Finds the memories that cases expect: their ids may be a message's own, its importer's, or a fact's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.memory.background.batches import batches
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, VectorIndex
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import fact_item, message_item
from recollect.memory.values.scope import Scope, is_uuid
from recollect.memory.values.turn import Message

_MOST_AT_ONCE = 500


class Dropped(NamedTuple):
    """The step that keeps a memory from ever being a candidate, and why."""

    stage: str
    reason: str


_ENDED = Dropped("gone", "the fact does not hold now")
_FILTERED = Dropped("filter", "it does not fulfil the filter of the case")


class Known(NamedTuple):
    """A memory that exists: its id as searches show it, whether the index has a point of it, and what drops it."""

    memory_id: str
    has_point: bool
    dropped: Dropped | None = None


@dataclass(slots=True)
class ExpectedIds:
    """Looks ids up. All messages of a user are read once, and only where an id is found in no other way."""

    store: Store
    index: VectorIndex
    _messages: dict[str, frozenset[str]] = field(init=False, default_factory=dict[str, frozenset[str]])

    async def known(self, user_id: str, ids: Sequence[str], *, asked: Filter | None = None) -> Mapping[str, Known]:
        """Return those of `ids` that name a message or a fact of the user; `asked` is the filter of the search.

        Raises:
            StoreUnavailable: store or index cannot be reached.
        """
        found = dict[str, Known]()
        for batch in batches(ids, _MOST_AT_ONCE):
            found |= await self._facts(user_id, batch, asked)
            found |= await self._messages_of(user_id, [one for one in batch if one not in found], asked)
        return found

    async def _facts(self, user_id: str, ids: Sequence[str], asked: Filter | None) -> dict[str, Known]:
        facts = await self.store.facts.facts(user_id=user_id, fact_ids=ids)
        return {
            fact.id: Known(fact.id, has_point=fact.indexed and fact.is_open, dropped=_drops_fact(fact, asked))
            for fact in facts
            if fact.status != "forgotten"
        }

    async def _messages_of(self, user_id: str, ids: Sequence[str], asked: Filter | None) -> dict[str, Known]:
        imported = await self.store.imports.known(user_id, ids) if ids else {}
        own = {one: imported[one].id if one in imported else one for one in ids}
        points = [one for one in own.values() if is_uuid(one)]
        entries = await self.index.entries(points) if points else []
        indexed = {entry.id: entry for entry in entries if entry.user_id == user_id and entry.kind == "episode"}
        found = dict[str, Known]()
        for one, message in own.items():
            if message in indexed:
                dropped = None if asked is None else await self._drops(indexed[message], imported.get(one), asked)
                found[one] = Known(message, has_point=True, dropped=dropped)
            elif one in imported or one in await self._all_of(user_id):
                found[one] = Known(message, has_point=False)
        return found

    async def _drops(self, entry: Entry, message: Message | None, asked: Filter) -> Dropped | None:
        """Tell whether the filter drops an indexed message; the index does not give back what filters look at."""
        if message is None:
            turn = await self.store.conversations.turn(user_id=entry.user_id, turn_id=entry.turn_id or "")
            message = next((one for one in turn.spoken if one.id == entry.id), None) if turn is not None else None
        return None if message is None or asked.fulfilled(message_item(message)) else _FILTERED

    async def _all_of(self, user_id: str) -> frozenset[str]:
        if user_id not in self._messages:
            turns = self.store.conversations.every(Scope(user_id))
            self._messages[user_id] = frozenset(
                [message.id async for batch in turns for turn in batch for message in turn.spoken]
            )
        return self._messages[user_id]


def _drops_fact(fact: Fact, asked: Filter | None) -> Dropped | None:
    if not fact.is_open:
        return _ENDED
    return None if asked is None or asked.fulfilled(fact_item(fact)) else _FILTERED
