"""The client's `:memory:` mode, corrected where a Qdrant 1.19 server was seen to answer otherwise."""

from collections import defaultdict
from typing import Any

from qdrant_client import AsyncQdrantClient, models
from typing_extensions import override

_EVERY = 1_000_000


class ServerLikeClient(AsyncQdrantClient):
    """Answers an exact facet with every value that the field ever held, with the count 0 where no point has it.

    The server's index of a field keeps a value once its last point is deleted, and looks at them all.
    """

    def __init__(self) -> None:
        super().__init__(":memory:")
        self._known = defaultdict[tuple[str, str], dict[str, None]](dict)
        self._keys = set[str]()

    @override
    async def create_payload_index(self, collection_name: str, field_name: str, **given: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - the arguments that we give
        """Index the field, whose values are kept from then on."""
        self._keys.add(field_name)
        return await super().create_payload_index(collection_name, field_name, **given)

    @override
    async def delete(self, collection_name: str, points_selector: Any, **given: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - the arguments that we give
        """Delete points; their values stay in the index."""
        for key in self._keys:
            await self._values(collection_name, key)
        return await super().delete(collection_name, points_selector, **given)

    @override
    async def facet(self, collection_name: str, key: str, *, facet_filter: Any = None, **given: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - the arguments that we give
        """Count the filter's points by value, those with none included."""
        found = await super().facet(collection_name, key, facet_filter=facet_filter, **given)
        counted = {hit.value for hit in found.hits}
        for value in await self._values(collection_name, key):
            if value not in counted:
                found.hits.append(models.FacetValueHit(value=value, count=0))
        return found

    async def _values(self, collection_name: str, key: str) -> dict[str, None]:
        aliases = (await self.get_aliases()).aliases
        behind = {item.alias_name: item.collection_name for item in aliases}.get(collection_name, collection_name)
        known = self._known[behind, key]
        answer = await super().facet(collection_name, key, limit=_EVERY, exact=True)
        known |= dict.fromkeys(str(hit.value) for hit in answer.hits)
        return known
