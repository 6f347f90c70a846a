"""The embedder ports: text to vector, and the record of which embedder serves."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, field, replace
from typing import Any, Literal, Protocol

from typing_extensions import override

from recollect.memory.values.frozen import frozen


class Embedder(Protocol):
    """Turns texts into vectors. It distinguishes queries from documents, because some models embed them differently.

    Raises:
        ModelUnavailable: from any call, where it cannot be reached (with `outage` set as `errors.is_outage` reads it).
    """

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name, part of the collection's fingerprint."""
        ...

    @property
    @abstractmethod
    def knows_meaning(self) -> bool:
        """Tell whether texts of similar meaning get similar vectors without sharing words.

        Recall weighs its channels by it.
        """
        ...

    @property
    @abstractmethod
    def embeds_alike(self) -> bool:
        """Tell whether a text has one vector, be it searched for or found: False unless the embedder is known to.

        A query's vector is then used again where its text is indexed.
        """
        ...

    @abstractmethod
    async def dimension(self) -> int:
        """Return the length of the vectors; asks the model once where no setting or table says it."""
        ...

    @abstractmethod
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text, of Euclidean length 1 (or 0 for a text without words)."""
        ...

    @abstractmethod
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the vectors of texts to be found, in the order of `texts`, of length 1 (or 0) likewise."""
        ...

    @abstractmethod
    async def ping(self) -> None:
        """Ask whether it can serve.

        Raises:
            ModelUnavailable: it cannot.
        """
        ...


Stage = Literal["filling", "ready", "switched", "dropping"]
"""The other embedder's collection is being filled; holds everything; served until the switch; is being deleted."""


@frozen
class EmbedderSpec:
    """An embedder as settings name it: EMBEDDING_MODEL, EMBEDDING_DIMENSIONS, EMBEDDING_MODEL_PATH.

    `collection` is the name of its points' collection, where that is known; it does not count for equality.
    """

    model: str
    dimensions: int | None = None
    path: str | None = None
    collection: str | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the HTTP contract."""
        return asdict(self)


@frozen
class EmbedderChoice:
    """The embedder that serves, and the other one with its stage; both None where there is no other one."""

    serving: EmbedderSpec
    other: EmbedderSpec | None = None
    stage: Stage | None = None

    @property
    def followed(self) -> EmbedderSpec | None:
        """Return the other embedder where new writes owe a point in its collection too."""
        return None if self.stage == "dropping" else self.other

    def switched(self, stage: Stage) -> "EmbedderChoice":
        """Return the choice in which the two embedders have changed places."""
        assert self.other is not None
        return EmbedderChoice(self.other, self.serving, stage)

    def at(self, stage: Stage) -> "EmbedderChoice":
        """Return the choice with the other embedder at `stage`."""
        return replace(self, stage=stage)

    def as_text(self) -> str:
        """Return the stored text; equal choices have equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of_text(cls, text: str) -> "EmbedderChoice":
        """Return the choice that `as_text` wrote."""
        said = json.loads(text)
        other = None if said["other"] is None else EmbedderSpec(**said["other"])
        return cls(EmbedderSpec(**said["serving"]), other, said["stage"])


class EmbedderChoices(Protocol):
    """The record of the embedder that serves: one document of the whole store, or none."""

    @abstractmethod
    async def read(self) -> EmbedderChoice | None:
        """Return the record, or None."""
        ...

    @abstractmethod
    async def replace(self, choice: EmbedderChoice, *, seen: EmbedderChoice | None) -> bool:
        """Store `choice` in place of `seen` (None: no record) in one write; return whether `seen` was the record."""
        ...


async def embedder_name(embedder: Embedder) -> str:
    """Return what names the embedder whose points are searched: its model and dimension.

    Raises:
        ModelUnavailable: it does not say how long its vectors are.
    """
    return f"{embedder.model}/{await embedder.dimension()}"


class ForwardingEmbedder(Embedder):
    """Forwards each call to `embedder`, for wrappers that change only some of them.

    `model` is read at each call, as every property is: what is cached by a model's name must not keep an old one.
    """

    __slots__ = ("embedder",)

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    @property
    @override
    def model(self) -> str:
        return self.embedder.model

    @property
    @override
    def knows_meaning(self) -> bool:
        return self.embedder.knows_meaning

    @property
    @override
    def embeds_alike(self) -> bool:
        return self.embedder.embeds_alike

    @override
    async def dimension(self) -> int:
        return await self.embedder.dimension()

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        return await self.embedder.embed_query(text)

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return await self.embedder.embed_documents(texts)

    @override
    async def ping(self) -> None:
        await self.embedder.ping()
