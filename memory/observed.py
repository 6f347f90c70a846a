"""What stands in front of models and steps, so that an observer hears of their work."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory.chat_model import ChatModel, ChatReply, ChatRequest
from memory.embedder import Embedder
from memory.observing import Observer
from memory.turn import Turn
from memory.update import Update
from memory.user_work import Resting, Save, StepWork


@dataclass(frozen=True, slots=True)
class ObservedChat:
    """A chat model whose calls are watched, and their tokens counted."""

    chat: ChatModel
    observer: Observer

    @property
    def name(self) -> str:
        """The model's own."""
        return self.chat.name

    @property
    def calls_tools(self) -> bool:
        """The model's own."""
        return self.chat.calls_tools

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask the model."""
        with self.observer.model_call("chat", request.model or self.chat.name):
            reply = await self.chat.complete(request)
        self.observer.tokens(reply.usage)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """Ask the model; the call lasts as long as its stream is read."""
        with self.observer.model_call("chat", request.model or self.chat.name):
            async for piece in self.chat.stream(request):
                if isinstance(piece, ChatReply):
                    self.observer.tokens(piece.usage)
                yield piece

    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        """The model's own."""
        return await self.chat.models(api_key=api_key)

    async def ping(self) -> None:
        """Ask the model, unwatched: no tokens are spent."""
        await self.chat.ping()


@dataclass(frozen=True, slots=True)
class ObservedEmbedder:
    """An embedder whose calls are watched."""

    embedder: Embedder
    observer: Observer

    @property
    def model(self) -> str:
        """The embedder's own."""
        return self.embedder.model

    @property
    def knows_meaning(self) -> bool:
        """The embedder's own."""
        return self.embedder.knows_meaning

    async def dimension(self) -> int:
        """The embedder's own."""
        return await self.embedder.dimension()

    async def embed_query(self, text: str) -> Sequence[float]:
        """Ask the embedder."""
        with self.observer.model_call("embed", self.embedder.model):
            return await self.embedder.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Ask the embedder."""
        with self.observer.model_call("embed", self.embedder.model):
            return await self.embedder.embed_documents(texts)

    async def ping(self) -> None:
        """Ask the embedder, unwatched."""
        await self.embedder.ping()


@dataclass(frozen=True, slots=True)
class ObservedStep:
    """A kind of step of updates whose runs are watched."""

    name: str
    work: StepWork
    observer: Observer

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Run the step."""
        with self.observer.step(self.name, turn):
            return await self.work.run(turn, update, save)

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        """Ask the step."""
        return await self.work.resting(turns)

    async def take_back(self, turn: Turn) -> None:
        """Tell the step."""
        await self.work.take_back(turn)
