"""Fences: what keeps a writer that began before an erasure from bringing back what was erased.

A writer opens a fence before it reads what it works with, and writes inside of it:

    fence = await fences.open(Scope(user_id))       # before anything is read; no model is in a hurry here
    …                                               # models may take their time: no erasure waits for them
    async with fence.writing() as writing:          # around the store's writes alone
        await facts.insert(fact)
        writing.take_back(lambda: facts.remove(user_id=user_id, fact_ids=[fact.id]))

or, where no model is asked in between, `async with fences.writing(user_id) as writing`. Both raise `UserErased` where
the user (or the thread) was erased since: before anything is written, or after what was written has been taken back.

In one process an erasure waits for what is inside, which is short, and deletes afterwards; who comes later finds the
fence raised. Between processes there is no such order, only single-document writes: an erasure raises the subject's
epoch before it deletes, a writer reads it before its write and after it. Whoever wrote too late takes it back.
"""

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from memory.erasures import Erasures, Tombstone, hash_of, subject_of
from memory.errors import RecollectError, UserErased
from memory.scope import Scope

logger = logging.getLogger(__name__)

GRACE_SECONDS = 2.0
"""How long a writer may stay inside once the fence was raised; then its task is cancelled, and raises UserErased."""
QUIET_SECONDS = 15.0
"""How long an erasure waits for writers that were cancelled: the longest that a call of a store takes."""

TakeBack = Callable[[], Awaitable[object]]
Follow = Callable[[Scope, Tombstone], Awaitable[None]]

_ENDED = "The user is being erased; send the request again when that has ended."


class Writing:
    """What a writer has written so far, so that it can be taken back."""

    def __init__(self) -> None:
        self._taking_back: list[TakeBack] = []

    def take_back(self, work: TakeBack) -> None:
        """How to undo the write just done, or about to be done: called if an erasure came before the end."""
        self._taking_back.append(work)

    async def undo(self) -> None:
        """Take everything back, the last first."""
        for work in reversed(self._taking_back):
            await work()


@dataclass(eq=False, slots=True)
class _Inside:
    """One writer inside a fence. `scope` None: it writes of many users.

    `is_writing`: it does what it came for, whatever that waits for; an erasure may end it. On its way in or out it only
    asks the store. `is_ended`: an erasure has cancelled it.
    """

    scope: Scope | None
    task: "asyncio.Task[object] | None"
    is_writing: bool = False
    is_ended: bool = False

    def concerns(self, scope: Scope) -> bool:
        """Whether it may write what an erasure of this scope deletes."""
        if self.scope is None:
            return True
        return self.scope.user_id == scope.user_id and (
            scope.thread_id is None or self.scope.thread_id in (None, scope.thread_id)
        )

    def is_fenced_by(self, scope: Scope) -> bool:
        """Whether all that it writes is of the scope that an erasure deletes."""
        return (
            self.scope is not None
            and self.scope.user_id == scope.user_id
            and (scope.thread_id in (None, self.scope.thread_id))
        )


@dataclass(frozen=True, slots=True)
class Fence:
    """How often a user, and a thread of theirs, had been erased when a writer began."""

    fences: "Fences"
    scope: Scope
    epochs: tuple[int, ...]

    async def check(self) -> None:
        """Whether nothing was erased since.

        Raises:
            UserErased: it was, or is being erased now.
        """
        if await self.fences.epochs(self.scope) != self.epochs:
            raise UserErased

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[Writing]:
        """Write inside of it.

        Raises:
            UserErased: the scope was erased since the fence was opened; nothing of the writes is left.
        """
        writing = Writing()
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
                here.task.uncancel()
                await writing.undo()
                raise UserErased from None
            except Exception as error:
                here.is_writing = False
                if not await self._may_be_erased():
                    raise
                await writing.undo()
                raise UserErased from error
            try:
                await self.check()
            except UserErased:
                await writing.undo()
                raise

    async def _may_be_erased(self) -> bool:
        """The same as `check`, of a writer that has failed already: a store that cannot say is no second failure."""
        try:
            await self.check()
        except UserErased:
            return True
        except RecollectError:
            return False
        return False


