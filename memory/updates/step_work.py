"""The work of one kind of update step, which the updater runs."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update

Save = Callable[[Update], Awaitable[None]]
Deferred = Mapping[str, datetime | None]
"""Turns, by id, whose step waits for other turns, with the time (UTC) at which it starts at the latest, if any."""


class StepWork(Protocol):
    """The work of one kind of step."""

    @abstractmethod
    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Run the step for a committed turn and return the update with its results (not the step's own status).

        Running it twice must have the effect of running it once. `save` durably records an intermediate state.
        """
        ...

    @abstractmethod
    async def deferred(self, turns: Sequence[tuple[Turn, Update]]) -> Deferred:
        """Return those of `turns`, all with this step pending, that should wait for other turns."""
        ...

    @abstractmethod
    async def take_back(self, turn: Turn) -> None:
        """Remove what the step may have written for a turn that was deleted while the step ran."""
        ...
