"""Changes the embedder while the service runs: another one's collection is filled, then it serves by one write."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from recollect.memory.background.sweep import Sweep
from recollect.memory.index.expected import count_expected
from recollect.memory.index.indexing import IndexRepair, Progress, repair
from recollect.memory.index.reindexing import Reindexed, RunningReindex, settle
from recollect.memory.index.sides import EmbedderSides, Side, follow_quietly
from recollect.memory.ports.embedder import EmbedderChoice, EmbedderSpec, Stage
from recollect.memory.ports.store import Store
from recollect.memory.values.errors import EmbedderConflict, RecollectError

logger = logging.getLogger(__name__)

FOLLOW_SECONDS = 2.0
"""How often a process reads the record of a store that processes share."""
RETRY_SECONDS = 5.0

Json = dict[str, Any]


@dataclass
class EmbedderChange:
    """The verbs of a change: `prepare`, `switch`, `back` and `drop`; each returns what `status` does, or progress.

    One filling runs at a time in this process, in a task of its own that outlives the request for it. `_caught_up` is
    the record that this process's own collections were last brought up to.
    """

    store: Store
    sides: EmbedderSides
    _filling: RunningReindex | None = field(init=False, default=None)
    _progress: tuple[int, int] | None = field(init=False, default=None)
    _resuming: "asyncio.Task[None] | None" = field(init=False, default=None)
    _sweep: Sweep | None = field(init=False, default=None)
    _caught_up: EmbedderChoice | None = field(init=False, default=None)

    def start(self) -> None:
        """Go on with what a killed process left, and follow other processes of a shared store."""
        self._resuming = asyncio.create_task(self._resume(), name="embedder-resume")
        if self.store.erasures.is_shared:
            self._sweep = Sweep("embedder-record", self._follow, seconds=FOLLOW_SECONDS)
            self._sweep.start()

    async def close(self) -> None:
        """Stop a filling; the next start goes on with it."""
        if self._sweep is not None:
            await self._sweep.close()
        if self._resuming is not None:
            self._resuming.cancel()
            await asyncio.gather(self._resuming, return_exceptions=True)
        if self._filling is not None:
            await self._filling.stop()

    async def status(self) -> Json:
        """Return the embedders by their place, each with its points, and how far a filling is.

        Raises:
            StoreUnavailable, ModelUnavailable: a store or an embedder cannot be reached.
        """
        await self.sides.follow()
        choice, other = self.sides.choice, self.sides.other
        return {
            "configured": self.sides.configured.model,
            "serving": await _shown(self.sides.serving),
            "other": await _shown(other) if other is not None else None,
            "stage": None if choice is None else choice.stage,
            "expected": await count_expected(self.store),
            "progress": None if self._progress is None else dict(zip(("done", "total"), self._progress, strict=True)),
        }

    async def prepare(self, spec: EmbedderSpec) -> RunningReindex:
        """Begin to fill the collection of `spec`, or go on with it; from now on new points are owed to it, too.

        Raises:
            EmbedderConflict: it serves already, another one is prepared, a filling is running, or an evaluation has its
                collection open, which can be opened once at a time.
            ConfigurationError: it cannot be opened.
            StoreUnavailable, ModelUnavailable: a store or the embedder cannot be reached.
        """
        if self._is_filling:
            raise EmbedderConflict("An embedder is being prepared already; wait until that has ended.")
        await self.sides.follow()
        choice = self.sides.choice or EmbedderChoice(await self.sides.serving.named())
        async with self.sides.opened(spec) as side:
            named = await side.named()
            if named.collection == (await self.sides.serving.named()).collection:
                raise EmbedderConflict(f"{spec.model} serves already; name another embedder.")
            if await self.sides.visited(named.collection, but=side):
                raise EmbedderConflict(f"An evaluation has {spec.model} open; wait until that has ended.")
        if choice.other is None:
            await self._write(EmbedderChoice(choice.serving, named, "filling"))
        elif choice.other.collection != named.collection or choice.stage not in {"filling", "ready"}:
            raise EmbedderConflict(
                f"{choice.other.model} is there already ({choice.stage}); run `recollect embedder drop` first."
            )
        return self._fill()

    async def switch(self) -> Json:
        """Let the prepared embedder serve, by one write.

        Raises:
            EmbedderConflict: none is ready.
        """
        return await self._swap("ready", "switched", "no embedder is ready; run `recollect embedder prepare` first")

    async def back(self) -> Json:
        """Let the embedder that served before serve again, by one write.

        Raises:
            EmbedderConflict: none has been switched.
        """
        return await self._swap("switched", "ready", "the embedder was not switched; there is no way back")

    async def drop(self) -> Json:
        """Delete the collection of the embedder that does not serve; new points are not owed to it any more.

        Raises:
            EmbedderConflict: there is none.
        """
        await self.sides.follow()
        choice = self.sides.choice
        if choice is None or choice.other is None:
            raise EmbedderConflict("There is nothing to drop: one embedder alone is known.")
        if self._filling is not None:
            await self._filling.stop()
        if choice.stage != "dropping":
            await self._write(choice.at("dropping"))
        await self._finish_drop()
        return await self.status()

    @property
    def _is_filling(self) -> bool:
        return self._filling is not None and self._filling.is_running

    async def _swap(self, wanted: Stage, then: Stage, refusal: str) -> Json:
        await self.sides.follow()
        choice = self.sides.choice
        if choice is None or choice.stage != wanted:
            raise EmbedderConflict(f"Not possible now: {refusal}.")
        await self._write(choice.switched(then))
        logger.info("the embedder was switched", extra={"action": "embedder_switched"})
        return await self.status()

    async def _write(self, choice: EmbedderChoice) -> None:
        if not await self.sides.replace(choice):
            raise EmbedderConflict("Another process has changed the embedders meanwhile; look at the status again.")

    def _fill(self) -> RunningReindex:
        async def work(progress: Progress) -> Reindexed:
            def tell(done: int, total: int) -> None:
                self._progress = (done, total)
                progress(done, total)

            try:
                return await self._filled(tell)
            finally:
                self._progress = None

        self._filling = RunningReindex(work)
        return self._filling

    async def _filled(self, progress: Progress) -> Reindexed:
        """Fill the other side until a pass finds nothing to do, then let the record say that it is ready."""
        if self.store.erasures.is_shared:
            await asyncio.sleep(2 * FOLLOW_SECONDS)  # until every process writes to both collections
        side, choice = self.sides.other, self.sides.choice
        if side is None or choice is None:
            raise EmbedderConflict("The embedder was dropped meanwhile.")
        found = await IndexRepair(self.store, side.index, side.embedder).run(progress)
        made = found.made + await settle(self.store, side.index, side.embedder)
        if choice.stage == "filling":
            await self._write(choice.at("ready"))
        logger.info("an embedder is ready", extra={"action": "embedder_ready", "points": len(found.ids)})
        return Reindexed(len(found.ids), made, found.matched, found.removed)

    async def _finish_drop(self) -> None:
        """Delete the files of the embedder that is dropped, then forget it."""
        choice = self.sides.choice
        if choice is None or choice.other is None or choice.stage != "dropping":
            return
        await self.sides.serving.index.drop_other(choice.other.collection or "")
        await self._write(EmbedderChoice(choice.serving))
        logger.info("an embedder was dropped", extra={"action": "embedder_dropped"})

    async def _resume(self) -> None:
        """Go on with a filling, or a drop, that a kill cut off; retried while a backend is down."""
        while True:
            try:
                await self.sides.settled()
                await self._finish_drop()
                choice = self.sides.choice
                if choice is not None and choice.stage == "filling" and not self._is_filling:
                    await self._fill().outcome()
            except RecollectError as error:
                logger.warning(
                    "the change of the embedder waits",
                    extra={"action": "embedder_waits", "error": type(error).__name__},
                )
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _follow(self) -> None:
        """Follow the record; where this process has an index of its own, bring its collections up to the record."""
        await follow_quietly(self.sides)
        before, choice = self._caught_up, self.sides.choice
        if choice == before or self.sides.serving.index.name == "qdrant":
            return
        for spec in () if before is None else (before.serving, before.followed):
            if spec is not None:
                await self._drop_own(spec)
        for side in self.sides.all:
            await repair(self.store, side.index, side.embedder)
        self._caught_up = choice

    async def _drop_own(self, spec: EmbedderSpec) -> None:
        """Delete this process's own collection of an embedder that another process has dropped."""
        if self.sides.choice is not None and spec not in {self.sides.choice.serving, self.sides.choice.followed}:
            await self.sides.serving.index.drop_other(spec.collection or "")


async def _shown(side: Side) -> Json:
    return {**(await side.named()).as_json(), "points": await side.index.count()}
