"""Known passages: selects the passages of attached documents that the extraction model is shown.

The model sees them so that it does not learn again what a document says already.
"""

from collections.abc import Sequence

from recollect.memory.learning.known_facts import texts_of
from recollect.memory.ports.documents import Documents
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.extractor import Said
from recollect.memory.ports.vector_index import Entry, Query, VectorIndex
from recollect.memory.recall.attachments import Attachments
from recollect.memory.recall.verification import verified_passages
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

MOST_PASSAGES = 50
"""At most this many passages are shown, the nearest ones."""


@frozen
class KnownPassages:
    """Selects passages with at least `similarity` (a cosine) to a message or a sentence of it."""

    attachments: Attachments
    documents: Documents
    index: VectorIndex
    embedder: Embedder
    similarity: float

    async def near(self, turns: Sequence[Said], scope: Scope) -> list[Entry]:
        """Return the passages, nearest first. Embed nothing if the thread has no documents.

        Raises:
            ModelUnavailable, StoreUnavailable: similarity is unknown; learning is retried rather than done twice.
        """
        searchable = await self.attachments.searchable(scope, (), attached_only=True)
        texts = [] if searchable.is_nothing else texts_of(turns)
        if not texts:
            return []
        best: dict[str, float] = {}
        entries: dict[str, Entry] = {}
        for vector in await self.embedder.embed_documents(texts):
            for owner, ids in searchable.documents.items():
                query = Query(Scope(owner), vector, MOST_PASSAGES, ("document",), documents=ids)
                for match in await self.index.search(query):
                    if match.similarity >= self.similarity:
                        entries[match.entry.id] = match.entry
                        best[match.entry.id] = max(match.similarity, best.get(match.entry.id, -1.0))
        nearest = sorted(best, key=lambda found: (-best[found], found))[:MOST_PASSAGES]
        verified = await verified_passages(self.documents, [entries[found] for found in nearest])
        return [verified[found] for found in nearest if found in verified]
