"""The fences of the users of an import, opened when the first of their lines is stored.

Who is erased while an import runs stays erased: the rest of their lines is refused.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from memory.errors import UserErased
from memory.fences import Fence, Fences, Writing
from memory.import_batch import FailedLine, Stored
from memory.scope import Scope

ERASED = "The user, or the thread, was erased while this was imported."


@dataclass
class ImportFences:
    """Stores one user's things inside of their fence."""

    fences: Fences
    _opened: dict[str, Fence] = field(init=False, default_factory=dict[str, Fence])

    async def store(self, user_id: str, numbers: Sequence[int], work: Callable[[Writing], Awaitable[Stored]]) -> Stored:
        """What came of the work; where the user was erased meanwhile, nothing of it stays and these lines fail."""
        try:
            fence = self._opened.get(user_id) or await self.fences.open(Scope(user_id))
            self._opened[user_id] = fence
            async with fence.writing() as writing:
                return await work(writing)
        except UserErased:
            return Stored(failed=[FailedLine(number, ERASED) for number in numbers])
