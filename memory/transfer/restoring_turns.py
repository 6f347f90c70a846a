"""Stores turns of an export under the ids, at the times and with the updates that they had, and indexes them together.

A kill at any point leaves turns with a pending index step, which the updater runs; a repeat of the lines is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.memory.erasure.fences import Writing
from recollect.memory.transfer.import_batch import DELETED, FailedLine, Stored, TurnImport
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Step, Update

OTHER_TURN = "turn_id belongs to another turn of this user."


@frozen
class NumberedTurn:
    """Holds a turn and the numbers of its lines."""

    turn: Turn
    numbers: tuple[int, ...]

    @property
    def id(self) -> str:
        """Return the turn's id."""
        return self.turn.message.turn_id

    def failed(self, error: str) -> list[FailedLine]:
        """Return all lines of the turn as failed, for the reason `error`."""
        return [FailedLine(number, error) for number in self.numbers]


@dataclass
class RestoredTurns:
    """Stores batches of exported turns, with the `TurnImport` that stores imported ones."""

    turns: TurnImport

    async def write(self, user_id: str, given: Sequence[NumberedTurn], writing: Writing) -> Stored:
        """Store those of these turns (at most 128) of a user that are new; stored turns stay as they are.

        Raises:
            StoreUnavailable: the store cannot be reached; a repeat of the turns completes the batch.
        """
        outcome = Stored()
        new = await self._new(user_id, given, outcome)
        if new:
            self.turns.undo_on_erased([one.turn for one in new], writing)
            async with self.turns.claimed(user_id):
                await self._store(user_id, new, outcome)
        return outcome

    async def _new(self, user_id: str, given: Sequence[NumberedTurn], outcome: Stored) -> list[NumberedTurn]:
        """Return the turns that are not stored, or stored without their reply; count the others."""
        there = await self.turns.store.imports.stored(user_id, [one.id for one in given])
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
        """Store the turns, index the messages of those that had been indexed, and settle their updates."""
        imports = self.turns.store.imports
        by_id = {one.id: one.turn for one in new}
        await imports.insert([_owing(turn) for turn in by_id.values()])
        stored = await imports.stored(user_id, list(by_id))
        for one in new:
            if one.id in stored:
                outcome.imported += len(one.numbers)
            else:
                outcome.failed += one.failed(DELETED)
        found = {turn_id: turn for turn_id, turn in stored.items() if _is_found(by_id[turn_id].update)}
        messages = [message for turn in found.values() for message in turn.spoken]
        if messages and await self.turns.index_messages(messages):
            await self._settle(user_id, found, by_id)
        elif messages:
            self.turns.owing.add(user_id)
        if any(turn.update is not None and turn.update.status == "pending" for turn in by_id.values()):
            self.turns.owing.add(user_id)

    async def _settle(self, user_id: str, found: Mapping[str, Turn], given: Mapping[str, Turn]) -> None:
        """Give the turns their own updates; remove the points of turns that were deleted meanwhile."""
        imports = self.turns.store.imports
        owing = [_owing(given[turn_id]) for turn_id in found]
        done = [update for turn_id in found if (update := given[turn_id].update) is not None]
        if await imports.settle_each(owing, done=done) < len(owing):
            left = await imports.stored(user_id, list(found))
            gone = [message.id for turn_id, turn in found.items() if turn_id not in left for message in turn.spoken]
            await self.turns.index.remove(user_id=user_id, ids=gone)


def _owing(turn: Turn) -> Turn:
    """Return the turn with a pending index step, where its messages had been indexed."""
    if turn.update is None or not _is_found(turn.update):
        return turn
    return replace(turn, update=replace(turn.update, steps={**turn.update.steps, "index": Step()}))


def _is_found(update: Update | None) -> bool:
    """Tell whether the turn's messages had been indexed."""
    return update is not None and update.steps.get("index", Step()).status == "done"


def _is_same(stored: Turn, given: Turn) -> bool:
    """Tell whether both are one turn, by its message. The reply may be missing, or regenerated since.

    Where the message is absent, two replies must have the same content.
    """
    message, other = stored.message, given.message
    same = (message.thread_id, message.content, message.absent) == (other.thread_id, other.content, other.absent)
    if not same or not message.absent or stored.reply is None or given.reply is None:
        return same
    return stored.reply.content == given.reply.content
