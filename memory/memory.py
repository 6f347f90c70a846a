"""The memory as the service and the library see it: the verbs of a turn, over whatever backends were opened."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.memory.background.bulk import Bulk
from recollect.memory.documents.document_service import DocumentService
from recollect.memory.erasure.erasing import Erasing
from recollect.memory.erasure.fenced_records import FencedClientRecords, FencedSessions
from recollect.memory.erasure.fences import Fence, Writing
from recollect.memory.evaluation.evaluation import Evaluation
from recollect.memory.facts.fact_service import FactService
from recollect.memory.filtered_lists import FilteredLists
from recollect.memory.index.embedder_change import EmbedderChange
from recollect.memory.language.said_hash import said_hash
from recollect.memory.language.trivial import is_trivial
from recollect.memory.learning.text_learning import TextLearning
from recollect.memory.learning.turns.deleting import TurnDeleting
from recollect.memory.learning.turns.regenerating import Regenerating, last_turn, reopen
from recollect.memory.learning.turns.superseding import Superseding
from recollect.memory.learning.turns.turn_service import TurnService
from recollect.memory.operations import Operations
from recollect.memory.parts import Parts
from recollect.memory.ports.callers.rate_leases import RateLeases
from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.ports.erasures import keyed_hash
from recollect.memory.ports.key_ring import KeyRing
from recollect.memory.ports.observing import Observer
from recollect.memory.ports.thread_queue import Hold
from recollect.memory.recall.recall import Recall
from recollect.memory.threads.recorded_hits import RecordedHits, bounded_result
from recollect.memory.threads.summary_step import summary_is_owed
from recollect.memory.threads.thread_service import ThreadService
from recollect.memory.threads.window import last_turns
from recollect.memory.updates.right_of_way import Passage
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import StoreUnavailable, TurnConflict, UserErased
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope, check_id
from recollect.memory.values.text import check_message
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Exchange, Message, Turn, derived_id
from recollect.memory.values.update import StepName, Update, owed

logger = logging.getLogger(__name__)


@frozen
class Memory:
    """An open memory. `memory.opening.open_memory` opens and closes it; it holds no state of its own.

    A turn's verbs are its own; the fields have those about one noun each. `parts` are for the rooms of `memory/` alone.
    """

    config: MemoryConfig
    chat: ChatModel
    recall: Recall
    facts: FactService
    turns: TurnService
    threads: ThreadService
    documents: DocumentService
    texts: TextLearning
    keys: KeyRing
    erasing: Erasing
    evaluation: Evaluation
    embedders: EmbedderChange
    operations: Operations
    bulk: Bulk
    observer: Observer
    parts: Parts

    def now(self) -> datetime:
        """Return the memory's time (UTC)."""
        return self.parts.clock()

    async def observe(self, scope: Scope) -> Fence:
        """Return a fence that refuses writes once the scope was erased; observe it before anything is read for them.

        Raises:
            UserErased: an erasure of the scope is under way.
            StoreUnavailable: the store cannot be reached.
        """
        return await self.parts.fences.observe(scope)

    def on_erasing(self, listener: Callable[[Scope], None]) -> None:
        """Call `listener` with each scope whose erasure begins in this process."""
        self.parts.fences.listeners.append(listener)

    def held(self, scope: Scope, *, new_turn: str | None = None) -> AbstractAsyncContextManager[Hold]:
        """Hold the scope's thread, behind those who came before; turns of a thread run one after another.

        `new_turn` is the id of the turn that runs meanwhile, where the store cannot have it yet.

        Raises:
            ThreadBusy: it was not free within THREAD_WAIT_SECONDS.
        """
        reply_id = None if new_turn is None else derived_id(scope.user_id, new_turn, "assistant")
        return self.parts.store.queue.turn(scope, wait_seconds=self.config.thread_wait_seconds, reply_id=reply_id)

    def passage(self, user_id: str) -> Passage:
        """Return the passage of a turn of this user, to whose work updates of earlier turns give way."""
        return self.parts.updater.way.passage(user_id)

    async def accept(self, message: Message, *, fence: Fence | None = None, agent_id: str | None = None) -> Message:
        """Store the user's message, which accepts the turn. A repeated call returns the stored message.

        `fence` is the one that the turn observed before it read anything; without one, it is observed now. `agent_id`:
        the caller sees what has this agent's label alone.

        Raises:
            UserErased: the user, or the thread, is being erased, or was erased since the fence was observed.
            InvalidRequest: the turn_id or the text cannot be stored.
            TurnConflict: the turn_id already belongs to another thread or message of this user, or to another agent.
            StoreUnavailable: nothing is stored.
        """
        check_id("turn_id", message.turn_id)
        self.check_message(message.content)
        async with self._writing(message, fence) as writing:
            # Before the write: cancelled in its midst, it may have been done, and has to be taken back too.
            writing.on_erased(lambda: self._remove(message))
            stored = await self.parts.store.conversations.accept(message)
        check_same_turn(stored, thread_id=message.thread_id, content=message.content, agent_id=agent_id)
        _say("turn accepted", "turn_accepted", stored, position=stored.position, characters=len(stored.content))
        return stored

    def check_message(self, text: str, *, field: str = "message") -> None:
        """Check that `text` can be a user's message, of at most MAX_MESSAGE_CHARACTERS.

        Raises:
            InvalidRequest: it cannot; the error names `field`.
        """
        check_message(text, most=self.config.max_message_characters, field=field)

    def owed(
        self,
        message: Message,
        *,
        proposals: tuple[Proposal, ...] = (),
        record: ThreadRecord | None,
        window_from: int,
    ) -> Update:
        """Return the update that a turn owes: its facts, its points, and its thread's summary where that is due.

        `record` is the thread's; `window_from` is the position of the oldest message that the window showed.
        """
        summary = summary_is_owed(record, window_from=window_from, position=message.position, config=self.config)
        return owed(proposals=proposals, trivial=is_trivial(message.evidence), summary=summary)

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
        """Store the reply with the update that the turn owes: the turn is committed, and its update begins.

        A turn that has a reply already keeps it. Return the turn as stored.

        Raises:
            UserErased: the user's message is gone: the user, or the thread, was erased while the turn was running.
            StoreUnavailable: nothing is stored; the turn is repeatable.
        """
        answer, kept = self._answer(message, reply, name), bounded_result(result)
        async with self._writing(message, fence) as writing:
            is_new = await self.parts.store.conversations.commit(answer, result=kept, update=update)
            if is_new:  # Another request's reply is that request's to take back.
                writing.on_erased(lambda: self._remove(message))
        if not is_new:
            stored = await self.find_turn(user_id=message.user_id, turn_id=message.turn_id)
            if stored is None or stored.reply is None:
                raise UserErased
            return stored
        _say("turn committed", "turn_committed", message, status=update.status, characters=len(reply))
        committed = Turn(message, answer, kept, update)
        await self._settle_hits(committed)
        self.parts.retention.touch(message.user_id)
        if update.status == "pending":
            self.parts.updater.notify(message.user_id, committed)
        return Turn(message, answer, result, update)

    async def commit_anew(
        self,
        message: Message,
        *,
        reply: str,
        result: Mapping[str, Any],
        update: Update,
        fence: Fence | None = None,
    ) -> Turn:
        """Replace the reply of a finished turn by a new one; see `regenerating`.

        Raises:
            UserErased: the turn is gone.
            UpdatePending: the old reply's update is still worked on; that reply stays.
            StoreUnavailable: the old reply stays.
        """
        answer = self._answer(message, reply, None)
        async with self._writing(message, fence):
            if await reopen(self.parts.store, message):
                self.parts.points.notify(message.user_id)
            turn = await self._regenerating.replace(answer, result=bounded_result(result), owed=update)
        await self._settle_hits(turn)
        self.parts.retention.touch(message.user_id)
        self.parts.updater.notify(message.user_id)
        return replace(turn, result=result)

    async def last_turn(self, scope: Scope, turn_id: str) -> Turn:
        """Return the thread's last turn, the only one that can be regenerated; see `regenerating.last_turn`."""
        return await last_turn(self.parts.store, scope, turn_id)

    @property
    def deleting(self) -> TurnDeleting:
        """The deletion of single turns."""
        return TurnDeleting(self.parts.store, self.parts.index, self.turns, self.facts)

    async def supersede(self, scope: Scope, turn_ids: Sequence[str], *, fence: Fence) -> None:
        """Take these last turns of the thread out of window, search and learning; the user's messages stay.

        The caller holds the thread. See `superseding`.
        """
        superseding = Superseding(self.parts.store, self.parts.index, self.parts.updater, self._regenerating)
        async with fence.writing():
            await superseding.supersede(scope, turn_ids)
        self.parts.points.notify(scope.user_id)

    async def threads_saying(self, user_id: str, text: str, *, limit: int) -> list[str]:
        """Return the threads of the user's last `limit` messages that say `text`, but for a rare collision of hashes.

        The last one comes first.
        """
        return await self.parts.store.conversations.threads_saying(user_id, said_hash(text), limit=limit)

    async def keyed_hash(self, *texts: str) -> str:
        """Return a hash of the texts with the store's own key, so that nobody can guess them from it."""
        secret = await self.parts.fences.secret()
        return keyed_hash(secret, *(keyed_hash(secret, text) for text in texts))

    @property
    def filtered(self) -> FilteredLists:
        """The lists with a filter."""
        keys = read_filter_keys(self.config.filter_keys)
        return FilteredLists(self.parts.store, self.facts, self.threads, keys)

    @property
    def client_records(self) -> FencedClientRecords:
        """The records that OpenAI's wire keeps beside the turns."""
        return FencedClientRecords(self.parts.store.client_records, self.parts.fences)

    @property
    def rate_leases(self) -> RateLeases | None:
        """The requests that callers may still send, over all processes; None where this process alone counts them."""
        return self.parts.store.rate_leases

    @property
    def sessions(self) -> FencedSessions:
        """The sessions of people who have signed in."""
        return FencedSessions(self.parts.store.sessions, self.parts.fences)

    async def learned(self, turn: Turn) -> Turn:
        """Wait at most `memory_wait_seconds` until the turn's update has ended and the index follows; return it."""
        update = await self.parts.updater.wait_ended(
            user_id=turn.message.user_id, turn_id=turn.message.turn_id, seconds=self.config.memory_wait_seconds
        )
        if update is not None and update.status == "done":
            await self.parts.points.settled(turn.message.user_id)
        return replace(turn, update=update or turn.update)

    async def ended(self, *, user_id: str, turn_id: str, seconds: float) -> Update | None:
        """Wait at most `seconds` until the turn's update has ended, and return it; None if the turn has no update."""
        return await self.parts.updater.wait_ended(user_id=user_id, turn_id=turn_id, seconds=seconds)

    async def tried(self, *, user_id: str, turn_id: str) -> Update | None:
        """Wait at most `memory_wait_seconds` until each step of the turn's update was tried once, and return it.

        A step that has ended, or is deferred, counts as tried. None if the turn has no update.
        """
        return await self.parts.updater.wait_tried(
            user_id=user_id, turn_id=turn_id, seconds=self.config.memory_wait_seconds
        )

    def deferred_steps(self, user_id: str, turn_id: str) -> Mapping[StepName, datetime | None]:
        """Return the turn's steps that this process defers, and when each starts at the latest."""
        return self.parts.updater.deferred_steps(user_id, turn_id)

    async def recent(
        self, scope: Scope, *, limit: int, before: int | None = None, agent_id: str | None = None
    ) -> list[Exchange]:
        """Return the thread's last finished turns, at most `limit`, oldest first; see `last_turns`."""
        conversations = self.parts.store.conversations
        return await last_turns(conversations, scope, limit=limit, before=before, agent_id=agent_id)

    async def exchanges(self, scope: Scope, *, after: int, limit: int) -> list[Exchange]:
        """Return the thread's finished turns whose user's message has a position > `after`, oldest first."""
        return await self.parts.store.conversations.exchanges(scope, after=after, limit=limit)

    async def find_turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """Return the turn as it is stored, or None."""
        return await self.parts.store.conversations.turn(user_id=user_id, turn_id=turn_id)

    async def messages(self, scope: Scope, *, limit: int, after: int = 0) -> list[Message]:
        """Return the thread's messages with position > `after`, oldest first."""
        return await self.parts.store.conversations.messages(scope, limit=limit, after=after)

    @property
    def _regenerating(self) -> Regenerating:
        return Regenerating(self.parts.store, self.parts.index, self.parts.clock, self.config.memory_wait_seconds)

    @asynccontextmanager
    async def _writing(self, message: Message, fence: Fence | None) -> AsyncGenerator[Writing]:
        """Write a part of the turn behind `fence`, or behind a new one where it is None."""
        opened = fence or await self.parts.fences.observe(message.scope)
        async with opened.writing() as writing:
            yield writing

    async def _settle_hits(self, turn: Turn) -> None:
        """Blank the texts in the turn's hits that were deleted since it recalled them.

        The turn is stored by now: a failure is logged, and costs no reply.
        """
        try:
            await RecordedHits(self.parts.store).settle(turn)
        except StoreUnavailable:
            logger.warning("recalled texts were not checked", extra={"action": "hits_not_checked"})

    async def _remove(self, message: Message) -> None:
        await self.parts.store.conversations.remove(user_id=message.user_id, turn_ids=[message.turn_id])

    def _answer(self, message: Message, reply: str, name: str | None) -> Message:
        return replace(
            message,
            role="assistant",
            content=reply,
            created_at=max(self.now(), message.created_at),
            name=name,
            metadata={},
            position=message.position + 1,
        )


def _say(text: str, action: str, message: Message, **counts: int | str) -> None:
    """Log what was done with a turn: ids and counts, no text."""
    ids = {"user_id": message.user_id, "thread_id": message.thread_id, "turn_id": message.turn_id}
    logger.debug(text, extra={"action": action, **ids, **counts})


def check_same_turn(message: Message, *, thread_id: str, content: str, agent_id: str | None = None) -> None:
    """Check that a stored message has this thread and content, because a turn_id belongs to one message.

    `agent_id`: and this agent's label, because the caller sees nothing else.

    Raises:
        TurnConflict: it has another.
    """
    if message.thread_id != thread_id or message.content != content or agent_id not in (None, message.agent_id):
        raise TurnConflict(turn_id=message.turn_id)
