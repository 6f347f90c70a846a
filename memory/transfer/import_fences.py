"""Keeps one fence for each user of an import, observed before the first of their lines is stored.

A user who is erased while an import runs stays erased: the rest of their lines is refused.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from recollect.memory.erasure.fences import Fence, Fences, Writing
from recollect.memory.transfer.import_batch import FailedLine, Stored
from recollect.memory.values.errors import UserErased
from recollect.memory.values.scope import Scope

ERASED = "The user, or the thread, was erased while this was imported."


@dataclass
class ImportFences:
    """Runs the writes of an import inside of their user's fence."""

    fences: Fences
    _opened: dict[str, Fence] = field(init=False, default_factory=dict[str, Fence])

    async def store(self, user_id: str, numbers: Sequence[int], work: Callable[[Writing], Awaitable[Stored]]) -> Stored:
        """Run `work` and return its outcome; where the user was erased, undo it and fail the lines in `numbers`."""
        try:
            # Keep the first fence for the whole import: a new one would accept lines from before the erasure.
            fence = self._opened.get(user_id) or await self.fences.observe(Scope(user_id))
            self._opened[user_id] = fence
            async with fence.writing() as writing:
                return await work(writing)
        except UserErased:
            return Stored(failed=[FailedLine(number, ERASED) for number in numbers])
