"""The extractor port: a user's message and what is known in, proposals out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memory.chat_model import Usage
from memory.decision import Proposal, Refused
from memory.fact import Fact


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """What an extractor sees. `known` is shown under the numbers 1, 2, 3, …; the reply is context only."""

    message: str
    reply: str
    known: Sequence[Fact]
    now: datetime


@dataclass(frozen=True, slots=True)
class Extraction:
    """What it proposes, what could not even be read as a proposal, and which model said so."""

    proposals: Sequence[Proposal]
    model: str
    refused: Sequence[Refused] = ()
    usage: Usage = field(default_factory=Usage)


class Extractor(Protocol):
    """Proposes decisions about facts.

    Raises ModelTimeout or ModelUnavailable where the model fails, UnreadableAnswer where its answer cannot be read.
    """

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """One call to the model (a second one, in JSON mode, where it ignores the function)."""
        ...
