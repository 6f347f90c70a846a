"""Words the offline model's answer to a statement: it repeats what the learning rules understood."""

import re
from collections.abc import Mapping, Sequence

from recollect.memory.providers.offline.finding import Extracted
from recollect.memory.providers.offline.wording import sentence, told_clause, told_ended
from recollect.memory.values.fact import fold

_THANKS = re.compile(r"\b(?:thanks|thank you|thx|cheers|danke|merci|gracias)\b", re.IGNORECASE)
_GOODBYE = re.compile(r"\b(?:bye|goodbye|good night|see you)\b", re.IGNORECASE)
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening)|greetings|hallo|bonjour|salut|hola)\b", re.IGNORECASE
)
_MOST_SMALL_TALK = 60


UNDERSTOOD = "Understood."
NOT_KEPT = "But nothing is kept: the request names no thread (memory_id)."
"""Added where somebody tells something that nobody will remember."""


def acknowledge(findings: Sequence[Extracted], known: Mapping[str, str], *, is_kept: bool = True) -> str:
    """Return one sentence for each kind of finding, "" without `findings`; `known` is what was known before.

    Without `is_kept` it says "understood", and neither "noted" nor "corrected".
    """
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
            news.append(told_clause(finding.key, finding.value))
        elif fold(before) == fold(finding.value):
            again.append(told_clause(finding.key, finding.value))
        else:
            corrected.append(f"{told_clause(finding.key, finding.value)}, not {before}")
    told_now = (
        [*_said("Corrected", corrected), *_said("Noted", news)] if is_kept else _said("Understood", [*corrected, *news])
    )
    return " ".join([*greeting, *told_now, *_said("I know", again)])


def small_talk(message: str, name: str | None) -> str:
    """Return the answer to a message in which the rules find no statement and no question."""
    to_them = f", {name}" if name else ""
    if len(message) <= _MOST_SMALL_TALK:
        if _THANKS.search(message):
            return f"You're welcome{to_them}."
        if _GOODBYE.search(message):
            return f"Goodbye{to_them}."
    return f"Hello{to_them}." if _GREETING.match(message) else UNDERSTOOD


def _said(opening: str, clauses: Sequence[str]) -> list[str]:
    if not clauses:
        return []
    listed = " and ".join([", ".join(clauses[:-1]), clauses[-1]] if len(clauses) > 1 else clauses)
    return [sentence(f"{opening}: {listed}")]
