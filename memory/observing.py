"""Who watches the work: how long its stages take, which models and stores are called, how turns end.

Names, ids of turns and numbers pass here, never anybody's text. What nobody watches costs next to nothing: an observer
is asked for a context manager at each stage, and puts itself in front of a store only where it watches stores.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

from memory.chat_model import Usage
from memory.turn import Turn

Store = TypeVar("Store")
Watched = AbstractContextManager[object]
"""What is watched from its entry to its exit, and whether it raised."""


class Observer(Protocol):
    """Hears what is done, and for how long. Nothing that it does may fail, or wait."""

    def turn(self, user_id: str, turn_id: str) -> Watched:
        """A turn from its request to its reply."""
        ...

    def turn_ended(self, code: str | None) -> None:
        """The turn of this task has its reply, or failed with an error of this code."""
        ...

    def stage(self, name: str) -> Watched:
        """A node of the turn's graph."""
        ...

    def step(self, name: str, turn: Turn) -> Watched:
        """A step of a turn's update, which runs behind the turn."""
        ...

    def model_call(self, name: str, model: str) -> Watched:
        """A call of a model: `name` says what was asked for."""
        ...

    def tokens(self, usage: Usage) -> None:
        """What the provider counted for a call."""
        ...

    def store(self, name: str, store: Store) -> Store:
        """What is to be used in place of a store: itself, or something that watches its calls."""
        ...


UNWATCHED: Watched = nullcontext()


class Unobserved:
    """Nobody watches."""

    def turn(self, user_id: str, turn_id: str) -> Watched:
        """Ignore it."""
        return UNWATCHED

    def turn_ended(self, code: str | None) -> None:
        """Ignore it."""

    def stage(self, name: str) -> Watched:
        """Ignore it."""
        return UNWATCHED

    def step(self, name: str, turn: Turn) -> Watched:
        """Ignore it."""
        return UNWATCHED

    def model_call(self, name: str, model: str) -> Watched:
        """Ignore it."""
        return UNWATCHED

    def tokens(self, usage: Usage) -> None:
        """Ignore it."""

    def store(self, name: str, store: Store) -> Store:
        """The store itself."""
        return store


UNOBSERVED = Unobserved()
