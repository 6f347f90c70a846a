"""Finds the memories that cases expect: their ids may be a message's own, its importer's, or a fact's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.memory.background.batches import batches
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.scope import Scope, is_uuid

_MOST_AT_ONCE = 500


class Known(NamedTuple):
    """A memory that exists: its id as searches show it, and whether the index has a point of it."""

    memory_id: str
    has_point: bool


@dataclass(slots=True)
class ExpectedIds:
    """Looks ids up. All messages of a user are read once, and only where an id is found in no other way."""

    store: Store
    index: VectorIndex
    _messages: dict[str, frozenset[str]] = field(init=False, default_factory=dict[str, frozenset[str]])

    async def known(self, user_id: str, ids: Sequence[str]) -> Mapping[str, Known]:
        """Return those of `ids` that name a message or a fact of the user.

        Raises:
            StoreUnavailable: store or index cannot be reached.
        """
        found = dict[str, Known]()
        for batch in batches(ids, _MOST_AT_ONCE):
            found |= await self._facts(user_id, batch)
            found |= await self._messages_of(user_id, [one for one in batch if one not in found])
        return found

    async def _facts(self, user_id: str, ids: Sequence[str]) -> dict[str, Known]:
        facts = await self.store.facts.facts(user_id=user_id, fact_ids=ids)
        return {fact.id: Known(fact.id, has_point=fact.indexed and fact.is_open) for fact in facts}

    async def _messages_of(self, user_id: str, ids: Sequence[str]) -> dict[str, Known]:
        imported = await self.store.imports.known(user_id, ids) if ids else {}
        own = {one: imported[one].id if one in imported else one for one in ids}
        points = [one for one in own.values() if is_uuid(one)]
        entries = await self.index.entries(points) if points else []
        indexed = {entry.id for entry in entries if entry.user_id == user_id and entry.kind == "episode"}
        found = {one: Known(message, has_point=True) for one, message in own.items() if message in indexed}
        for one in [one for one in ids if one not in found]:
            if one in imported or one in await self._all_of(user_id):
                found[one] = Known(own[one], has_point=False)
        return found

    async def _all_of(self, user_id: str) -> frozenset[str]:
        if user_id not in self._messages:
            turns = self.store.conversations.every(Scope(user_id))
            self._messages[user_id] = frozenset(
                [message.id async for batch in turns for turn in batch for message in turn.messages]
            )
        return self._messages[user_id]
