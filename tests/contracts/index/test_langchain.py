"""A LangChain retriever reads what our own index wrote: the payload layout and the vectors' names are LangChain's."""

from langchain_core.embeddings import Embeddings
from langchain_qdrant import QdrantVectorStore
from qdrant_client import AsyncQdrantClient, QdrantClient
from typing_extensions import override

from recollect.memory.ports.vector_index import Point, collection_name
from recollect.memory.stores.qdrant.index import open_qdrant_index
from tests.contracts.index.points import DIMENSION, MODEL, entry, vector

NAME = collection_name("shared", model=MODEL, dimension=DIMENSION)
SAID = {"tea": 1, "coffee": 2, "water": 3}


class ThreeDrinks(Embeddings):
    """Knows three words, and any text that holds one of them."""

    @override
    def embed_query(self, text: str) -> list[float]:
        return next((vector(seed) for word, seed in SAID.items() if word in text), vector(9))

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


async def test_langchains_vector_store_opens_the_collection_as_a_retriever() -> None:
    # LangChain wants the blocking client. In `:memory:` mode both kinds keep their collections in a dict: one for both.
    writing, reading = AsyncQdrantClient(":memory:"), QdrantClient(":memory:")
    reading._client.collections = writing._client.collections  # pyright: ignore  # there is no public way
    async with open_qdrant_index(writing, base="shared", model=MODEL, dimension=DIMENSION) as index:
        told = {word: Point(entry(content=f"I like {word}."), vector(seed)) for word, seed in SAID.items()}
        await index.upsert(list(told.values()))
    store = QdrantVectorStore(reading, NAME, embedding=ThreeDrinks(), vector_name="dense")
    documents = store.as_retriever(search_kwargs={"k": 2}).invoke("What about coffee?")
    scored = store.similarity_search_with_score("tea", k=1)
    await writing.close()

    assert len(documents) == 2
    best = documents[0]
    assert best.page_content == "I like coffee."
    assert best.metadata["user_id"] == "ada"
    assert best.metadata["kind"] == "episode"
    assert best.metadata["_id"] == told["coffee"].entry.id
    assert set(told["coffee"].entry.payload()["metadata"]) <= set(best.metadata)
    ((document, score),) = scored
    assert document.page_content == "I like tea."
    assert abs(score - 1) < 1e-5
