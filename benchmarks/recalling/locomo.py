"""Reads LoCoMo as a memory: a conversation is a user, its sessions are threads, both speakers keep their names.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
_DATE = "%I:%M %p on %d %B, %Y"
_SECONDS_APART = 5


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `message_id` is like "conv-26/D1:3"; `at` is its session's time and five seconds a message."""

    message_id: str
    thread_id: str
    name: str
    content: str
    at: datetime

    def line(self, user_id: str) -> dict[str, Any]:
        """Return it as a line of an import."""
        return {
            "user_id": user_id,
            "thread_id": self.thread_id,
            "role": "user",
            "name": self.name,
            "content": self.content,
            "timestamp": self.at.isoformat(),
            "message_id": self.message_id,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the messages that answer it: at least one."""

    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """A statement that LoCoMo extracted from a message."""

    statement: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation; `id` is its user's."""

    id: str
    messages: Sequence[Said]
    questions: Sequence[Question]
    observations: Sequence[Observation]

    @property
    def asked_at(self) -> datetime:
        """Return the time at which its questions are asked: an hour after its last message."""
        return max(said.at for said in self.messages) + timedelta(hours=1)


def read_locomo(path: Path) -> list[Talk]:
    """Return the conversations, with the questions that have usable evidence (1,982 of 1,986 in all).

    Malformed evidence is split ("D8:6; D9:17") or normalised ("D:11:26", "D30:05"); ids of unknown messages are
    dropped, and with them the questions that have no others.
    """
    return [_talk(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def as_one(talks: Sequence[Talk]) -> Talk:
    """Return all the conversations as those of one user, "everyone"; each session stays a thread of its own."""
    return Talk(
        "everyone",
        [replace(said, thread_id=f"{talk.id}-{said.thread_id}") for talk in talks for said in talk.messages],
        [question for talk in talks for question in talk.questions],
        [observation for talk in talks for observation in talk.observations],
    )


def _talk(sample: Mapping[str, Any]) -> Talk:
    user_id = str(sample["sample_id"])
    messages = list(_messages(user_id, sample["conversation"]))
    known = {said.message_id for said in messages}
    questions = [
        Question(str(asked["question"]), CATEGORIES[asked["category"]], evidence)
        for asked in sample["qa"]
        if (evidence := _message_ids(user_id, asked["evidence"], known))
    ]
    return Talk(user_id, messages, questions, list(_observations(user_id, sample["observation"], known)))


def _messages(user_id: str, conversation: Mapping[str, Any]) -> Iterator[Said]:
    sessions = sorted(int(found[1]) for name in conversation if (found := _SESSION.fullmatch(name)))
    for session in sessions:
        begun = datetime.strptime(conversation[f"session_{session}_date_time"], _DATE).replace(tzinfo=UTC)
        for place, said in enumerate(conversation[f"session_{session}"]):
            caption = said.get("blip_caption")
            yield Said(
                message_id=f"{user_id}/{said['dia_id']}",
                thread_id=f"session-{session}",
                name=said["speaker"],
                content=f"{said['text']} [shares {caption}]".strip() if caption else said["text"],
                at=begun + timedelta(seconds=place * _SECONDS_APART),
            )


def _message_ids(user_id: str, written: Sequence[str], known: set[str]) -> tuple[str, ...]:
    """Return the ids of the messages that these texts name, each once."""
    named = (f"{user_id}/D{int(session)}:{int(place)}" for text in written for session, place in _TURN_ID.findall(text))
    return tuple(dict.fromkeys(message_id for message_id in named if message_id in known))


def _observations(user_id: str, sessions: Mapping[str, Any], known: set[str]) -> Iterator[Observation]:
    """Yield an observation for each message that one is taken from."""
    for speakers in sessions.values():
        for observed in speakers.values():
            for statement, sources in observed:
                written = [sources] if isinstance(sources, str) else sources
                for message_id in _message_ids(user_id, written, known):
                    yield Observation(statement, message_id)
