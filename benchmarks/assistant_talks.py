"""Reads the corpus of persons who talk with an assistant, whose words and questions are written in `assistant_talks/`.

An answer there is one sentence; here it becomes as long as an assistant's (some 900 characters) by general advice that
repeats the person's words, and between the written sessions the person asks for ordinary services. Both are drawn with
a fixed seed, so that every run reads the same. Three talks are open, three are held out: no weight may be chosen by
them.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from recollect.memory.language.lexemes import STOP_WORDS

FOLDER = Path(__file__).parent / "assistant_talks"
ANSWER = ":a"
"""The end of an answer's message id; a person's own message has the id of its turn."""
ADVISED = 7
SERVICES = 3
"""How many ordinary services are asked for after each written session."""
_ADVICE = (
    "When it comes to {a}, it helps to write down first what you already know about {b}, and what is still open.",
    "Many people underestimate how much {b} depends on {a}, so leave yourself some room there.",
    "A good next step would be to look at {c} again in a week, with fresh eyes, before you decide anything final.",
    "If {a} turns out to be harder than expected, you can always go back and treat {b} and {c} one after the other.",
    "There is no single right answer for {c}, but the usual mistakes are haste and too many things at once.",
    "You could also talk about {a} with somebody who has done it before, and compare their notes with yours.",
    "Keep in mind that {b} rarely goes as planned the first time, and that this says nothing about you.",
    "To sum up: begin small with {a}, check {b} as you go, and keep {c} for the end.",
    "Let me know whether you would like a list, a plan for {b}, or some examples for {a}.",
    "It may be worth setting a date for {c}, because open questions tend to grow when nobody looks at them.",
)
_SERVICES = (
    ("Translate into French: the {a} stands beside the {b}.", "In French one would write it with the article."),
    ("What is the difference between a {a} and a {b}?", "They differ in purpose, in price and in how long they last."),
    (
        "Write two polite lines to a neighbour about the {a}.",
        "Dear neighbour, thank you for your patience. Kind wishes.",
    ),
    ("Give me a crossword clue for {a}.", "Try: one finds it near the {b}, in five or more letters."),
    ("How do you spell the plural of {a}?", "The plural follows the usual rule of English."),
    ("Make a rhyme with {a} and {b} for a birthday card.", "Roses are red, and the rest is a matter of taste."),
    ("How heavy is a {a} usually?", "That depends on its size and what it is made of."),
)
_TURN = re.compile(r"([a-z]\d) (.+)")


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One message of the person or of the assistant."""

    message_id: str
    thread_id: str
    role: str
    content: str
    at: datetime

    def line(self, user_id: str) -> dict[str, Any]:
        """Return it as a line of an import."""
        return {
            "user_id": user_id,
            "thread_id": self.thread_id,
            "role": self.role,
            "content": self.content,
            "timestamp": self.at.isoformat(),
            "message_id": self.message_id,
        }


@dataclass(frozen=True, slots=True)
class AssistantQuestion:
    """A question of the person's, its kind, and the ids of the messages that answer it."""

    kind: str
    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssistantTalk:
    """A person's talks with an assistant; `id` is the user's."""

    id: str
    is_held_out: bool
    messages: Sequence[AssistantMessage]
    questions: Sequence[AssistantQuestion]

    @property
    def asked_at(self) -> datetime:
        """Return the time at which the questions are asked: a day after the last message."""
        return max(said.at for said in self.messages) + timedelta(days=1)


def read_assistant_talks(folder: Path = FOLDER) -> list[AssistantTalk]:
    """Return the talks of the corpus, in the order of their names."""
    return [_talk(path.stem, path.read_text(encoding="utf-8").splitlines()) for path in sorted(folder.glob("*.txt"))]


def _talk(name: str, lines: Sequence[str]) -> AssistantTalk:
    head = dict(line.split(": ", 1) for line in lines[:2])
    chance = random.Random(crc32(name.encode()))
    messages = list(_messages(name, lines, head["things"].split(", "), chance))
    questions = [_question(name, line) for line in lines if line.startswith("? ")]
    return AssistantTalk(name, head["half"] == "held out", messages, questions)


def _question(name: str, line: str) -> AssistantQuestion:
    kind, text, evidence = line.removeprefix("? ").split(" | ")
    return AssistantQuestion(kind, text, tuple(f"{name}/{label}" for label in evidence.split()))


def _messages(
    name: str, lines: Sequence[str], things: Sequence[str], chance: random.Random
) -> Iterator[AssistantMessage]:
    at, session, label, said = datetime.min.replace(tzinfo=UTC), 0, "", ""
    for line in lines:
        if line.startswith("== "):
            if session:
                yield from _services(name, session, at, things, chance)
            at = datetime.strptime(line.removeprefix("== "), "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
            session += 1
        elif turn := _TURN.fullmatch(line):
            label, said = turn.groups()
            yield AssistantMessage(f"{name}/{label}", f"talk-{session}", "user", said, at)
        elif line.startswith("> "):
            answer = _long(line.removeprefix("> "), said, chance)
            at += timedelta(seconds=20)
            yield AssistantMessage(f"{name}/{label}{ANSWER}", f"talk-{session}", "assistant", answer, at)
            at += timedelta(minutes=2)


def _services(
    name: str, session: int, at: datetime, things: Sequence[str], chance: random.Random
) -> Iterator[AssistantMessage]:
    """Yield a session of ordinary services, two days after the written one."""
    at += timedelta(days=2)
    for number, (asked, answered) in enumerate(chance.sample(_SERVICES, SERVICES)):
        first, second = chance.sample(things, 2)
        said = asked.format(a=first, b=second)
        label, thread_id = f"{name}/service-{session}-{number}", f"services-{session}"
        yield AssistantMessage(label, thread_id, "user", said, at)
        answer = _long(answered.format(a=first, b=second), said, chance)
        yield AssistantMessage(label + ANSWER, thread_id, "assistant", answer, at + timedelta(seconds=20))
        at += timedelta(minutes=2)


def _long(answer: str, said: str, chance: random.Random) -> str:
    """Return the answer among general advice that repeats the longest words of what was `said`."""
    words = [word for word in re.findall(r"[\w-]{3,}", said) if word.casefold() not in STOP_WORDS]
    first, second, third = (sorted(dict.fromkeys(words), key=len, reverse=True) + ["this"] * 3)[:3]
    advice = [line.format(a=first, b=second, c=third) for line in chance.sample(_ADVICE, ADVISED)]
    place = chance.randrange(ADVISED)
    return " ".join([*advice[:place], answer, *advice[place:]])
