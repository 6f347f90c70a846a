"""The memory as its users see it: the verbs of a turn, over whatever backends were opened."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from memory.bounds import Bounds
from memory.chat_model import ChatModel
from memory.decision import Proposal
from memory.document_book import DocumentBook
from memory.documents import Documents
from memory.embedder import Embedder
from memory.erasing import Erasing
from memory.errors import RecollectError, TurnConflict, UserErased
from memory.fact_book import FactBook
from memory.fences import Fence, Fences, Writing
from memory.key_ring import KeyRing
from memory.mem_config import MemoryConfig
from memory.observing import Observer
from memory.owed_points import OwedPoints
from memory.recall import Recall
from memory.regenerating import Regenerating, last_turn, reopen
from memory.scope import Scope, check_id
from memory.summaries import summary_is_owed
from memory.text import check_message
from memory.text_learning import TextLearning
from memory.thread_book import ThreadBook
from memory.thread_record import ThreadRecord
from memory.times import Clock
from memory.trivial import is_trivial
from memory.turn import Message, Turn
from memory.turn_book import TurnBook
from memory.update import Update, owed
from memory.updater import Updater
from memory.vector_index import VectorIndex

logger = logging.getLogger(__name__)

PING_SECONDS = 3.0


@dataclass(frozen=True)
class Memory:
    """An open memory. Made and closed by `memory.opening.open_memory`; holds no state of its own."""

    config: MemoryConfig
    documents: Documents
    index: VectorIndex
    embedder: Embedder
    chat: ChatModel
    extraction_model: str
    recall: Recall
    updater: Updater
    facts: FactBook
    turns: TurnBook
    threads: ThreadBook
    library: DocumentBook
    texts: TextLearning
    points: OwedPoints
    bounds: Bounds
    keys: KeyRing
    fences: Fences
    erasing: Erasing
    clock: Clock
    observer: Observer

    async def accept(self, message: Message, *, fence: Fence | None = None) -> Message:
        """Store the user's message: the turn is accepted. A repeat returns what is stored.

        `fence` is what the turn opened before it read anything.

        Raises:
            UserErased: the user, or the thread, is being erased, or was since the fence was opened.
            InvalidRequest: the turn_id or the text is none that can be stored.
            TurnConflict: the turn_id already belongs to another thread or message of this user.
            StoreUnavailable: nothing is stored.
        """
        check_id("turn_id", message.turn_id)
        check_message(message.content)
        async with self._writing(message, fence) as writing:
            writing.take_back(lambda: self._remove(message))
            stored = await self.documents.conversations.accept(message)
        check_same_turn(stored, thread_id=message.thread_id, content=message.content)
        return stored

    def owed(
        self,
        message: Message,
        *,
        proposals: tuple[Proposal, ...] = (),
        record: ThreadRecord | None,
        window_from: int,
    ) -> Update:
        """The update that a turn owes: what it teaches, its points, and its thread's summary where that is due.

        `window_from` is the position of the oldest message that the window showed, `record` the thread's.
        """
        summary = summary_is_owed(record, window_from=window_from, position=message.position, config=self.config)
        return owed(proposals=proposals, trivial=is_trivial(message.content), summary=summary)

    async def commit(
        self,
        message: Message,
        *,
        reply: str,
        result: Mapping[str, Any],
        update: Update,
        name: str | None = None,
        fence: Fence | None = None,
    ) -> Turn:
        """Store the reply with what the turn still owes: the turn is committed, and its update begins.

        A turn that has a reply already keeps it; the turn as stored is returned.

        Raises:
            UserErased: the user's message is gone: the user, or the thread, was erased while the turn was running.
            StoreUnavailable: nothing is stored; the turn is repeatable.
        """
        answer = self._answer(message, reply, name)
        turn = Turn(message, answer, result, update)
        async with self._writing(message, fence) as writing:
            is_new = await self.documents.conversations.commit(answer, result=result, update=update)
            if is_new:
                writing.take_back(lambda: self._remove(message))
        if not is_new:
            stored = await self.turn(user_id=message.user_id, turn_id=message.turn_id)
            if stored is None or stored.reply is None:
                raise UserErased
            return stored
        self.bounds.touch(message.user_id)
        if update.status == "pending":
            self.updater.notify(message.user_id)
        return turn

    async def commit_anew(
        self,
        message: Message,
        *,
        reply: str,
        result: Mapping[str, Any],
        update: Update,
        fence: Fence | None = None,
    ) -> Turn:
        """Store a new reply in the place of the finished turn's old one; see `regenerating`.

        Raises:
            UserErased: the turn is gone.
            UpdatePending: somebody still works on the old reply's update; that reply stays.
            StoreUnavailable: the old reply stays.
        """
        answer = self._answer(message, reply, None)
        regenerating = Regenerating(self.documents, self.index, self.clock, self.config.memory_wait_seconds)
        async with self._writing(message, fence):
            if await reopen(self.documents, message):
                self.points.notify(message.user_id)
            turn = await regenerating.store(answer, result=result, owed=update)
        self.bounds.touch(message.user_id)
        self.updater.notify(message.user_id)
        return turn

    async def last_turn(self, scope: Scope, turn_id: str) -> Turn:
        """The thread's last turn, which alone can be answered anew; see `regenerating.last_turn`."""
        return await last_turn(self.documents, scope, turn_id)

    async def learned(self, turn: Turn) -> Turn:
        """The turn once its update has ended and the index follows, or as it is after `memory_wait_seconds`."""
        update = await self.updater.wait_ended(
            user_id=turn.message.user_id, turn_id=turn.message.turn_id, seconds=self.config.memory_wait_seconds
        )
        if update is not None and update.status == "done":
            await self.points.settled(turn.message.user_id)
        return replace(turn, update=update or turn.update)

    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """The turn as it is stored, or None."""
        return await self.documents.conversations.turn(user_id=user_id, turn_id=turn_id)

    async def messages(self, scope: Scope, *, limit: int, after: int = 0) -> list[Message]:
        """The thread's messages with position > `after`, oldest first."""
        return await self.documents.conversations.messages(scope, limit=limit, after=after)

    @asynccontextmanager
    async def _writing(self, message: Message, fence: Fence | None) -> AsyncGenerator[Writing]:
        """Write a part of the turn behind the fence that it opened, or a new one."""
        opened = fence or await self.fences.open(message.scope)
        async with opened.writing() as writing:
            yield writing

    async def _remove(self, message: Message) -> None:
        await self.documents.conversations.remove(user_id=message.user_id, turn_ids=[message.turn_id])

    def _answer(self, message: Message, reply: str, name: str | None) -> Message:
        return replace(
            message,
            role="assistant",
            content=reply,
            created_at=max(self.clock(), message.created_at),
            name=name,
            metadata={},
            position=message.position + 1,
        )

    async def down(self) -> list[str]:
        """Which of "documents", "index", "chat" and "embedder" do not answer now."""
        pings: dict[str, Awaitable[None]] = {
            "documents": self.documents.ping(),
            "index": self.index.ping(),
            "chat": self.chat.ping(),
            "embedder": self.embedder.ping(),
        }
        answers = await asyncio.gather(*(_answers(name, ping) for name, ping in pings.items()))
        return [name for name, answered in zip(pings, answers, strict=True) if not answered]


async def _answers(name: str, ping: Awaitable[None]) -> bool:
    try:
        await asyncio.wait_for(ping, PING_SECONDS)
    except (RecollectError, TimeoutError) as error:
        logger.warning("backend down", extra={"action": "backend_down", "backend": name, "error": type(error).__name__})
        return False
    return True


def check_same_turn(message: Message, *, thread_id: str, content: str) -> None:
    """A turn_id belongs to one thread and one message.

    Raises:
        TurnConflict: it belongs to another.
    """
    if message.thread_id != thread_id or message.content != content:
        raise TurnConflict(turn_id=message.turn_id)
