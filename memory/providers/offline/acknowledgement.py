"""What the offline model says to a statement: it repeats what it understood, with the rules that learn."""

import re
from collections.abc import Mapping, Sequence

from memory.fact import fold
from memory.providers.offline.finding import Finding
from memory.providers.offline.wording import sentence, told, told_ended

_THANKS = re.compile(r"\b(?:thanks|thank you|thx|cheers|danke|merci|gracias)\b", re.IGNORECASE)
_GOODBYE = re.compile(r"\b(?:bye|goodbye|good night|see you)\b", re.IGNORECASE)
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening)|greetings|hallo|bonjour|salut|hola)\b", re.IGNORECASE
)
_MOST_SMALL_TALK = 60


def acknowledge(findings: Sequence[Finding], known: Mapping[str, str]) -> str:
    """One sentence for each kind of news; `known` is what was known before. "" for no findings."""
    greeting: list[str] = []
    corrected: list[str] = []
    again: list[str] = []
    news: list[str] = []
    for finding in findings:
        before = known.get(finding.key)
        if finding.ends:
            news.append(told_ended(finding.key, finding.value))
        elif before is None and finding.key == "name":
            greeting.append(f"Nice to meet you, {finding.value}.")
        elif before is None:
            news.append(told(finding.key, finding.value))
        elif fold(before) == fold(finding.value):
            again.append(told(finding.key, finding.value))
        else:
            corrected.append(f"{told(finding.key, finding.value)}, not {before}")
    return " ".join([*greeting, *_said("Corrected", corrected), *_said("Noted", news), *_said("I know", again)])


def small_talk(message: str, name: str | None) -> str:
    """The answer to a message that neither says nor asks anything the rules understand."""
    to_them = f", {name}" if name else ""
    if len(message) <= _MOST_SMALL_TALK:
        if _THANKS.search(message):
            return f"You're welcome{to_them}."
        if _GOODBYE.search(message):
            return f"Goodbye{to_them}."
    return f"Hello{to_them}." if _GREETING.match(message) else "Understood."


def _said(opening: str, clauses: Sequence[str]) -> list[str]:
    if not clauses:
        return []
    listed = " and ".join([", ".join(clauses[:-1]), clauses[-1]] if len(clauses) > 1 else clauses)
    return [sentence(f"{opening}: {listed}")]
