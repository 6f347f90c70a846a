"""Known facts: which of a user's living facts the extraction model is shown. Similarity nominates, it never decides."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.embedder import Embedder
from memory.extractor import Said
from memory.fact import Fact, by_weight
from memory.proposal import Terms
from memory.scope import GLOBAL_USER, Scope
from memory.sentences import sentences
from memory.vector_index import Match, Query, Vector, VectorIndex

SHOWN = 50
"""So many facts are shown without choosing, and chosen ones are filled up to so many."""
NEAREST = 20
"""So many are shown for their meaning, however unlike the message they are."""
MOST_NAMED = 50
MOST_UNINDEXED = 100
_MOST_TEXTS = 128
_FIRST_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Nomination:
    """Chooses the known facts. Each with at least `similarity` (a cosine) to a message or a sentence of it is shown."""

    index: VectorIndex
    embedder: Embedder
    similarity: float

    async def choose(self, turns: Sequence[Said], living: Sequence[Fact], scope: Scope) -> list[Fact]:
        """All of `living` where they are few; else those near the messages, named in them, or not indexed yet.

        In the order of `living`.

        Raises:
            ModelUnavailable, StoreUnavailable: nearness cannot be told; learning waits rather than learn twice.
        """
        if len(living) <= SHOWN:
            return list(living)
        near = await self._near(turns, living, scope)
        messages = "\n".join(turn.message for turn in turns)
        named = await asyncio.to_thread(_named, messages, by_weight(living))
        unindexed = [fact.id for fact in living if not fact.indexed][:MOST_UNINDEXED]
        chosen = {*near, *named, *unindexed}
        for fact in by_weight(living):
            if len(chosen) >= SHOWN:
                break
            chosen.add(fact.id)
        return [fact for fact in living if fact.id in chosen]

    async def _near(self, turns: Sequence[Said], living: Sequence[Fact], scope: Scope) -> set[str]:
        """The ids of every fact that is alike enough, and of the nearest ones."""
        texts = texts_of(turns)
        if not texts:
            return set()
        scopes = [Scope(scope.user_id)]
        if any(fact.scope == "global" for fact in living):
            scopes.append(Scope(GLOBAL_USER))
        ids = {fact.id for fact in living}
        best: dict[str, float] = {}
        for vector in await self.embedder.embed_documents(texts):
            for sought in scopes:
                for match in await self._every(vector, sought):
                    if match.entry.id in ids:
                        best[match.entry.id] = max(match.similarity, best.get(match.entry.id, -1.0))
        nearest = sorted(best, key=lambda fact_id: best[fact_id], reverse=True)
        return {*nearest[:NEAREST], *(fact_id for fact_id in nearest if best[fact_id] >= self.similarity)}

    async def _every(self, vector: Vector, scope: Scope) -> list[Match]:
        """The nearest points: so many that none which is alike enough is left out."""
        limit = _FIRST_LIMIT
        while True:
            found = await self.index.search(Query(scope, vector, limit=limit, kinds=("fact",)))
            if len(found) < limit or found[-1].similarity < self.similarity:
                return found
            limit *= 2


def texts_of(turns: Sequence[Said]) -> list[str]:
    """The messages, then their sentences, each once."""
    messages = [turn.message for turn in turns]
    pieces = [piece for message in messages for piece in sentences(message)]
    return [text for text in dict.fromkeys([*messages, *pieces]) if text.strip()][:_MOST_TEXTS]


def _named(messages: str, facts: Iterable[Fact]) -> set[str]:
    """Facts whose key or value the messages name, the most important first."""
    terms = Terms.of(messages)
    found: set[str] = set()
    for fact in facts:
        if len(found) == MOST_NAMED:
            break
        if terms.name(f"{fact.key or ''} {fact.value if fact.value != fact.statement else ''}"):
            found.add(fact.id)
    return found
