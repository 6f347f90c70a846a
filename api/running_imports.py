"""Keeps imports that go on behind their answer: their tasks here, what became of them in the store.

Any process of the service can be asked about them. After a kill an import is interrupted: sending the lines again is
right then, because the stored ones count as known.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.memory.transfer.status.import_records import BEAT_SECONDS, ImportRecord, ImportRecords, ImportState
from recollect.memory.values.errors import RecollectError, Stopping, StoreUnavailable

if TYPE_CHECKING:
    from recollect.memory.transfer.importing import ImportResult

logger = logging.getLogger(__name__)

END_TRIES = 30
"""How often the end of an import is written, BEAT_SECONDS apart, while the store is down; then it counts as lost."""

Work: TypeAlias = "asyncio.Task[ImportResult]"
Describe = Callable[[RecollectError], dict[str, Any]]
"""Returns an error's JSON as the HTTP contract shows it."""


class RunningImports:
    """The imports of this process that go on behind their answer."""

    def __init__(self, records: ImportRecords, describe: Describe) -> None:
        self._records = records
        self._describe = describe
        self._running = dict[asyncio.Task[None], Work]()
        self._is_closing = False

    async def keep(self, work: Work, *, by: str) -> ImportRecord:
        """Keep this work of the caller `by`, and say in the store how it ends.

        Raises:
            StoreUnavailable: nothing is kept.
        """
        record = await self._records.begin(caller=by)
        watching = asyncio.create_task(self._watch(record, work), name="import-watch")
        self._running[watching] = work
        watching.add_done_callback(self._running.pop)
        return record

    async def find(self, import_id: str) -> ImportRecord | None:
        """Return the import with this id, whichever process has it."""
        return await self._records.find(import_id)

    async def is_by(self, record: ImportRecord, caller: str) -> bool:
        """Tell whether the caller of this name sent the lines."""
        return await self._records.is_by(record, caller)

    async def close(self) -> None:
        """Cancel those that run, say so in the store, and wait for that."""
        self._is_closing = True
        for work in self._running.values():
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _watch(self, record: ImportRecord, work: Work) -> None:
        while not work.done():
            await asyncio.wait({work}, timeout=BEAT_SECONDS)
            if not work.done():
                try:
                    record = await self._records.beat(record)
                except StoreUnavailable:
                    logger.warning("an import's beat waits", extra={"action": "import_beat", "import_id": record.id})
        _log_end(record, work)
        await self._end(record, *self._outcome(work))

    async def _end(self, record: ImportRecord, state: ImportState, said: dict[str, Any]) -> None:
        for _ in range(END_TRIES):
            try:
                return await self._records.end(record, state, said)
            except StoreUnavailable:
                if self._is_closing:
                    return None
                await asyncio.sleep(BEAT_SECONDS)
        return None

    def _outcome(self, work: Work) -> tuple[ImportState, dict[str, Any]]:
        """Return how the work ended, with the JSON of its result or of its error."""
        problem = None if work.cancelled() else work.exception()
        if work.cancelled() or isinstance(problem, Stopping):
            return "interrupted", {}
        if problem is None:
            return "done", work.result().as_json()
        return "failed", self._describe(problem if isinstance(problem, RecollectError) else RecollectError())


def _log_end(record: ImportRecord, work: Work) -> None:
    problem = None if work.cancelled() else work.exception()
    is_ours = problem is None or isinstance(problem, RecollectError)
    logger.log(
        logging.INFO if is_ours else logging.ERROR,
        "import ended behind its answer",
        exc_info=None if is_ours else problem,
        extra={"action": "import_ended", "import_id": record.id, "error": type(problem).__name__},
    )
