"""The observer port: how long stages take, which models and stores are called, how turns end.

An observer receives names, ids of turns and numbers, never anybody's text. Without one this costs next to nothing: each
stage enters an empty context manager, and no store is wrapped.
"""

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Literal, Protocol

from typing_extensions import override

from recollect.memory.ports.chat_model import Usage
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.turn import Turn

Watched = AbstractContextManager[object]
"""A context manager around the observed work: it sees when that begins and ends, and whether it raised."""
ModelOperation = Literal["chat", "embeddings"]
"""What a model is asked for, by the name that OpenTelemetry's GenAI conventions give it."""
MemoryOperation = Literal["search_memory", "upsert_memory"]
"""What is done with the memory, by the name that the same conventions give it."""


class ModelCall(Protocol):
    """The observed call of a model: a context manager that is told what the call took."""

    @abstractmethod
    def __enter__(self) -> "ModelCall":
        """Begin, and return this call."""
        ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> bool | None:
        """End."""
        ...

    @abstractmethod
    def used(self, usage: Usage) -> None:
        """Record the tokens that the provider counted, before the call ends."""
        ...


class Observer(Protocol):
    """Learns what is done, and how long it takes. No method may raise, or wait."""

    @abstractmethod
    def turn(self, user_id: str, turn_id: str) -> Watched:
        """Observe a turn from its request to its reply."""
        ...

    @abstractmethod
    def turn_ended(self, code: str | None) -> None:
        """Record that the turn of this task has its reply (`code` None), or failed with an error of this code."""
        ...

    @abstractmethod
    def stage(self, name: str) -> Watched:
        """Observe a node of the turn's graph."""
        ...

    @abstractmethod
    def step(self, name: str, turn: Turn) -> Watched:
        """Observe a step of a turn's update, which runs in the background after the turn."""
        ...

    @abstractmethod
    def memory_call(self, operation: MemoryOperation) -> Watched:
        """Observe an operation on the memory, whichever door asks for it."""
        ...

    @abstractmethod
    def model_call(self, operation: ModelOperation, model: str, provider: str) -> ModelCall:
        """Observe a call of a model; `provider` has the name that the GenAI conventions give it."""
        ...

    @abstractmethod
    def trace_id(self) -> str | None:
        """Return the id of the trace that this task's work belongs to (32 hexadecimal digits), or None without one."""
        ...

    @abstractmethod
    def store(self, store: Store) -> Store:
        """Return what to use in place of `store`: itself, or a wrapper that observes its calls."""
        ...

    @abstractmethod
    def index(self, index: VectorIndex) -> VectorIndex:
        """Return what to use in place of `index`, likewise."""
        ...


UNWATCHED: Watched = nullcontext()


class UnwatchedCall(ModelCall):
    """A call that nobody observes."""

    @override
    def __enter__(self) -> "UnwatchedCall":
        """Return this call."""
        return self

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        """Do nothing."""

    @override
    def used(self, usage: Usage) -> None:
        """Do nothing."""


UNWATCHED_CALL = UnwatchedCall()


class Unobserved(Observer):
    """An observer that does nothing."""

    @override
    def turn(self, user_id: str, turn_id: str) -> Watched:
        """Do nothing."""
        return UNWATCHED

    @override
    def turn_ended(self, code: str | None) -> None:
        """Do nothing."""

    @override
    def stage(self, name: str) -> Watched:
        """Do nothing."""
        return UNWATCHED

    @override
    def step(self, name: str, turn: Turn) -> Watched:
        """Do nothing."""
        return UNWATCHED

    @override
    def memory_call(self, operation: MemoryOperation) -> Watched:
        """Do nothing."""
        return UNWATCHED

    @override
    def model_call(self, operation: ModelOperation, model: str, provider: str) -> ModelCall:
        """Do nothing."""
        return UNWATCHED_CALL

    @override
    def trace_id(self) -> str | None:
        """Return None: there are no traces."""
        return None

    @override
    def store(self, store: Store) -> Store:
        """Return the store itself."""
        return store

    @override
    def index(self, index: VectorIndex) -> VectorIndex:
        """Return the index itself."""
        return index


UNOBSERVED = Unobserved()
