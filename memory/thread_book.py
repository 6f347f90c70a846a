"""What a person can do with threads: list, read, archive, edit the summary, delete."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from memory.archive import Archive
from memory.documents import Documents
from memory.erasures import Erasure
from memory.errors import InvalidRequest, NotFound, Problem, RecollectError, StoreUnavailable, is_outage
from memory.extractive_summary import ExtractiveSummarizer
from memory.mem_config import MemoryConfig
from memory.rolling_summary import RollingSummaries, begin_record
from memory.scope import Scope
from memory.summarizer import Summarizer
from memory.sweep import Sweep
from memory.text import check_text
from memory.thread_record import ThreadOverview, ThreadRecord
from memory.times import Clock
from memory.tokens import CHARACTERS_PER_TOKEN, estimate_tokens
from memory.update import Step, after_failure
from memory.vector_index import VectorIndex

logger = logging.getLogger(__name__)

CLOSING_BATCH = 100
MOST_TITLE_CHARACTERS = 200
OTHERS_SECONDS = 15.0
"""An archive that was begun less long ago is left to the process that began it, except at the start."""


class Points(Protocol):
    """What makes the index follow the documents."""

    def notify(self, user_id: str) -> None:
        """Follow this user's documents in the background."""
        ...

    async def sync_soon(self, user_id: str) -> None:
        """Follow this user's documents now; an outage is left to the background."""
        ...


class Learning(Protocol):
    """What learns from committed turns."""

    def notify(self, user_id: str) -> None:
        """Something of this user's came due."""
        ...


class Eraser(Protocol):
    """What erases all that there is of a scope."""

    async def has_any(self, scope: Scope) -> bool:
        """Whether there is anything of it."""
        ...

    async def erase(self, scope: Scope, *, by: str) -> Erasure:
        """Erase it; the receipt."""
        ...


