"""Wraps models and steps, so that an observer sees each of their calls."""

from collections.abc import AsyncIterator, Sequence

from typing_extensions import override

from recollect.memory.ports.chat_model import ChatReply, ChatRequest, ForwardingChat
from recollect.memory.ports.embedder import Embedder, ForwardingEmbedder
from recollect.memory.ports.observing import Observer
from recollect.memory.updates.step_work import Deferred, Save, StepWork
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update

OTHER_MODEL = "other"
"""Label of all models that callers name: their names are text of users, and must not become labels of metrics."""


@frozen
class ObservedChat(ForwardingChat):
    """Passes every call on to `chat`, shows it to the observer, and counts its tokens. Pings go past the observer."""

    observer: Observer
    provider: str
    """The provider's name for the observer; see `told_name`."""
    label: str | None = None
    """The model's name for the observer; None stands for its own name."""

    @override
    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask the model."""
        with self.observer.model_call("chat", self._label(request), self.provider) as call:
            reply = await self.chat.complete(request)
            call.used(reply.usage)
        return reply

    @override
    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """Ask the model; the call lasts as long as its stream is read."""
        with self.observer.model_call("chat", self._label(request), self.provider) as call:
            async for piece in self.chat.stream(request):
                if isinstance(piece, ChatReply):
                    call.used(piece.usage)
                yield piece

    def _label(self, request: ChatRequest) -> str:
        """Return the configured model's label, or `OTHER_MODEL` for a model that the caller named."""
        return (self.label or self.chat.name) if request.model in {None, self.chat.name} else OTHER_MODEL


class ObservedEmbedder(ForwardingEmbedder):
    """Passes every call on to `embedder`, and shows it to the observer; pings go past the observer."""

    def __init__(self, embedder: Embedder, observer: Observer, provider: str) -> None:
        super().__init__(embedder)
        self.observer = observer
        self.provider = provider

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Embed a query."""
        with self.observer.model_call("embeddings", self.model, self.provider):
            return await super().embed_query(text)

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed texts that are to be found."""
        with self.observer.model_call("embeddings", self.model, self.provider):
            return await super().embed_documents(texts)


@frozen
class ObservedStep(StepWork):
    """Passes every call on to `work`, a kind of step of updates, and shows its runs to the observer."""

    name: str
    work: StepWork
    observer: Observer

    @override
    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Run the step."""
        with self.observer.step(self.name, turn):
            return await self.work.run(turn, update, save)

    @override
    async def deferred(self, turns: Sequence[tuple[Turn, Update]]) -> Deferred:
        """Return which of the turns the wrapped step defers."""
        return await self.work.deferred(turns)

    @override
    async def take_back(self, turn: Turn) -> None:
        """Let the wrapped step take back what it did for `turn`."""
        await self.work.take_back(turn)
