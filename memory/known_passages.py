"""Known passages: what of a thread's documents the extraction model is shown beside the known facts.

What a document says already is not to be learned again when the user says it too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.embedder import Embedder
from memory.extractor import Said
from memory.known_facts import texts_of
from memory.library import Library
from memory.scope import Scope
from memory.shelf import Shelf
from memory.standing import standing_passages
from memory.vector_index import Entry, Query, VectorIndex

MOST_PASSAGES = 50
"""So many passages are shown, the nearest ones."""


@dataclass(frozen=True, slots=True)
class KnownPassages:
    """Chooses passages of attached documents: at least `similarity` (a cosine) to a message or a sentence of it."""

    shelf: Shelf
    library: Library
    index: VectorIndex
    embedder: Embedder
    similarity: float

    async def near(self, turns: Sequence[Said], scope: Scope) -> list[Entry]:
        """The passages, nearest first. Where the thread has no documents, nothing is embedded.

        Raises:
            ModelUnavailable, StoreUnavailable: nearness cannot be told; learning waits rather than learn twice.
        """
        reach = await self.shelf.reach(scope, (), attached_only=True)
        texts = [] if reach.is_nothing else texts_of(turns)
        if not texts:
            return []
        best: dict[str, float] = {}
        entries: dict[str, Entry] = {}
        for vector in await self.embedder.embed_documents(texts):
            for owner, ids in reach.documents.items():
                query = Query(Scope(owner), vector, MOST_PASSAGES, ("document",), documents=ids)
                for match in await self.index.search(query):
                    if match.similarity >= self.similarity:
                        entries[match.entry.id] = match.entry
                        best[match.entry.id] = max(match.similarity, best.get(match.entry.id, -1.0))
        nearest = sorted(best, key=lambda found: (-best[found], found))[:MOST_PASSAGES]
        standing = await standing_passages(self.library, [entries[found] for found in nearest])
        return [standing[found] for found in nearest if found in standing]
