import asyncio

from recollect.memory.ports.embedder import EmbedderChoice, EmbedderSpec
from recollect.memory.ports.store import Store

SMALL = EmbedderSpec("small", collection="recollect__small-0-64")
LARGE = EmbedderSpec("fastembed:large", 256, "/models/größe", "recollect__large-0-256")


class EmbedderChoicesContract:
    async def test_the_record_is_replaced_only_where_it_is_the_seen_one(self, store: Store):
        choices = store.embedder_choices
        assert await choices.read() is None
        filling = EmbedderChoice(SMALL, LARGE, "filling")
        assert not await choices.replace(filling, seen=filling.at("ready"))
        assert await choices.replace(filling, seen=None)
        assert not await choices.replace(filling.at("ready"), seen=None)
        assert await choices.read() == filling
        assert await choices.replace(filling.at("ready").switched("switched"), seen=filling)
        assert not await choices.replace(filling.at("ready"), seen=filling)
        stored = await choices.read()
        assert stored is not None
        assert stored == EmbedderChoice(LARGE, SMALL, "switched")
        assert stored.serving.collection == LARGE.collection

    async def test_one_of_several_writers_wins(self, store: Store):
        rivals = [EmbedderChoice(EmbedderSpec(f"model{number}")) for number in range(9)]
        won = await asyncio.gather(*(store.embedder_choices.replace(rival, seen=None) for rival in rivals))
        assert sum(won) == 1
        assert await store.embedder_choices.read() == rivals[won.index(True)]
