"""The summariser port: the previous summary and the turns that follow it in, a new summary out."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal, Protocol

from recollect.memory.ports.chat_model import Usage
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Exchange


@frozen
class SummaryTask:
    """The input of a summary: the previous one (None: there is none) and the turns to include, oldest first.

    `tokens` is the budget of the new one (see `memory/values/tokens.py`).
    """

    old: str | None
    exchanges: Sequence[Exchange]
    tokens: int
    now: datetime


@frozen
class Summary:
    """The new summary, within its budget; "" where there was nothing to say. `model` names what wrote it."""

    text: str
    model: str
    by: Literal["model", "extract"]
    usage: Usage = field(default_factory=Usage)


class Summariser(Protocol):
    """Makes a new summary of the previous one and the turns that follow it.

    Raises:
        ModelTimeout, ModelUnavailable: every model failed.
        UnreadableAnswer: an answer is no summary.
    """

    @abstractmethod
    async def summarise(self, request: SummaryTask) -> Summary:
        """Return one summary that stands for `request.old` and `request.exchanges`."""
        ...
