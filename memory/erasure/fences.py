"""Fences keep a writer that began before an erasure from bringing back what was erased.

A writer observes a fence before it reads its input, and writes inside of the fence:

    fence = await fences.observe(Scope(user_id))    # before anything is read
    …                                               # a model may take minutes: no erasure waits for it
    async with fence.writing() as writing:          # around the store's writes alone
        await facts.insert(fact)
        writing.on_erased(lambda: facts.remove(user_id=user_id, fact_ids=[fact.id]))

A writer that asks no model in between uses `async with fences.writing(user_id) as writing`. Both raise `UserErased`
where the user (or the thread) was erased since: before the first write, or after all writes have been undone.

In one process an erasure blocks the scope, waits for the writers inside (their writes are short), and then deletes.
Between processes only writes of single documents are ordered: an erasure raises the subject's epoch, waits until no
process takes an earlier one for the present one (`seen_tombstones.py`), and then deletes. A writer compares the epoch
before its write and after it, and undoes its writes where it has changed.
"""

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from recollect.memory.erasure.seen_tombstones import FOLLOWED_SECONDS, SeenTombstones
from recollect.memory.ports.erasures import Erasures, Tombstone, keyed_hash, subject_of
from recollect.memory.values.errors import RecollectError, UserErased
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

logger = logging.getLogger(__name__)

GRACE_SECONDS = 2.0
"""Seconds that a writer may stay inside a blocked scope; then its task is cancelled, and raises UserErased."""
QUIET_SECONDS = 15.0
"""Seconds that an erasure waits for cancelled writers to leave: the longest that a call of a store takes."""

TakeBack = Callable[[], Awaitable[object]]
Follow = Callable[[Scope, Tombstone], Awaitable[None]]

_ENDED = "The user is being erased; send the request again when that has ended."


class Writing:
    """Collects how to undo each write of one writer."""

    def __init__(self) -> None:
        self._taking_back: list[TakeBack] = []

    def on_erased(self, work: TakeBack) -> None:
        """Register `work`, which undoes the write just done or about to be done, for an erasure before the end."""
        self._taking_back.append(work)

    async def undo(self) -> None:
        """Undo all registered writes, the last first."""
        # The last first: a later write may refer to an earlier one.
        for work in reversed(self._taking_back):
            await work()


@dataclass(eq=False, slots=True)
class _Inside:
    """One writer inside a fence. `scope` is None where it writes for many users.

    `is_writing` is True while the caller's block runs: then an erasure may cancel its `task`. Before and after the
    block, the writer only reads epochs and undoes writes, which must not be cut off. `is_ended` is True once an
    erasure has cancelled the task: it tells this cancellation from the caller's own.
    """

    scope: Scope | None
    task: "asyncio.Task[object] | None"
    is_writing: bool = False
    is_ended: bool = False

    def concerns(self, scope: Scope) -> bool:
        """Tell whether this writer may write something that an erasure of `scope` deletes."""
        if self.scope is None:
            return True
        return self.scope.user_id == scope.user_id and (
            scope.thread_id is None or self.scope.thread_id in (None, scope.thread_id)
        )

    def is_fenced_by(self, scope: Scope) -> bool:
        """Tell whether an erasure of `scope` deletes everything that this writer writes."""
        return (
            self.scope is not None
            and self.scope.user_id == scope.user_id
            and (scope.thread_id in (None, self.scope.thread_id))
        )


@frozen
class Fence:
    """Keeps the epochs of `scope` (a user, or a thread and its user) as they were when a writer began."""

    fences: "Fences"
    scope: Scope
    epochs: tuple[int, ...]

    async def check(self) -> None:
        """Compare the epochs now with those that the writer observed.

        Raises:
            UserErased: the scope was erased since, or is being erased now.
        """
        if await self.fences.epochs(self.scope) != self.epochs:
            raise UserErased

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[Writing]:
        """Let the caller's block write, and undo its writes where the scope was erased.

        Raises:
            UserErased: the scope was erased since the fence was observed; nothing of the writes is left.
        """
        writing = Writing()
        # Enter before the check: an erasure that begins while the epochs are read then waits for this writer.
        with self.fences.inside(self.scope) as here:
            await self.check()
            here.is_writing = True
            try:
                yield writing
                here.is_writing = False
            except asyncio.CancelledError:
                here.is_writing = False
                if here.task is None or not here.is_ended:
                    raise
                # The erasure cancelled the block alone: the task lives on, undoes its writes and raises UserErased.
                here.task.uncancel()
                await writing.undo()
                raise UserErased from None
            except Exception as error:
                here.is_writing = False
                # The block may have failed because an erasure deleted what it works with: then UserErased says more.
                if not await self._may_be_erased():
                    raise
                await writing.undo()
                raise UserErased from error
            # Check after the last write: another process raises the epoch before it deletes, so that it deletes all
            # writes from before an epoch that is still unchanged here, and this writer undoes all others.
            try:
                await self.check()
            except UserErased:
                await writing.undo()
                raise

    async def _may_be_erased(self) -> bool:
        """Tell whether the scope was erased; False where the store cannot be reached: the first failure is raised."""
        try:
            await self.check()
        except UserErased:
            return True
        except RecollectError:
            return False
        return False


