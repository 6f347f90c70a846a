"""Known facts: selects the living facts that the extraction model is shown. Similarity nominates, it never decides."""

import asyncio
from collections.abc import Iterable, Sequence

from recollect.memory.facts.wording import Terms
from recollect.memory.language.sentences import sentences
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.extractor import Said
from recollect.memory.ports.vector_index import Match, Query, Vector, VectorIndex
from recollect.memory.values.fact import Fact, by_weight
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER, Scope

SHOWN = 50
"""Up to this many facts are all shown; of more facts at least this many."""
NEAREST = 20
"""This many nearest facts are shown, however low their similarity is."""
MOST_NAMED = 50
MOST_UNINDEXED = 100
_MOST_TEXTS = 128
_FIRST_LIMIT = 100


@frozen
class Nomination:
    """Selects known facts, among them all with at least `similarity` (a cosine) to a message or a sentence of it."""

    index: VectorIndex
    embedder: Embedder
    similarity: float

    async def choose(self, turns: Sequence[Said], living: Sequence[Fact], scope: Scope) -> list[Fact]:
        """Return all of `living` up to SHOWN facts; of more, those near the messages, named in them, or not indexed.

        Fill the selection up to SHOWN with the weightiest others. Keep the order of `living`.

        Raises:
            ModelUnavailable, StoreUnavailable: similarity is unknown; learning is retried rather than done twice.
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
        """Return the ids of all facts that reach `similarity`, and of the NEAREST ones."""
        texts = texts_of(turns)
        if not texts:
            return set()
        scopes = [Scope(scope.user_id)]
        if any(fact.scope == "global" for fact in living):
            scopes.append(Scope(GLOBAL_USER))
        ids = {fact.id for fact in living}
        best: dict[str, float] = {}
        for vector in await self.embedder.embed_documents(texts):
            for place in scopes:
                for match in await self._every(vector, place):
                    fact_id = match.entry.memory_id
                    if fact_id in ids:
                        best[fact_id] = max(match.similarity, best.get(fact_id, -1.0))
        nearest = sorted(best, key=lambda fact_id: best[fact_id], reverse=True)
        return {*nearest[:NEAREST], *(fact_id for fact_id in nearest if best[fact_id] >= self.similarity)}

    async def _every(self, vector: Vector, scope: Scope) -> list[Match]:
        """Return the nearest points of facts, among them every point that reaches `similarity`."""
        limit = _FIRST_LIMIT
        while True:
            found = await self.index.search(Query(scope, vector, limit=limit, kinds=("fact",)))
            if len(found) < limit or found[-1].similarity < self.similarity:
                return found
            limit *= 2


def texts_of(turns: Sequence[Said]) -> list[str]:
    """Return the messages, then their sentences, without duplicates and at most 128 texts."""
    messages = [turn.message for turn in turns]
    pieces = [piece for message in messages for piece in sentences(message)]
    return [text for text in dict.fromkeys([*messages, *pieces]) if text.strip()][:_MOST_TEXTS]


def _named(messages: str, facts: Iterable[Fact]) -> set[str]:
    """Return the ids of the first MOST_NAMED facts whose key or value `messages` name."""
    terms = Terms.of(messages)
    found: set[str] = set()
    for fact in facts:
        if len(found) == MOST_NAMED:
            break
        if terms.name(f"{fact.key or ''} {fact.value if fact.value != fact.statement else ''}"):
            found.add(fact.id)
    return found
