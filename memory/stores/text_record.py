"""A record of a whole store: one value, kept as text and replaced where it is still the one that was seen."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from typing_extensions import override

from recollect.memory.ports.embedder import EmbedderChoice, EmbedderChoices
from recollect.memory.ports.filtering.filter_terms import Filling, FilterTerms
from recollect.memory.values.frozen import frozen


class TextRecord(Protocol):
    """One text in a store."""

    @abstractmethod
    async def read(self) -> str | None:
        """Return its content, or None if it was never written."""
        ...

    @abstractmethod
    async def replace(self, content: str, *, seen: str | None) -> bool:
        """Write `content` in place of `seen` (None: nothing yet); return False where something else stands there."""
        ...


class _Textual(Protocol):
    def as_text(self) -> str: ...


Value = TypeVar("Value", bound=_Textual)


@frozen
class ValueRecord(Generic[Value]):
    """A record of one value, which `of_text` reads as the value's own `as_text` wrote it."""

    record: TextRecord
    of_text: Callable[[str], Value]

    async def read(self) -> Value | None:
        """Return the value, or None if none was written."""
        content = await self.record.read()
        return None if content is None else self.of_text(content)

    async def replace(self, value: Value, *, seen: Value | None) -> bool:
        """Write `value` in place of `seen` (None: nothing yet); return False where something else stands there."""
        return await self.record.replace(value.as_text(), seen=None if seen is None else seen.as_text())


class RecordedChoices(EmbedderChoices):
    """Implements EmbedderChoices over a record of the store."""

    def __init__(self, record: TextRecord) -> None:
        self._record = ValueRecord(record, EmbedderChoice.of_text)

    @override
    async def read(self) -> EmbedderChoice | None:
        return await self._record.read()

    @override
    async def replace(self, choice: EmbedderChoice, *, seen: EmbedderChoice | None) -> bool:
        return await self._record.replace(choice, seen=seen)


class RecordedTerms(FilterTerms):
    """Implements the record of FilterTerms over one of the store; how terms are kept is each store's own."""

    def __init__(self, record: TextRecord) -> None:
        self._filling = ValueRecord(record, Filling.of_text)

    @override
    async def filling(self) -> Filling | None:
        return await self._filling.read()

    @override
    async def record(self, filling: Filling, *, seen: Filling | None) -> bool:
        return await self._filling.replace(filling, seen=seen)
