"""The embedders that are open, each with its own collection: one serves, another may be prepared beside it.

The record in the store says which. It is read before anything is searched or written, so that no write misses the
collection that it is owed to; a store that processes share is read again every few seconds.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from recollect.memory.index.query_cache import CachedEmbedder
from recollect.memory.ports.embedder import EmbedderChoice, EmbedderChoices, EmbedderSpec
from recollect.memory.ports.vector_index import VectorIndex, collection_name
from recollect.memory.values.errors import RecollectError, StoreUnavailable

logger = logging.getLogger(__name__)

ASK_SECONDS = 1.0
"""Longest time that an opening waits for the record; where the store is down, the first call reads it."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One open embedder, and the index of its collection; `base` begins the collection's name."""

    spec: EmbedderSpec
    embedder: CachedEmbedder
    index: VectorIndex
    base: str

    async def named(self) -> EmbedderSpec:
        """Return the embedder's spec with the name of its collection.

        Raises:
            ModelUnavailable: the embedder does not say how long its vectors are.
        """
        dimension = await self.embedder.dimension()
        name = collection_name(self.base, model=self.embedder.model, dimension=dimension)
        return EmbedderSpec(self.spec.model, self.spec.dimensions, self.spec.path, name)


OpenSide = Callable[[EmbedderSpec], AbstractAsyncContextManager[Side]]


class EmbedderSides:
    """Opens and closes sides as the record says; `configured` is the embedder where there is no record.

    `choices` None: no record is kept, and `configured` always serves. `visitors` are sides that are open for an
    evaluation: what is deleted leaves them too, and new points are not owed to them.
    """

    def __init__(self, choices: EmbedderChoices | None, configured: EmbedderSpec, open_side: OpenSide) -> None:
        self.configured = configured
        self.choice: EmbedderChoice | None = None
        self.other: Side | None = None
        self.visitors: list[Side] = []
        self._choices = choices
        self._open_side = open_side
        self._serving: Side | None = None
        self._is_known = choices is None
        self._applying = asyncio.Lock()
        self._open: dict[EmbedderSpec, tuple[Side, AsyncExitStack]] = {}

    async def __aenter__(self) -> "EmbedderSides":
        try:
            async with asyncio.timeout(ASK_SECONDS):
                await self.follow()
        except (StoreUnavailable, TimeoutError):
            await self._apply(None)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for closer in [closer for _, closer in self._open.values()]:
            await closer.aclose()
        self._open.clear()

    @property
    def serving(self) -> Side:
        """Return the side that searches now."""
        assert self._serving is not None, "the sides are open"
        return self._serving

    @property
    def all(self) -> Sequence[Side]:
        """Return all open sides, the serving one first."""
        return [*self.chosen, *self.visitors]

    @property
    def chosen(self) -> Sequence[Side]:
        """Return the sides that the record names: the serving one, then the other one, if there is one."""
        return [self.serving, *([self.other] if self.other is not None else [])]

    async def settled(self) -> Side:
        """Return the side that serves, once the record was read.

        Raises:
            StoreUnavailable: it was never read, and cannot be read now.
        """
        if not self._is_known:
            await self.follow()
        return self.serving

    async def follow(self) -> bool:
        """Read the record and open and close sides as it says; return whether anything changed.

        Raises:
            StoreUnavailable: the record cannot be read.
            ConfigurationError: its embedder cannot be opened; the sides stay as they were.
        """
        choice = None if self._choices is None else await self._choices.read()
        changed = await self._apply(choice)
        if not self._is_known:
            self._is_known = True
            self._say_chosen()
        return changed

    async def replace(self, choice: EmbedderChoice) -> bool:
        """Write `choice` in place of the record that these sides follow, and follow it; return False if that is old.

        Raises:
            StoreUnavailable: the record cannot be written.
        """
        if self._choices is None or not await self._choices.replace(choice, seen=self.choice):
            await self.follow()
            return False
        await self._apply(choice)
        return True

    @asynccontextmanager
    async def opened(self, spec: EmbedderSpec) -> AsyncGenerator[Side]:
        """Open a side that deletions reach, until exit; where its collection is open already, that side is used."""
        if spec in self._open:
            yield self._open[spec][0]
            return
        async with self._open_side(spec) as side:
            if (holder := await self._holder(await side.named())) is not None:
                yield holder
                return
            self.visitors.append(side)
            try:
                yield side
            finally:
                self.visitors.remove(side)

    async def _apply(self, choice: EmbedderChoice | None) -> bool:
        async with self._applying:
            if self._serving is not None and choice == self.choice:
                return False
            wanted = [self.configured] if choice is None else [choice.serving]
            if choice is not None and choice.followed is not None:
                wanted.append(choice.followed)
            sides = [await self._side(spec) for spec in wanted]
            # No await stands between these: a call sees either the old sides or the new ones.
            self.choice, self._serving = choice, sides[0]
            self.other = sides[1] if len(sides) > 1 else None
            for spec in [spec for spec in self._open if spec not in wanted]:
                _, closer = self._open.pop(spec)
                await closer.aclose()
        return True

    async def visited(self, collection: str | None, *, but: Side) -> bool:
        """Tell whether a visitor other than `but` has this collection open."""
        return any([(await one.named()).collection == collection for one in self.visitors if one is not but])

    async def _holder(self, named: EmbedderSpec) -> Side | None:
        """Return the side that has this collection open: its spec may say the dimension, or leave it to the model."""
        for side in self.chosen:
            if (side.spec.collection or (await side.named()).collection) == named.collection:
                return side
        return None

    async def _side(self, spec: EmbedderSpec) -> Side:
        if spec not in self._open:
            async with AsyncExitStack() as opening:
                side = await opening.enter_async_context(self._open_side(spec))
                self._open[spec] = side, opening.pop_all()
        return self._open[spec][0]

    def _say_chosen(self) -> None:
        """Warn where the record names another embedder than the setting."""
        if self.choice is not None and self.choice.serving != self.configured:
            logger.warning(
                "EMBEDDING_MODEL is %s, but %s serves, which was chosen with `recollect embedder`",
                self.configured.model,
                self.choice.serving.model,
                extra={"action": "embedder_chosen"},
            )


async def follow_quietly(sides: EmbedderSides) -> None:
    """Follow the record for a sweep; a failure is logged, and the next sweep tries again."""
    try:
        await sides.follow()
    except RecollectError as error:
        logger.warning(
            "the embedder's record is not followed yet",
            extra={"action": "embedder_not_followed", "error": type(error).__name__},
        )
