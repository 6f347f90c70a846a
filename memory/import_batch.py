"""A batch of imported turns of one user: stored first, then embedded and indexed together, then recorded as done.

A kill at any point stores nothing twice and leaves nothing without its points: a turn is stored together with the index
step that it owes, its ids derive from its message, and the same lines again complete what is missing.
"""

import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import uuid4

from memory.documents import Documents
from memory.embedder import Embedder
from memory.errors import RecollectError, is_outage
from memory.fences import Writing
from memory.import_line import ImportMessage
from memory.import_pairs import Numbered, Pair
from memory.indexing import PRECEDING, make_points
from memory.times import Clock
from memory.trivial import is_trivial
from memory.turn import UNFINISHED_RESULT, Message, Role, Turn
from memory.update import Step, Update
from memory.user_work import LEASE
from memory.vector_index import VectorIndex, episode

logger = logging.getLogger(__name__)

MOST_TURNS = 128
OTHER_CONTENT = "message_id belongs to a message with other content."
DELETED = "It was deleted while it was imported; import it again."
_RESULT = {**UNFINISHED_RESULT, "model": "import"}
_DONE = Step("done", tries=1, attempts=1)


class FailedLine(NamedTuple):
    """The number of a line that was not taken, and the sentence that says why."""

    line: int
    error: str


@dataclass(slots=True)
class Stored:
    """What became of a batch's messages."""

    imported: int = 0
    known: int = 0
    failed: list[FailedLine] = field(default_factory=list[FailedLine])


@dataclass
class TurnImport:
    """Stores batches. An index or embedder that is down costs nothing: the updater makes those points later.

    `owing` are the users whose turns the updater has work with.
    """

    documents: Documents
    index: VectorIndex
    embedder: Embedder
    clock: Clock
    learn: bool
    owing: set[str] = field(init=False, default_factory=set[str])
    _owner: str = field(init=False, default_factory=lambda: f"import-{uuid4().hex}")
    _is_down: bool = field(init=False, default=False)

    async def store(self, user_id: str, pairs: Sequence[Pair], writing: Writing) -> Stored:
        """Store what is new of these (at most 128) pairs of a user.

        Raises:
            StoreUnavailable: the documents cannot be reached; the same again completes it.
        """
        outcome = Stored()
        pairs = await self._new(user_id, pairs, outcome)
        if pairs:
            async with self.claimed(user_id):
                await self._store(user_id, pairs, outcome, writing)
        return outcome

    def take_back(self, turns: Sequence[Turn], writing: Writing) -> None:
        """These turns, about to be stored, go again where their user is erased meanwhile."""
        user_id, turn_ids = turns[0].message.user_id, [turn.message.turn_id for turn in turns]
        ids = [message.id for turn in turns for message in turn.messages]
        writing.take_back(lambda: self.index.remove(user_id=user_id, ids=ids))
        writing.take_back(lambda: self.documents.conversations.remove(user_id=user_id, turn_ids=turn_ids))

    async def _store(self, user_id: str, pairs: Sequence[Pair], outcome: Stored, writing: Writing) -> None:
        turns = [_turn(pair, learn=self.learn) for pair in pairs]
        self.take_back(turns, writing)
        await self.documents.imports.insert(turns)
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
        """Keep the updater from making the same points meanwhile; where it is at work already, both do."""
        updates = self.documents.updates
        claim = await updates.claim(user_id, owner=self._owner, lease=LEASE, now=self.clock())
        try:
            yield
        finally:
            if claim is not None:
                await updates.release(claim)

    async def _new(self, user_id: str, pairs: Sequence[Pair], outcome: Stored) -> list[Pair]:
        """What is left of the pairs without what is stored, or came a moment ago, under the same id."""
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
        ids = {line.message.imported_id for pair in pairs for line in pair.lines}
        return await self.documents.imports.known(user_id, sorted(ids))

    async def index_messages(self, messages: Sequence[Message]) -> bool:
        """Make the points; False where that must wait. After an outage this import leaves all points to the updater."""
        if self._is_down:
            return False
        ordered = sorted(messages, key=lambda message: (message.thread_id, message.position))
        preceding = await self._preceding(ordered)
        entries = [episode(message) for message in ordered]
        try:
            await self.index.upsert(await make_points(entries, self.embedder, preceding=preceding))
        except (RecollectError, ValueError) as error:
            self._is_down = is_outage(error)
            logger.warning(
                "imported turns wait for the index",
                extra={"action": "import_index_waits", "error": type(error).__name__, "messages": len(messages)},
            )
            return False
        return True

    async def _preceding(self, ordered: Sequence[Message]) -> Mapping[str, Sequence[str]]:
        """What stood before each message, by its id, nearest first; the store knows what stood before the batch."""
        firsts = {message.thread_id: message for message in reversed(ordered)}
        found = await self.documents.timeline.preceding(list(firsts.values()), count=PRECEDING)
        texts = {thread_id: found.get(message.id, []) for thread_id, message in firsts.items()}
        before: dict[str, Sequence[str]] = {}
        for message in ordered:
            before[message.id] = texts[message.thread_id]
            texts[message.thread_id] = [message.content, *before[message.id]][:PRECEDING]
        return before

    async def _settle(self, user_id: str, turns: Sequence[Turn], stored: Mapping[str, Message]) -> None:
        """Record that the points are in; of what was deleted meanwhile they go again."""
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
            settled += await self.documents.imports.settle(user_id, turn_ids, owed=owed, done=done)
        if settled < len(turns):
            left = await self.documents.imports.known(user_id, list(stored))
            gone = [message.id for imported_id, message in stored.items() if imported_id not in left]
            await self.index.remove(user_id=user_id, ids=gone)


def _turn(pair: Pair, *, learn: bool) -> Turn:
    first = pair.lines[0].message
    user = _message(first, "user", pair.user)
    assistant = _message(first, "assistant", pair.assistant)
    return Turn(user, assistant, _RESULT, _owed(pair, learn=learn))


def _message(first: ImportMessage, role: Role, line: Numbered | None) -> Message:
    """The message of that role in the turn of `first`; absent where there is none."""
    said = line.message if line is not None else first
    message = Message(said.user_id, said.thread_id, first.turn_id, role, "", said.created_at)
    if line is None:
        return replace(message, absent=True)
    return replace(message, content=said.content, name=said.name, metadata=said.metadata, imported_id=said.imported_id)


def _owed(pair: Pair, *, learn: bool) -> Update:
    facts = Step()
    if not learn or pair.user is None:
        facts = Step("skipped", reason="imported")
    elif is_trivial(pair.user.message.content):
        facts = Step("skipped", reason="trivial")
    return Update(steps={"facts": facts, "index": Step()})
