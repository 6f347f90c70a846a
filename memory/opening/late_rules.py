"""Extracts by the offline rules, which are imported when somebody first asks: most services never do."""

import asyncio

from typing_extensions import override

from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.ports.extractor import Extraction, ExtractionRequest, Extractor


class LateRules(Extractor):
    """Implements `Extractor` by the offline one. Its patterns take a twentieth of a start to compile."""

    def __init__(self, *, schema: WantedKeys | None = None) -> None:
        self._schema = schema
        self._rules: Extractor | None = None

    @override
    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        return await (await self._offline()).extract(request, model=model)

    @override
    async def may_ask(self, model: str) -> bool:
        return await (await self._offline()).may_ask(model)

    async def _offline(self) -> Extractor:
        if self._rules is None:
            self._rules = await asyncio.to_thread(offline_rules, self._schema)
        return self._rules


def offline_rules(schema: WantedKeys | None) -> Extractor:
    """Import the offline rules and return their extractor."""
    from recollect.memory.providers.offline import OfflineExtractor

    return OfflineExtractor(schema=schema)
