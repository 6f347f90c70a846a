"""Answers as the offline chat model, from recalled texts and the window, by plain rules."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, cast

from typing_extensions import override

from recollect.memory.background.long_texts import off_loop
from recollect.memory.ports.chat_model import ChatMessage, ChatModel, ChatReply, ChatRequest, Usage
from recollect.memory.providers.offline.acknowledgement import NOT_KEPT, UNDERSTOOD, acknowledge, small_talk
from recollect.memory.providers.offline.clauses import read_clauses
from recollect.memory.providers.offline.extractor import NAME
from recollect.memory.providers.offline.questions import KnownTexts, answer_question
from recollect.memory.providers.offline.rules import overlaid, read_findings

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
    "Understood: ",
    "Yes, you",
    "No, you",
)


class OfflineChat(ChatModel):
    """Implements `ChatModel` without a model: deterministic, in English, and it says "offline" as its name."""

    @property
    @override
    def name(self) -> str:
        """Return "offline"."""
        return NAME

    @property
    @override
    def calls_tools(self) -> bool:
        """Return False: it calls no tools."""
        return False

    @override
    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the answer to the last user message. Usage counts a token for every four characters begun."""
        read = [_text(message) for message in request.messages]
        known = request.memory
        text = await off_loop(lambda: _reply(request), [*read, *known.recalled, *known.passages, *known.notes])
        if request.chosen:
            text = f"{text} {_ignoring(request.chosen)}"
        read_characters = sum(map(len, read))
        return ChatReply(text, NAME, usage=Usage(_tokens(read_characters), _tokens(len(text))))

    @override
    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """Yield the answer word by word, then the whole reply."""
        reply = await self.complete(request)
        for place, word in enumerate(reply.text.split(" ")):
            yield f" {word}" if place else word
        yield reply

    @override
    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        """Return its own name alone."""
        return [NAME]

    @override
    def unknown_parameters(self, names: Iterable[str]) -> list[str]:
        """Return none: it ignores them all, and says so."""
        return []

    @override
    async def ping(self) -> None:
        """Return at once: there is nothing to reach."""


def _reply(request: ChatRequest) -> str:
    said = [_text(message) for message in request.messages if message.get("role") == "user"][-_MOST_MESSAGES:]
    *earlier, last = said or [""]
    facts: Mapping[str, str] = request.memory.facts
    for text in earlier:
        facts = overlaid(facts, read_findings(text, facts))
    findings = read_findings(last, facts)
    is_kept = request.memory.is_kept
    acknowledged = acknowledge(findings, facts, is_kept=is_kept)
    known = KnownTexts(
        facts=overlaid(facts, findings),
        notes=request.memory.notes,
        texts=[*_of_the_user(request.memory.recalled, request.messages), *earlier],
        passages=request.memory.passages,
    )
    asked = read_clauses(last).asked[:_MOST_QUESTIONS]
    answers = dict.fromkeys(answer_question(question, known) for question in asked)
    reply = " ".join(part for part in (acknowledged, *answers) if part) or small_talk(last, known.facts.get("name"))
    return f"{reply} {NOT_KEPT}" if not is_kept and (findings or reply == UNDERSTOOD) else reply


def _ignoring(chosen: Sequence[str]) -> str:
    """Return the sentence that names what was chosen for a model, and makes no difference to this one."""
    *others, last = chosen
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"(The offline model ignores {listed}.)"


def _of_the_user(recalled: Sequence[str], messages: Sequence[ChatMessage]) -> list[str]:
    """Return `recalled`, worst match first, without the assistant's texts (recalled texts name no speaker)."""
    answered = {_text(message) for message in messages if message.get("role") == "assistant"}
    return [text for text in reversed(recalled) if text not in answered and not text.startswith(_OWN_OPENINGS)]


def _text(message: ChatMessage) -> str:
    """Return a message's text: its content, or the joined text parts."""
    content: object = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [cast("Mapping[str, Any]", part) for part in cast("list[object]", content) if isinstance(part, Mapping)]
        return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return ""


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
