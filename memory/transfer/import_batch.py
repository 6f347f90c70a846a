"""Stores a batch of imported turns of one user, embeds and indexes them together, then settles their index steps.

The order survives a kill at any point: a turn is stored together with its pending index step, which the updater runs if
the import does not; ids derive from the message, so that a repeat of the lines stores nothing twice.
"""

import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import uuid4

from recollect.memory.background.bulk import Bulk
from recollect.memory.erasure.fences import Writing
from recollect.memory.index.indexing import PRECEDING, make_points
from recollect.memory.language.trivial import is_trivial
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex, episode
from recollect.memory.transfer.import_line import ImportMessage
from recollect.memory.transfer.import_pairs import Numbered, Pair
from recollect.memory.updates.work_claim import LEASE
from recollect.memory.values.errors import RecollectError, is_outage
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import UNFINISHED_RESULT, Message, Role, Turn
from recollect.memory.values.update import Step, Update

logger = logging.getLogger(__name__)

MOST_TURNS = 128
OTHER_CONTENT = "message_id belongs to a message with other content."
DELETED = "It was deleted while it was imported; import it again."
_RESULT = {**UNFINISHED_RESULT, "model": "import"}
_DONE = Step("done", tries=1, attempts=1)


class FailedLine(NamedTuple):
    """Holds the number of a line that was not taken, and the sentence that says why."""

    line: int
    error: str


@dataclass(slots=True)
class Stored:
    """Counts the messages of a batch that were stored or known already, and lists the lines that failed."""

    imported: int = 0
    known: int = 0
    failed: list[FailedLine] = field(default_factory=list[FailedLine])


