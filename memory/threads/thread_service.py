"""A person's verbs on threads: list, read, archive, rename, edit the summary, delete."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from recollect.memory.background.keyed_worker import KeyedWorker
from recollect.memory.background.sweep import Sweep
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.ports.erasures import Erasure
from recollect.memory.ports.store import Store
from recollect.memory.ports.summariser import Summariser
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.threads.agents_thread import agents_overview, check_agents_own
from recollect.memory.threads.archive import Archive
from recollect.memory.threads.extractive_summary import ExtractiveSummariser
from recollect.memory.threads.rolling_summary import RollingSummaries, begin_record
from recollect.memory.values.errors import (
    InvalidRequest,
    NotFound,
    Problem,
    RecollectError,
)
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import check_text, cut
from recollect.memory.values.thread_record import ThreadOverview, ThreadRecord
from recollect.memory.values.times import Clock
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN, estimate_tokens
from recollect.memory.values.turn import Turn
from recollect.memory.values.version import check_version

logger = logging.getLogger(__name__)

CLOSING_BATCH = 100
CLOSING_AT_ONCE = 4
"""Most archives whose summaries are made at the same time, apart from those that somebody waits for."""
MOST_TITLE_CHARACTERS = 200
DERIVED_TITLE_CHARACTERS = 80
OTHERS_SECONDS = 15.0
"""A sweep leaves an archive that is younger than this, in seconds, to the process that began it."""

Erase = Callable[[Scope, str], Awaitable[Erasure | None]]
"""Erases everything of a scope for the one whom the second argument names; returns None if there is nothing."""


@dataclass
class ThreadService:
    """The verbs on threads. `start` begins to make the pending summaries of archives; `close` ends that.

    `wake_updates` has a user's pending updates worked on at once. `erase` is handed in, because erasure lies above.
    """

    store: Store
    index: VectorIndex
    points: IndexOutbox
    wake_updates: Callable[[str], None]
    erase: Erase
    summariser: Summariser
    config: MemoryConfig
    clock: Clock
    _finishing: KeyedWorker[Scope] = field(init=False)
    _has_seen_start: bool = field(init=False, default=False)
    _sweep: Sweep = field(init=False)

    def __post_init__(self) -> None:
        self._finishing = KeyedWorker(
            "archive-finish",
            self._finish,
            at_once=CLOSING_AT_ONCE,
            failed=_log_waiting,
            give_up=self._finish_without_model,
        )
        self._sweep = Sweep("threads-sweep", self._keep_up, seconds=self.config.sweep_seconds)

    def start(self) -> None:
        """Start the sweeps for pending archives: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """End all background work; pending summaries are made after the next start."""
        await self._sweep.close()
        await self._finishing.close()

    async def page(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None, text: str | None = None
    ) -> list[ThreadOverview]:
        """Return a page of the user's threads, those last written to first.

        With `text`, only threads that have it in their id, their title or their first message, in whatever case.

        `before` is the place of the last thread on the page before: the time of its last message (UTC) and its id.
        """
        threads = await self.store.conversations.overviews(user_id, limit=limit, before=before, text=text)
        records = await self.store.threads.records(user_id=user_id, thread_ids=[thread.thread_id for thread in threads])
        known = {record.thread_id: record for record in records}
        return [replace(thread, record=known.get(thread.thread_id)) for thread in threads]

    async def titles(self, user_id: str, threads: Sequence[ThreadOverview]) -> dict[str, str]:
        """Return a title for each of `threads`: the one that a person gave, else the beginning of its first message."""
        titles = {one.thread_id: one.record.title for one in threads if one.record is not None and one.record.title}
        untitled = [one.thread_id for one in threads if one.thread_id not in titles]
        characters = 4 * DERIVED_TITLE_CHARACTERS
        openings = await self.store.conversations.openings(user_id, untitled, characters=characters)
        for thread_id in untitled:
            words = " ".join(openings.get(thread_id, "").split())
            titles[thread_id] = cut(words, DERIVED_TITLE_CHARACTERS) or thread_id
        return titles

    async def latest(self, scope: Scope, *, limit: int) -> list[Turn]:
        """Return the thread's last turns, oldest first: `limit` finished ones, and the unfinished ones among them."""
        finished = await self.store.conversations.recent(scope, limit=limit)
        begin = finished[0].user.position - 1 if len(finished) == limit else 0
        messages = await self.store.conversations.messages(scope, limit=4 * limit, after=begin)
        ids = dict.fromkeys(message.turn_id for message in messages)
        found = [self.store.conversations.turn(user_id=scope.user_id, turn_id=turn_id) for turn_id in ids]
        return [turn for turn in await asyncio.gather(*found) if turn is not None]

    async def overview(self, scope: Scope, *, agent_id: str | None = None) -> ThreadOverview:
        """Return the overview of one thread; with `agent_id`, as the key of this agent sees it.

        Raises:
            NotFound: nobody has written to it, or the agent has not.
        """
        if agent_id is not None:
            return await agents_overview(self.store, scope, agent_id)
        thread = await self.store.conversations.overview(scope)
        if thread is None:
            raise _no_such_thread()
        return replace(thread, record=await self.store.threads.record(scope))

    async def archive(self, scope: Scope) -> ThreadOverview:
        """Archive the thread, wait up to `memory_wait_seconds` for its summary, and return the overview.

        The thread is archived at once; if the model fails, its summary is pending and made later. Turns that wait to be
        learned from are learned from now.

        Raises:
            NotFound: nobody has written to it.
        """
        last = await self.store.conversations.last_position(scope)
        record = await self._archive().begin(scope, to=last) if last else None
        if record is None:
            raise _no_such_thread()
        self.wake_updates(scope.user_id)
        if record.closing:
            await self._finishing.hurry(scope, seconds=self.config.memory_wait_seconds)
        await self.points.sync_soon(scope.user_id)
        return await self.overview(scope)

    async def close_archives(self, *, at_start: bool = False) -> None:
        """Begin to make the pending summaries of archives, also of those that a dead process left.

        Without `at_start` archives younger than `OTHERS_SECONDS` are left to the process that began them.
        """
        now = self.clock()
        for record in await self.store.threads.closing(limit=CLOSING_BATCH):
            is_young = (record.archived_at or now) > now - timedelta(seconds=OTHERS_SECONDS)
            # Threads that this process works on already keep their back-off.
            if not self._finishing.is_busy(record.scope) and (at_start or not is_young):
                self._finishing.wake(record.scope)

    async def set_summary(self, scope: Scope, text: str | None, *, version: str | None = None) -> ThreadRecord:
        """Replace the thread's summary by a person's text; None or a blank one removes it.

        The text covers the same turns as the summary before, and the next summary starts from it. `version` is that of
        the summary that the editor was shown (`ThreadRecord.summary_version`); None: any.

        Raises:
            VersionChanged: the summary has another version by now; nothing is stored.
            NotFound: nobody has written to the thread.
            InvalidRequest: it is longer than a summary may be, or no store can hold it.
        """
        given = (text or "").strip()
        check_text(given, field="summary")
        if estimate_tokens(given) > self.config.summary_tokens:
            most = self.config.summary_tokens * CHARACTERS_PER_TOKEN
            problem = Problem("summary", f"must have at most {most:,} characters (SUMMARY_TOKENS)")
            raise InvalidRequest("The summary is too long.", problems=[problem])
        while (record := await begin_record(self.store, scope, self.clock)) is not None:
            check_version(version, record.summary_version)
            written = record.revised(
                summary=given or None, summary_by="person" if given else None, summarised_at=self.clock()
            )
            if await self.store.threads.put(written, revision=record.revision):
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
        while (record := await begin_record(self.store, scope, self.clock)) is not None:
            # The title is in no point, so that the index has nothing to follow.
            titled = record.revised(title=given, indexed=record.indexed)
            if await self.store.threads.put(titled, revision=record.revision):
                return await self.overview(scope)
        raise _no_such_thread()

    async def summary(self, scope: Scope, *, agent_id: str | None = None) -> ThreadRecord:
        """Return the thread's record, an empty one if it has none yet; with `agent_id`, as this agent's key sees it.

        Raises:
            NotFound: nobody has written to the thread, or the agent has not.
        """
        if agent_id is not None:
            record = (await agents_overview(self.store, scope, agent_id)).record
        else:
            record = await self.store.threads.record(scope)
            if await self.store.conversations.last_position(scope) == 0:
                raise _no_such_thread()
        return record or ThreadRecord(scope.user_id, scope.thread)

    async def check_agents_own(self, scope: Scope, agent_id: str) -> None:
        """Check that nobody but the agent has spoken in the thread, because an act changes it as a whole.

        Raises:
            NotFound: the agent has not written to it.
            Forbidden: others have written to it too.
        """
        await check_agents_own(self.store, scope, agent_id)

    async def delete(self, scope: Scope, *, by: str) -> Erasure:
        """Delete the thread with all that is its own by `Erasing`; the user's facts stay. `by` names who asked for it.

        A turn that is running ends with `UserErased`.

        Raises:
            NotFound: nothing of such a thread exists.
            ErasurePending: a store could not be reached; the erasure goes on by itself.
        """
        erasure = await self.erase(scope, by)
        if erasure is None:
            raise _no_such_thread()
        return erasure

    def _archive(self, summariser: Summariser | None = None) -> Archive:
        summaries = RollingSummaries(self.store, summariser or self.summariser, self.config, self.clock)
        return Archive(self.store, summaries, self.clock)

    async def _finish(self, scope: Scope) -> None:
        """Make the pending summary of the thread's archive.

        Raises:
            StoreUnavailable, ModelUnavailable, UnreadableAnswer: the summary is still pending.
        """
        try:
            await self._archive().finish(scope)
        finally:
            # A failure leaves parts that the index has to follow, too.
            self.points.notify(scope.user_id)

    async def _finish_without_model(self, scope: Scope, _error: Exception) -> None:
        """Make the summary an extract, because the model has failed again and again."""
        await self._archive(ExtractiveSummariser()).finish(scope)
        self.points.notify(scope.user_id)

    async def _keep_up(self) -> None:
        """Make pending summaries; the first time recent ones too, whose process may have died before this start."""
        await self.close_archives(at_start=not self._has_seen_start)
        self._has_seen_start = True


def _log_waiting(_scope: Scope, error: Exception) -> None:
    known = isinstance(error, RecollectError)
    logger.warning(
        "the archive's summary waits",
        extra={"action": "archive_waits", "error": type(error).__name__},
        exc_info=None if known else error,
    )


def _no_such_thread() -> NotFound:
    return NotFound("There is no such thread; nobody has written to it.")
