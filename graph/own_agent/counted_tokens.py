"""Counts the tokens of all models that a graph asks, streaming or not, and of messages that it made itself."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import override


class CountedTokens(BaseCallbackHandler):
    """The tokens of each message by its id: a model's message may also come as one that the graph has written."""

    run_inline = True

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}

    def usage(self) -> dict[str, int]:
        """Return the sums."""
        return {
            "input_tokens": sum(read for read, _ in self._counts.values()),
            "output_tokens": sum(written for _, written in self._counts.values()),
        }

    def add(self, message: BaseMessage) -> None:
        """Count a whole message of a model; pieces are counted where they end."""
        if isinstance(message, AIMessage) and not isinstance(message, AIMessageChunk):
            self._count(message)

    @override
    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count what a model has answered."""
        for generations in response.generations:
            for generation in generations:
                if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
                    self._count(generation.message)

    def _count(self, message: AIMessage) -> None:
        counted = message.usage_metadata
        if counted is not None:
            self._counts[message.id or ""] = counted["input_tokens"], counted["output_tokens"]


_current: ContextVar[CountedTokens | None] = ContextVar("counted_tokens", default=None)
# Every run of a model in the block finds the counter by this, however deep in the graph, and keeps its own callbacks.
register_configure_hook(_current, inheritable=True)


@contextmanager
def counting() -> Generator[CountedTokens]:
    """Count the tokens of the models that are asked in this block."""
    counted = CountedTokens()
    token = _current.set(counted)
    try:
        yield counted
    finally:
        _current.reset(token)