@dataclass
class ThreadBook:
    """The verbs on threads. `start` begins to finish what archives still owe; `close` ends that."""

    documents: Documents
    index: VectorIndex
    points: Points
    updater: Learning
    eraser: Eraser
    summarizer: Summarizer
    config: MemoryConfig
    clock: Clock
    _finishing: dict[Scope, "asyncio.Task[None]"] = field(init=False, default_factory=dict[Scope, "asyncio.Task[None]"])
    _waiting: dict[Scope, Step] = field(init=False, default_factory=dict[Scope, Step])
    _has_seen_start: bool = field(init=False, default=False)
    _sweep: Sweep = field(init=False)

    def __post_init__(self) -> None:
        self._sweep = Sweep("threads-sweep", self._keep_up, seconds=self.config.sweep_seconds)

    def start(self) -> None:
        """Begin to finish archives: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """End all background work; what archives owe is finished after the next start."""
        await self._sweep.close()
        tasks = list(self._finishing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def page(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None
    ) -> list[ThreadOverview]:
        """The user's threads, those last written to first; `before` is the place of the last one of the page before."""
        threads = await self.documents.conversations.overviews(user_id, limit=limit, before=before)
        records = await self.documents.threads.records(
            user_id=user_id, thread_ids=[thread.thread_id for thread in threads]
        )
        known = {record.thread_id: record for record in records}
        return [replace(thread, record=known.get(thread.thread_id)) for thread in threads]

    async def overview(self, scope: Scope) -> ThreadOverview:
        """The thread alone.

        Raises:
            NotFound: nobody has written to it.
        """
        thread = await self.documents.conversations.overview(scope)
        if thread is None:
            raise _no_such_thread()
        return replace(thread, record=await self.documents.threads.record(scope))

    async def archive(self, scope: Scope) -> ThreadOverview:
        """Close the thread's session with a summary; the thread as it is then, or after `memory_wait_seconds`.

        The thread is archived at once; where the model fails its summary is pending, and made later. What waits to be
        learned from is learned now.

        Raises:
            NotFound: nobody has written to it.
        """
        last = await self.documents.conversations.last_position(scope)
        record = await self._archive().begin(scope, to=last) if last else None
        if record is None:
            raise _no_such_thread()
        self.updater.notify(scope.user_id)
        if record.closing:
            await asyncio.wait({self._finish_soon(scope)}, timeout=self.config.memory_wait_seconds)
        await self.points.sync_soon(scope.user_id)
        return await self.overview(scope)

    async def close_archives(self, *, at_start: bool = False) -> None:
        """Make the summaries that archives still owe, those of dead processes too."""
        now = self.clock()
        for record in await self.documents.threads.closing(limit=CLOSING_BATCH):
            waiting = self._waiting.get(record.scope)
            begun = record.archived_at or now
            if waiting is None and not at_start and begun > now - timedelta(seconds=OTHERS_SECONDS):
                continue
            if waiting is None or waiting.is_due(now) or waiting.status == "failed":
                await asyncio.wait({self._finish_soon(record.scope)})

    async def set_summary(self, scope: Scope, text: str | None) -> ThreadRecord:
        """Put a person's text in place of the thread's summary; None or a blank one removes it.

        It stands for the same turns as the one before, and the next summary starts from it.

        Raises:
            NotFound: nobody has written to the thread.
            InvalidRequest: it is longer than a summary may be, or no store can hold it.
        """
        given = (text or "").strip()
        check_text(given, field="summary")
        if estimate_tokens(given) > self.config.summary_tokens:
            most = self.config.summary_tokens * CHARACTERS_PER_TOKEN
            problem = Problem("summary", f"must have at most {most:,} characters (SUMMARY_TOKENS)")
            raise InvalidRequest("The summary is too long.", problems=[problem])
        while (record := await begin_record(self.documents, scope, self.clock)) is not None:
            written = record.revised(
                summary=given or None, summary_by="person" if given else None, summarised_at=self.clock()
            )
            if await self.documents.threads.put(written, revision=record.revision):
                await self.points.sync_soon(scope.user_id)
                return written
        raise _no_such_thread()

    async def rename(self, scope: Scope, title: str | None) -> ThreadOverview:
        """Give the thread a title of 1-200 characters, without white space around it; None removes it.

        Raises:
            NotFound: nobody has written to the thread.
            InvalidRequest: it is blank or too long, or no store can hold it.
        """
        given = None if title is None else title.strip()
        if given is not None:
            check_text(given, field="title")
            if not 1 <= len(given) <= MOST_TITLE_CHARACTERS:
                problem = Problem("title", f"must have 1 to {MOST_TITLE_CHARACTERS} characters")
                raise InvalidRequest("The request is not valid: see title.", problems=[problem])
        while (record := await begin_record(self.documents, scope, self.clock)) is not None:
            # No point says the title.
            titled = record.revised(title=given, indexed=record.indexed)
            if await self.documents.threads.put(titled, revision=record.revision):
                return await self.overview(scope)
        raise _no_such_thread()

    async def summary(self, scope: Scope) -> ThreadRecord:
        """The thread's record, an empty one where it has no summary yet.

        Raises:
            NotFound: nobody has written to the thread.
        """
        record = await self.documents.threads.record(scope)
        if await self.documents.conversations.last_position(scope) == 0:
            raise _no_such_thread()
        return record or ThreadRecord(scope.user_id, scope.thread)

    async def delete(self, scope: Scope, *, by: str) -> Erasure:
        """Delete the thread with all that is its own, as `Erasing` does; the user's facts stay. `by`: who asked for it.

        A turn that is running ends with `UserErased`.

        Raises:
            NotFound: there is nothing of such a thread.
            ErasurePending: something could not be reached; it goes on by itself.
        """
        if not await self.eraser.has_any(scope):
            raise _no_such_thread()
        self._waiting.pop(scope, None)
        return await self.eraser.erase(scope, by=by)

    def _archive(self, summarizer: Summarizer | None = None) -> Archive:
        summaries = RollingSummaries(self.documents, summarizer or self.summarizer, self.config, self.clock)
        return Archive(self.documents, summaries, self.clock)

    def _finish_soon(self, scope: Scope) -> "asyncio.Task[None]":
        """The task, one for each thread, that makes the summary which the thread's archive owes."""
        task = self._finishing.get(scope)
        if task is None:
            task = asyncio.create_task(self._finish(scope), name="archive-finish")
            self._finishing[scope] = task
            task.add_done_callback(lambda task: self._finished(scope, task))
        return task

    def _finished(self, scope: Scope, task: "asyncio.Task[None]") -> None:
        del self._finishing[scope]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("archiving broke", extra={"action": "archive_broke"}, exc_info=error)

    async def _finish(self, scope: Scope) -> None:
        """Make the summary. An outage is waited for; after five other failures the extract serves in its place."""
        step = self._waiting.get(scope, Step())
        try:
            await self._archive().finish(scope)
            self._waiting.pop(scope, None)
        except RecollectError as error:
            self._failed(scope, step, error)
        if self._waiting.get(scope, Step()).status == "failed":
            await self._finish_without_model(scope)
        self.points.notify(scope.user_id)

    def _failed(self, scope: Scope, step: Step, error: RecollectError) -> None:
        now = self.clock()
        after = after_failure(step, reason=error.message, outage=is_outage(error), now=now, jitter=1.0)
        self._waiting[scope] = after
        logger.warning(
            "the archive's summary waits",
            extra={"action": "archive_waits", "thread_id": scope.thread_id, "error": type(error).__name__}
            | {"tries": after.tries},
        )

    async def _finish_without_model(self, scope: Scope) -> None:
        try:
            await self._archive(ExtractiveSummarizer()).finish(scope)
            self._waiting.pop(scope, None)
        except StoreUnavailable:
            logger.warning("the archive's summary waits", extra={"action": "archive_waits"})

    async def _keep_up(self) -> None:
        """Finish what archives owe, those of dead processes too the first time."""
        await self.close_archives(at_start=not self._has_seen_start)
        self._has_seen_start = True


def _no_such_thread() -> NotFound:
    return NotFound("There is no such thread; nobody has written to it.")