@dataclass
class Fences:
    """Holds the fences of all users: one object in a process, for every writer on the same store.

    `follow` is called with each tombstone that `observe` finds, before the writer goes on; `listeners` are called with
    each scope that this process blocks. `_own` counts blocks and unblocks by scope, `_blocks` the blocks of all scopes,
    and `_closed` maps each blocked scope to the ids of the erasures that block it.
    """

    erasures: Erasures
    listeners: list[Callable[[Scope], None]] = field(default_factory=list[Callable[[Scope], None]])
    follow: Follow | None = None
    _own: Counter[Scope] = field(init=False, default_factory=Counter[Scope])
    _blocks: int = field(init=False, default=0)
    _closed: dict[Scope, set[str]] = field(init=False, default_factory=lambda: defaultdict[Scope, set[str]](set))
    _writers: set[_Inside] = field(init=False, default_factory=set[_Inside])
    _left: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _secret: bytes | None = field(init=False, default=None)
    _seen: SeenTombstones = field(init=False)

    def __post_init__(self) -> None:
        self._seen = SeenTombstones(self.erasures)

    async def observe(self, scope: Scope) -> Fence:
        """Return a fence with the present epochs of the user, and of the thread where `scope` names one.

        Raises:
            UserErased: an erasure of the scope is under way.
            StoreUnavailable: the store cannot be reached; every call may raise it on a store that processes share.
        """
        return Fence(self, scope, await self.epochs(scope, is_opening=True))

    def writing(self, user_id: str, thread_id: str | None = None) -> AbstractAsyncContextManager[Writing]:
        """Observe a fence and write inside of it at once: for writers that ask no model in between.

        Raises:
            UserErased: the user (or the thread) is being erased, or was while this was written; nothing is left of it.
        """
        return self._opened_writing(Scope(user_id, thread_id))

    @asynccontextmanager
    async def _opened_writing(self, scope: Scope) -> AsyncGenerator[Writing]:
        fence = await self.observe(scope)
        async with fence.writing() as writing:
            yield writing

    async def epochs(self, scope: Scope, *, is_opening: bool = False) -> tuple[int, ...]:
        """Return the epochs of the scope's user and thread: this process's counts, then the shared store's.

        `is_opening` also passes the tombstones found to `follow`.

        Raises:
            UserErased: an erasure of one of them is under way.
        """
        scopes = _around(scope)
        # Read this process's counts before the first await: an erasure that begins meanwhile changes the next ones.
        if any(self._closed.get(each) for each in scopes):
            raise UserErased(_ENDED)
        own = tuple(self._own[each] for each in scopes)
        if not self.erasures.is_shared:
            return own
        subjects = [await self.subject(each) for each in scopes]
        found = await self._seen.of(subjects[0], subjects)
        if any(tombstone.erasing for tombstone in found.values()):
            raise UserErased(_ENDED)
        if is_opening and self.follow is not None:
            for each, subject in zip(scopes, subjects, strict=True):
                if subject in found:
                    await self.follow(each, found[subject])
        return (*own, *(found[subject].epoch if subject in found else 0 for subject in subjects))

    async def erased(self, users: Collection[str]) -> set[str]:
        """Return those of `users` that were erased, or lost a thread to an erasure.

        A store of one process counts erasures since its start; a shared store remembers all, in its tombstones.
        """
        own = {scope.user_id for scope in self._own}
        if not self.erasures.is_shared:
            return own.intersection(users)
        secret = await self.secret()
        hashes = {user_id: keyed_hash(secret, user_id) for user_id in users}
        found = await self._seen.erased(hashes.values())
        return {user_id for user_id, hashed in hashes.items() if hashed in found or user_id in own}

    async def epoch(self) -> tuple[int, int]:
        """Return a pair that changes with the erasures of anybody, in this process or (second) in any.

        The second changes before another process deletes.
        """
        return self._blocks, await self._seen.epoch() if self.erasures.is_shared else 0

    async def subject(self, scope: Scope) -> str:
        """Return the keyed hash of `scope`."""
        return subject_of(await self.secret(), scope)

    async def secret(self) -> bytes:
        """Return the key of the hashes: read from the store once, then kept."""
        if self._secret is None:
            self._secret = await self.erasures.secret()
        return self._secret

    @contextmanager
    def inside(self, scope: Scope | None) -> Generator[_Inside]:
        """Make erasures of `scope` wait for the caller; None makes all erasures wait, for writes of many users."""
        here = _Inside(scope, asyncio.current_task())
        self._writers.add(here)
        try:
            yield here
        finally:
            self._writers.discard(here)
            self._left.set()

    def block(self, scope: Scope, erasure_id: str) -> None:
        """Keep every writer in this process out of `scope` until `unblock`; those that observed it before fail too."""
        # Count first, then tell the listeners: what they do must find the fences of earlier writers outdated.
        self._own[scope] += 1
        self._blocks += 1
        self._closed[scope].add(erasure_id)
        for listener in self.listeners:
            listener(scope)

    def unblock(self, scope: Scope, erasure_id: str) -> None:
        """End the block of `scope` by this erasure; writers may come in once no other erasure blocks it."""
        self._own[scope] += 1
        self._closed[scope].discard(erasure_id)
        if not self._closed[scope]:
            del self._closed[scope]

    async def fence_out(self, scope: Scope, erasure_id: str, *, at: datetime) -> None:
        """Block `scope` in this process, and raise its epoch in the store for all others, until they all know it.

        Raises:
            StoreUnavailable: the store could not be reached; the scope is blocked only if it was before.
        """
        # Block here first: no writer of this process may come in while the store's epoch is being raised.
        was_closed = erasure_id in self._closed.get(scope, ())
        self.block(scope, erasure_id)
        try:
            await self.erasures.block(await self.subject(scope), erasure_id, at=at)
        except RecollectError:
            # An erasure that is taken up again had the scope blocked, and may have deleted half: the block stays.
            if not was_closed:
                self.unblock(scope, erasure_id)
            raise
        if self.erasures.is_shared:
            await asyncio.sleep(FOLLOWED_SECONDS)

    async def quiet(self, scope: Scope) -> bool:
        """Wait until the writers inside `scope` have left; tell whether all have that had to.

        After `GRACE_SECONDS` writers of this scope alone are cancelled, and waited for up to `QUIET_SECONDS` more, as
        are writers for many users, which ask no model. A writer with only a part of its writes in the scope is neither
        cancelled nor waited for any longer: its own check afterwards undoes its writes.
        """
        # Only writers that are inside now: those that come later find the scope blocked.
        writers = {here for here in self._writers if here.concerns(scope) and here.task is not asyncio.current_task()}
        await self._until_left(writers, GRACE_SECONDS)
        fenced = {here for here in writers & self._writers if here.is_fenced_by(scope)}
        ended = {here for here in fenced if here.is_writing and here.task is not None}
        for here in ended:
            here.is_ended = True
        for task in {here.task for here in ended if here.task is not None}:
            task.cancel()
            logger.info("a late writer was ended", extra={"action": "late_writer_ended"})
        late = fenced | {here for here in writers if here.scope is None}
        await self._until_left(late, QUIET_SECONDS)
        return not late & self._writers

    async def _until_left(self, writers: set[_Inside], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while writers & self._writers:
                    # Several erasures share the event, and each may clear it: all look at `_writers` again.
                    self._left.clear()
                    await self._left.wait()


def _around(scope: Scope) -> Sequence[Scope]:
    """Return the scopes whose erasure fences out a writer of `scope`: the user, and the thread where it has one."""
    return [Scope(scope.user_id)] if scope.thread_id is None else [Scope(scope.user_id), scope]
