"""The offline chat model: answers from what was recalled and from the window, by plain rules."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from memory.chat_model import ChatMessage, ChatReply, ChatRequest, Usage
from memory.providers.offline.acknowledgement import acknowledge, small_talk
from memory.providers.offline.clauses import read_clauses
from memory.providers.offline.extractor import NAME
from memory.providers.offline.questions import Known, answer
from memory.providers.offline.rules import overlaid, read

CHARACTERS_PER_TOKEN = 4
_MOST_QUESTIONS = 3
_MOST_MESSAGES = 100
_OWN_OPENINGS = (
    "Nice to meet you,",
    "Noted: ",
    "Corrected: ",
    "I know: ",
    "I remember: ",
    "You told me: ",
    "You like ",
    "You live ",
    "You work ",
    "Your ",
    "Here is what I know about you",
    "I don't know ",
    "Understood.",
    "Yes, you",
    "No, you",
)


class OfflineChat:
    """Implements `ChatModel` without a model: deterministic, in English, and it says "offline" as its name."""

    @property
    def name(self) -> str:
        """Always "offline"."""
        return NAME

    @property
    def calls_tools(self) -> bool:
        """It calls none."""
        return False

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer to the last user message. Usage counts a token for every four characters begun."""
        text = _reply(request)
        read_characters = sum(len(_text(message)) for message in request.messages)
        return ChatReply(text, NAME, usage=Usage(_tokens(read_characters), _tokens(len(text))))

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """The same answer word by word, then the whole reply."""
        reply = await self.complete(request)
        for place, word in enumerate(reply.text.split(" ")):
            yield f" {word}" if place else word
        yield reply

    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        """Itself alone."""
        return [NAME]

    async def ping(self) -> None:
        """It is always there."""


def _reply(request: ChatRequest) -> str:
    said = [_text(message) for message in request.messages if message.get("role") == "user"][-_MOST_MESSAGES:]
    *earlier, last = said or [""]
    facts: Mapping[str, str] = request.memory.facts
    for text in earlier:
        facts = overlaid(facts, read(text, facts))
    findings = read(last, facts)
    acknowledged = acknowledge(findings, facts)
    known = Known(
        facts=overlaid(facts, findings),
        notes=request.memory.notes,
        texts=[*_of_the_user(request.memory.recalled, request.messages), *earlier],
        passages=request.memory.passages,
    )
    asked = read_clauses(last).asked[:_MOST_QUESTIONS]
    answers = dict.fromkeys(answer(question, known) for question in asked)
    return " ".join(part for part in (acknowledged, *answers) if part) or small_talk(last, known.facts.get("name"))


def _of_the_user(recalled: Sequence[str], messages: Sequence[ChatMessage]) -> list[str]:
    """What was recalled, least fitting first, without what the assistant said (recalled texts name no speaker)."""
    answered = {_text(message) for message in messages if message.get("role") == "assistant"}
    return [text for text in reversed(recalled) if text not in answered and not text.startswith(_OWN_OPENINGS)]


def _text(message: ChatMessage) -> str:
    """A message's text: its content, or the text parts of one in parts."""
    content: object = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [cast("Mapping[str, Any]", part) for part in cast("list[object]", content) if isinstance(part, Mapping)]
        return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return ""


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
