"""Turns of an export: stored under the ids, at the times and with the updates that they had, then indexed together.

A kill at any point leaves turns whose index step is pending, which the updater does; the same lines again are known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory.fences import Writing
from memory.import_batch import DELETED, FailedLine, Stored, TurnImport
from memory.turn import Turn
from memory.update import Step, Update

OTHER_TURN = "turn_id belongs to another turn of this user."


@dataclass(frozen=True, slots=True)
class NumberedTurn:
    """A turn and the numbers of its lines."""

    turn: Turn
    numbers: tuple[int, ...]

    @property
    def id(self) -> str:
        """The turn's."""
        return self.turn.message.turn_id

    def failed(self, error: str) -> list[FailedLine]:
        """All of its lines."""
        return [FailedLine(number, error) for number in self.numbers]


@dataclass
class RestoredTurns:
    """Stores batches of exported turns, with what stores batches of imported ones."""

    turns: TurnImport

    async def store(self, user_id: str, given: Sequence[NumberedTurn], writing: Writing) -> Stored:
        """Store what is new of these (at most 128) turns of a user; what is there stays as it is.

        Raises:
            StoreUnavailable: the documents cannot be reached; the same again completes it.
        """
        outcome = Stored()
        new = await self._new(user_id, given, outcome)
        if new:
            self.turns.take_back([one.turn for one in new], writing)
            async with self.turns.claimed(user_id):
                await self._store(user_id, new, outcome)
        return outcome

    async def _new(self, user_id: str, given: Sequence[NumberedTurn], outcome: Stored) -> list[NumberedTurn]:
        """What is not there, or there without its reply."""
        there = await self.turns.documents.imports.stored(user_id, [one.id for one in given])
        new: list[NumberedTurn] = []
        for one in given:
            stored = there.get(one.id)
            if stored is not None and not _is_same(stored, one.turn):
                outcome.failed += one.failed(OTHER_TURN)
            elif stored is None or (stored.reply is None and one.turn.reply is not None):
                new.append(one)
                there[one.id] = one.turn
            else:
                outcome.known += len(one.numbers)
        return new

    async def _store(self, user_id: str, new: Sequence[NumberedTurn], outcome: Stored) -> None:
        imports = self.turns.documents.imports
        by_id = {one.id: one.turn for one in new}
        await imports.insert([_owing(turn) for turn in by_id.values()])
        stored = await imports.stored(user_id, list(by_id))
        for one in new:
            if one.id in stored:
                outcome.imported += len(one.numbers)
            else:
                outcome.failed += one.failed(DELETED)
        found = {turn_id: turn for turn_id, turn in stored.items() if _is_found(by_id[turn_id].update)}
        messages = [message for turn in found.values() for message in turn.messages]
        if messages and await self.turns.index_messages(messages):
            await self._settle(user_id, found, by_id)
        elif messages:
            self.turns.owing.add(user_id)
        if any(turn.update is not None and turn.update.status == "pending" for turn in by_id.values()):
            self.turns.owing.add(user_id)

    async def _settle(self, user_id: str, found: Mapping[str, Turn], given: Mapping[str, Turn]) -> None:
        """Record that the points are in; of what was deleted meanwhile they go again."""
        imports = self.turns.documents.imports
        owing = [_owing(given[turn_id]) for turn_id in found]
        done = [update for turn_id in found if (update := given[turn_id].update) is not None]
        if await imports.settle_each(owing, done=done) < len(owing):
            left = await imports.stored(user_id, list(found))
            gone = [message.id for turn_id, turn in found.items() if turn_id not in left for message in turn.messages]
            await self.turns.index.remove(user_id=user_id, ids=gone)


def _owing(turn: Turn) -> Turn:
    """The turn, its messages yet to be indexed where they were."""
    if turn.update is None or not _is_found(turn.update):
        return turn
    return replace(turn, update=replace(turn.update, steps={**turn.update.steps, "index": Step()}))


def _is_found(update: Update | None) -> bool:
    """Whether search finds the turn's messages."""
    return update is not None and update.steps.get("index", Step()).status == "done"


def _is_same(stored: Turn, given: Turn) -> bool:
    """Whether both are one turn: its message tells. The reply may be yet to come, or may have been made anew since."""
    message, other = stored.message, given.message
    same = (message.thread_id, message.content, message.absent) == (other.thread_id, other.content, other.absent)
    if not same or not message.absent or stored.reply is None or given.reply is None:
        return same
    return stored.reply.content == given.reply.content