@dataclass
class Fences:
    """The fences of all users. One object in a process, for every writer on the same documents.

    `follow` is told of tombstones that this process sees for the first time, before a writer goes on; `listeners` of
    scopes whose fence this process raises.
    """

    erasures: Erasures
    listeners: list[Callable[[Scope], None]] = field(default_factory=list[Callable[[Scope], None]])
    follow: Follow | None = None
    _own: Counter[Scope] = field(init=False, default_factory=Counter[Scope])
    _raises: int = field(init=False, default=0)
    _closed: dict[Scope, set[str]] = field(init=False, default_factory=lambda: defaultdict[Scope, set[str]](set))
    _writers: set[_Inside] = field(init=False, default_factory=set[_Inside])
    _left: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _secret: bytes | None = field(init=False, default=None)

    async def open(self, scope: Scope) -> Fence:
        """The fence of the user, and of the thread where the scope names one, as it stands now.

        Raises:
            UserErased: an erasure of it is under way.
            StoreUnavailable: from this and every other call on documents that other processes share.
        """
        return Fence(self, scope, await self.epochs(scope, is_opening=True))

    def writing(self, user_id: str, thread_id: str | None = None) -> AbstractAsyncContextManager[Writing]:
        """Open a fence and write inside of it at once: for writers that ask no model in between.

        Raises:
            UserErased: the user (or the thread) is being erased, or was while this was written; nothing is left of it.
        """
        return self._opened_writing(Scope(user_id, thread_id))

    @asynccontextmanager
    async def _opened_writing(self, scope: Scope) -> AsyncGenerator[Writing]:
        fence = await self.open(scope)
        async with fence.writing() as writing:
            yield writing

    async def epochs(self, scope: Scope, *, is_opening: bool = False) -> tuple[int, ...]:
        """How often the scope's user and thread were erased, in this process and in all.

        Raises:
            UserErased: an erasure of them is under way.
        """
        scopes = _around(scope)
        if any(self._closed.get(each) for each in scopes):
            raise UserErased(_ENDED)
        own = tuple(self._own[each] for each in scopes)
        if not self.erasures.is_shared:
            return own
        subjects = [await self.subject(each) for each in scopes]
        found = await self.erasures.tombstones(subjects)
        if any(tombstone.erasing for tombstone in found.values()):
            raise UserErased(_ENDED)
        if is_opening and self.follow is not None:
            for each, subject in zip(scopes, subjects, strict=True):
                if subject in found:
                    await self.follow(each, found[subject])
        return (*own, *(found[subject].epoch if subject in found else 0 for subject in subjects))

    async def erased(self, users: Collection[str]) -> set[str]:
        """Those of these users who, or of whose threads one, were erased in this process, or in any ever."""
        own = {scope.user_id for scope in self._own}
        if not self.erasures.is_shared:
            return own.intersection(users)
        secret = await self.secret()
        hashes = {user_id: hash_of(secret, user_id) for user_id in users}
        found = await self.erasures.erased(list(hashes.values()))
        return {user_id for user_id, hashed in hashes.items() if hashed in found or user_id in own}

    async def raises(self) -> tuple[int, int]:
        """Whether anybody was erased between two moments: then this differs."""
        return self._raises, await self.erasures.raises() if self.erasures.is_shared else 0

    async def subject(self, scope: Scope) -> str:
        """The scope's keyed hash."""
        return subject_of(await self.secret(), scope)

    async def secret(self) -> bytes:
        """The key of the hashes."""
        if self._secret is None:
            self._secret = await self.erasures.secret()
        return self._secret

    @contextmanager
    def inside(self, scope: Scope | None) -> Generator[_Inside]:
        """Be one whom an erasure of the scope waits for; None: of anyone, for writes that touch many users."""
        here = _Inside(scope, asyncio.current_task())
        self._writers.add(here)
        try:
            yield here
        finally:
            self._writers.discard(here)
            self._left.set()

    def close(self, scope: Scope, erasure_id: str) -> None:
        """Let nobody in this process write to the scope until `reopen`; whoever has begun before is fenced out."""
        self._own[scope] += 1
        self._raises += 1
        self._closed[scope].add(erasure_id)
        for listener in self.listeners:
            listener(scope)

    def reopen(self, scope: Scope, erasure_id: str) -> None:
        """The erasure has ended: later writers start afresh."""
        self._own[scope] += 1
        self._closed[scope].discard(erasure_id)
        if not self._closed[scope]:
            del self._closed[scope]

    async def raise_(self, scope: Scope, erasure_id: str, *, at: datetime) -> None:
        """Fence out every late writer of the scope, in all processes.

        Raises:
            StoreUnavailable: other processes could not be told; nobody is fenced out.
        """
        was_closed = erasure_id in self._closed.get(scope, ())
        self.close(scope, erasure_id)
        try:
            await self.erasures.raise_fence(await self.subject(scope), erasure_id, at=at)
        except RecollectError:
            if not was_closed:
                self.reopen(scope, erasure_id)
            raise

    async def quiet(self, scope: Scope) -> bool:
        """Wait until the writers that are inside have left; those that take longer than `GRACE_SECONDS` are cancelled.

        Those whose writes are not all of the scope are not cancelled, and not waited for any longer, unless they write
        of many users: such writers ask no model. False where one has not left even then.
        """
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
                    self._left.clear()
                    await self._left.wait()


def _around(scope: Scope) -> Sequence[Scope]:
    return [Scope(scope.user_id)] if scope.thread_id is None else [Scope(scope.user_id), scope]
