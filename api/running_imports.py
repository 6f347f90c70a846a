"""Keeps imports that go on behind their answer, for whoever sent them to ask about.

They are kept in this process alone: after a restart, or in another process, an id is unknown. Sending the lines again
is right then, because the stored ones count as known.
"""

import asyncio
import logging
from dataclasses import dataclass
from uuid import uuid4

from recollect.memory.transfer.importing import ImportResult
from recollect.memory.values.errors import RecollectError, Stopping

logger = logging.getLogger(__name__)

MOST_KEPT = 1_000
"""How many ended imports are kept; the oldest go first. Those that run are bounded by the places for bulk work."""


@dataclass(frozen=True, slots=True)
class RunningImport:
    """An import that goes on, or has ended; `by` is the name of its caller."""

    id: str
    by: str
    work: "asyncio.Task[ImportResult]"

    @property
    def error(self) -> RecollectError | None:
        """Return the error that ended it; any other than the project's own is an internal one."""
        if self.work.cancelled():
            return Stopping()
        problem = self.work.exception()
        return problem if problem is None or isinstance(problem, RecollectError) else RecollectError()


class RunningImports:
    """The imports of this process that go on behind their answer, and the last that ended."""

    def __init__(self) -> None:
        self._kept: dict[str, RunningImport] = {}

    def keep(self, work: "asyncio.Task[ImportResult]", *, by: str) -> RunningImport:
        """Keep this work, and its result when it ends."""
        kept = RunningImport(f"import-{uuid4().hex}", by, work)
        self._kept[kept.id] = kept
        work.add_done_callback(lambda _: self._ended(kept))
        return kept

    def find(self, import_id: str) -> RunningImport | None:
        """Return the import with this id."""
        return self._kept.get(import_id)

    async def close(self) -> None:
        """Cancel those that run, and wait for their end."""
        running = [kept.work for kept in self._kept.values() if not kept.work.done()]
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, kept: RunningImport) -> None:
        problem = None if kept.work.cancelled() else kept.work.exception()
        is_ours = problem is None or isinstance(problem, RecollectError)
        logger.log(
            logging.INFO if is_ours else logging.ERROR,
            "import ended behind its answer",
            exc_info=None if is_ours else problem,
            extra={"action": "import_ended", "import_id": kept.id, "error": type(kept.error).__name__},
        )
        ended = [one.id for one in self._kept.values() if one.work.done()]
        for import_id in ended[:-MOST_KEPT]:
            del self._kept[import_id]
