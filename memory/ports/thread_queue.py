"""The thread queue port, part of the store: one turn of a thread at a time."""

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from recollect.memory.values.scope import Scope


@dataclass(slots=True)
class Hold:
    """A thread that is held. Its holder sets `is_answered` once the reply that was named to `turn` is stored."""

    is_answered: bool = False


class ThreadQueue(Protocol):
    """A queue for each thread: its turns run one at a time, in order of arrival, across all processes on one store."""

    @abstractmethod
    def turn(
        self, scope: Scope, *, wait_seconds: float, reply_id: str | None = None
    ) -> AbstractAsyncContextManager[Hold]:
        """Wait for the turns ahead, then hold the thread for one turn, until the context ends.

        `reply_id` names the reply with which the turn ends, and which is not stored yet: whoever waits may find there
        that the thread is free.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        ...
