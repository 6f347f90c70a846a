"""The extractor port: a user's message and what is known in, proposals out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memory.chat_model import Usage
from memory.decision import Proposal, Refused
from memory.fact import Fact
from memory.vector_index import Entry


@dataclass(frozen=True, slots=True)
class Said:
    """One turn's texts: what the user wrote, and the reply, which is context only."""

    message: str
    reply: str


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """What an extractor sees: the turns to learn from (one, or several of a thread, oldest first) and what is known.

    `known` is shown under the numbers 1, 2, 3, …, `passages` (of documents) without one: nothing can change them.
    """

    turns: Sequence[Said]
    known: Sequence[Fact]
    now: datetime
    passages: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """What it proposes, what could not even be read as a proposal, and which of the configured models said so."""

    proposals: Sequence[Proposal]
    model: str
    refused: Sequence[Refused] = ()
    usage: Usage = field(default_factory=Usage)


class Extractor(Protocol):
    """Proposes decisions about facts.

    Raises ModelTimeout or ModelUnavailable where every model fails, UnreadableAnswer where the answer cannot be read.
    """

    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        """One call to the model, and a second one where its answer was no function call, or malformed.

        `model` names another one than those configured; InvalidRequest where there is no such thing to choose.
        """
        ...
