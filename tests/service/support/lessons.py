"""Scripts the model's extractions by message, because updates run in the background in any order."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fakes.openai_answers import Answer, Body, array_property, call, extraction_tool
from tests.fakes.openai_server import FakeOpenAI

Decisions = Sequence[Mapping[str, Any]]


def add(value: str, *, key: str | None, evidence: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a decision to add a fact; the evidence is the value itself unless another is given."""
    statement = f"The user's {key or 'note'} is {value}."
    decision = {"decision": "add", "key": key, "value": value, "statement": statement}
    return {**decision, "evidence": value if evidence is None else evidence, **more}


def teach(model: FakeOpenAI, lessons: Mapping[str, Decisions]) -> None:
    """Answer the extraction of each of these messages with its decisions, and any other with none."""

    def answer(body: Body) -> Answer | None:
        tool = extraction_tool(body)
        if tool is None:
            return None
        known = [decisions for message, decisions in lessons.items() if _asks_about(body, message)]
        return call(tool["name"], **{array_property(tool): known[0] if known else []})

    model.on_chat = answer


def extractions_of(model: FakeOpenAI, message: str) -> list[Body]:
    """Return the extraction calls for this message."""
    return [body for body in model.extractions if _asks_about(body, message)]


def chats_of(model: FakeOpenAI, message: str) -> list[Body]:
    """Return the chat calls of the turns with this message, tool rounds included."""
    return [chat for chat in model.chats if _asked(chat) == message]


def embeddings_of(model: FakeOpenAI, text: str) -> list[list[str]]:
    """Return the inputs of the embedding calls that hold this text: alone to search, with the reply to index."""
    inputs = [[body["input"]] if isinstance(body["input"], str) else body["input"] for body in model.embeddings]
    return [texts for texts in inputs if text in texts]


def _asks_about(body: Body, message: str) -> bool:
    return str(body["messages"][-1]["content"]).endswith(f"User's message: {json.dumps(message, ensure_ascii=False)}")


def _asked(chat: Body) -> str:
    """Return the message that a chat call answers: the user's last one."""
    return [item["content"] for item in chat["messages"] if item["role"] == "user"][-1]