@dataclass
class TurnImport:
    """Stores batches. An index or embedder that is down is no error: the updater makes those points later.

    `owing` are the users whose turns have pending steps for the updater.
    """

    store: Store
    index: VectorIndex
    embedder: Embedder
    clock: Clock
    bulk: Bulk
    learn: bool
    owing: set[str] = field(init=False, default_factory=set[str])
    _owner: str = field(init=False, default_factory=lambda: f"import-{uuid4().hex}")
    _is_down: bool = field(init=False, default=False)

    async def write(self, user_id: str, pairs: Sequence[Pair], writing: Writing) -> Stored:
        """Store those of these pairs (at most 128) of a user that are new.

        Raises:
            StoreUnavailable: the store cannot be reached; a repeat of the pairs completes the batch.
        """
        outcome = Stored()
        pairs = await self._new(user_id, pairs, outcome)
        if pairs:
            async with self.claimed(user_id):
                await self._store(user_id, pairs, outcome, writing)
        logger.debug(
            "imported turns stored",
            extra={"action": "import_stored", "user_id": user_id, "turns": len(pairs)}
            | {"imported": outcome.imported, "known": outcome.known, "failed": len(outcome.failed)},
        )
        return outcome

    def undo_on_erased(self, turns: Sequence[Turn], writing: Writing) -> None:
        """Register with `writing` how to undo these turns, which are about to be stored, and their points."""
        # Undone last to first: the turns go before the points, so that nobody makes the points again from the turns.
        user_id, turn_ids = turns[0].message.user_id, [turn.message.turn_id for turn in turns]
        ids = [message.id for turn in turns for message in turn.spoken]
        writing.on_erased(lambda: self.index.remove(user_id=user_id, ids=ids))
        writing.on_erased(lambda: self.store.conversations.remove(user_id=user_id, turn_ids=turn_ids))

    async def _store(self, user_id: str, pairs: Sequence[Pair], outcome: Stored, writing: Writing) -> None:
        """Store, index and settle the turns of these pairs; turns that were deleted meanwhile fail."""
        turns = [_turn(pair, learn=self.learn) for pair in pairs]
        self.undo_on_erased(turns, writing)
        await self.store.imports.insert(turns)
        stored = await self._stored(user_id, pairs)
        for line in (line for pair in pairs for line in pair.lines):
            if line.message.imported_id in stored:
                outcome.imported += 1
            else:
                outcome.failed.append(FailedLine(line.number, DELETED))
        is_indexed = await self.index_messages(list(stored.values()))
        if is_indexed:
            await self._settle(user_id, turns, stored)
        if self.learn or not is_indexed:
            self.owing.add(user_id)

    @asynccontextmanager
    async def claimed(self, user_id: str) -> AsyncGenerator[None]:
        """Hold the user's claim, so that the updater does not make the same points; do without where it has the claim.

        Without the claim both make the points, which costs time and harms nothing: equal points have equal ids.
        """
        updates = self.store.updates
        claim = await updates.claim(user_id, owner=self._owner, lease=LEASE, now=self.clock())
        try:
            yield
        finally:
            if claim is not None:
                await updates.release(claim)

    async def _new(self, user_id: str, pairs: Sequence[Pair], outcome: Stored) -> list[Pair]:
        """Return the pairs without messages whose id is stored, or came before in this batch; count those."""
        known = await self._stored(user_id, pairs)
        contents = {imported_id: message.content for imported_id, message in known.items()}

        def is_new(line: Numbered) -> bool:
            content = contents.setdefault(line.message.imported_id, line.message.content)
            if line.message.imported_id not in seen:
                seen.add(line.message.imported_id)
                return True
            if content == line.message.content:
                outcome.known += 1
            else:
                outcome.failed.append(FailedLine(line.number, OTHER_CONTENT))
            return False

        seen = set(known)
        left = [Pair(*(line if line is not None and is_new(line) else None for line in pair)) for pair in pairs]
        return [pair for pair in left if pair.lines]

    async def _stored(self, user_id: str, pairs: Sequence[Pair]) -> dict[str, Message]:
        """Return the stored messages of these pairs, by their imported ids."""
        ids = {line.message.imported_id for pair in pairs for line in pair.lines}
        return await self.store.imports.known(user_id, sorted(ids))

    async def index_messages(self, messages: Sequence[Message]) -> bool:
        """Store the points of `messages`, and tell whether that worked.

        After an outage this import leaves all points to the updater: each further try would wait for the timeout.
        """
        if self._is_down:
            return False
        ordered = sorted(messages, key=lambda message: (message.thread_id, message.position))
        preceding = await self._preceding(ordered)
        entries = [episode(message) for message in ordered]
        try:
            await self.index.upsert(await make_points(entries, self.embedder, preceding=preceding, bulk=self.bulk))
        except (RecollectError, ValueError) as error:
            self._is_down = is_outage(error)
            logger.warning(
                "imported turns wait for the index",
                extra={"action": "import_index_waits", "error": type(error).__name__, "messages": len(messages)},
            )
            return False
        return True

    async def _preceding(self, ordered: Sequence[Message]) -> Mapping[str, Sequence[str]]:
        """Return the texts before each message (at most `PRECEDING`, nearest first), by the message's id.

        A turn's further messages have none, as in `preceding_texts`.
        Those before the batch come from the store, in one query for the first messages of all threads.
        """
        own = [message for message in ordered if not message.place]
        firsts = {message.thread_id: message for message in reversed(own)}
        found = await self.store.timeline.preceding(list(firsts.values()), count=PRECEDING)
        texts = {thread_id: found.get(message.id, []) for thread_id, message in firsts.items()}
        before: dict[str, Sequence[str]] = {}
        for message in own:
            before[message.id] = texts[message.thread_id]
            texts[message.thread_id] = [message.content, *before[message.id]][:PRECEDING]
        return before

    async def _settle(self, user_id: str, turns: Sequence[Turn], stored: Mapping[str, Message]) -> None:
        """Settle the index steps of these turns; remove the points of messages that were deleted meanwhile.

        A turn is settled only if its update is still the one that was stored, so that no deleted turn comes back.
        """
        owing: dict[str, list[str]] = defaultdict(list)
        updates: dict[str, Update] = {}
        for turn in turns:
            assert turn.update is not None
            facts = turn.update.steps["facts"]
            key = f"{facts.status} {facts.reason}"
            updates[key] = turn.update
            owing[key].append(turn.message.turn_id)
        settled = 0
        for key, turn_ids in owing.items():
            owed = updates[key]
            done = replace(owed, steps={**owed.steps, "index": _DONE})
            settled += await self.store.imports.settle(user_id, turn_ids, owed=owed, done=done)
        if settled < len(turns):
            left = await self.store.imports.known(user_id, list(stored))
            gone = [message.id for imported_id, message in stored.items() if imported_id not in left]
            await self.index.remove(user_id=user_id, ids=gone)


def _turn(pair: Pair, *, learn: bool) -> Turn:
    """Return the turn of a pair, with pending steps; a missing message is an absent one."""
    first = pair.lines[0].message
    user = _message(first, "user", pair.user)
    assistant = _message(first, "assistant", pair.assistant)
    return Turn(user, assistant, _RESULT, _owed(pair, learn=learn))


def _message(first: ImportMessage, role: Role, line: Numbered | None) -> Message:
    """Return the message with this role in the turn of `first`; an absent one where `line` is None."""
    said = line.message if line is not None else first
    message = Message(said.user_id, said.thread_id, first.turn_id, role, "", said.created_at, agent_id=said.agent_id)
    if line is None:
        return replace(message, absent=True)
    return replace(message, content=said.content, name=said.name, metadata=said.metadata, imported_id=said.imported_id)


def _owed(pair: Pair, *, learn: bool) -> Update:
    """Return the turn's pending steps: the index, and the facts where the turn is to be learned from."""
    facts = Step()
    if not learn or pair.user is None:
        facts = Step("skipped", reason="imported")
    elif is_trivial(pair.user.message.content):
        facts = Step("skipped", reason="trivial")
    return Update(steps={"facts": facts, "index": Step()})
