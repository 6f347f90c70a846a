"""The extractor port: a user's message and the known facts in, proposals out."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Protocol

from recollect.memory.ports.chat_model import Usage
from recollect.memory.ports.vector_index import Entry
from recollect.memory.values.decision import Proposal, RefusedProposal
from recollect.memory.values.fact import Fact
from recollect.memory.values.frozen import frozen


@frozen
class Said:
    """The texts of one turn: the user's message, and the reply, which is only context.

    `at` is when the user said it (UTC); relative dates are resolved from it. None stands for the request's `now`.
    """

    message: str
    reply: str
    at: datetime | None = None


@frozen
class ExtractionRequest:
    """The input of an extractor: the turns to learn from (one, or several of a thread, oldest first) and what is known.

    The model sees the facts of `known` under the numbers 1, 2, 3, …; `passages` (of documents) have no number, because
    no proposal may change them.
    """

    turns: Sequence[Said]
    known: Sequence[Fact]
    now: datetime
    passages: Sequence[Entry] = ()


@frozen
class Extraction:
    """The result: `proposals`, what could not be parsed as one (`refused`), and the configured model that answered."""

    proposals: Sequence[Proposal]
    model: str
    refused: Sequence[RefusedProposal] = ()
    usage: Usage = field(default_factory=Usage)


class Extractor(Protocol):
    """Proposes decisions about facts.

    Raises:
        ModelTimeout, ModelUnavailable: every model failed.
        UnreadableAnswer: the answer cannot be parsed.
    """

    @abstractmethod
    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        """Return proposals for `request.turns`: by one call to the model, by two where the first answer is malformed.

        `model` chooses another model than the configured ones.

        Raises:
            InvalidRequest: this extractor offers no such choice.
        """
        ...

    @abstractmethod
    async def may_ask(self, model: str) -> bool:
        """Tell whether `model` is configured, or the provider lists it.

        Raises:
            ModelUnavailable: it is not configured, and the provider cannot be asked.
        """
        ...
