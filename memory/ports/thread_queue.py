"""The thread queue port, part of the store: one turn of a thread at a time."""

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from recollect.memory.values.scope import Scope


class ThreadQueue(Protocol):
    """A queue for each thread: its turns run one at a time, in order of arrival, across all processes on one store."""

    @abstractmethod
    def turn(self, scope: Scope, *, wait_seconds: float) -> AbstractAsyncContextManager[None]:
        """Wait for the turns ahead, then hold the thread for one turn, until the context ends.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        ...
