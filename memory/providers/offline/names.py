"""Reads names: "My name is Ada Lovelace", "I'm Ada", "Call me Al"."""

import re

from recollect.memory.providers.offline.clauses import Clause
from recollect.memory.providers.offline.finding import Extracted
from recollect.memory.providers.offline.vocabulary import DIETS, NATIONALITIES, NO_NAMES, PARTICLES, RELIGIONS

_STATED = re.compile(
    r"(?:my (?:full |first )?name is|my (?:full |first )?name's|i'm called|i am called|ich hei(?:\u00df|ss)e"
    r"|mein name ist|je m'appelle|mon nom est|me llamo|mi nombre es) (?:actually |now |really )?(?P<name>.+)",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"(?:you can |you may |just |please )?(?:(?:my friends|friends|people|everyone|everybody) calls? me|call me) "
    r"(?P<name>.+)",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(r"(?:i'm|i am|my name) (?P<name>.+)", re.IGNORECASE)
_DENIED = re.compile(
    r"(?:i'm not|i am not|my name is not|my name isn't|my name's not|don't call me) (?P<name>.+)", re.IGNORECASE
)
_MOST_WORDS = 4
_PLAIN_MOST_WORDS = 2
_ENDS = '.,;:!?)\u2026"\u201d'
_MAY_FOLLOW = {"and", "from", "by", "here", "but", "not", "though", "now", "actually", "too", "again", "btw", "with"}


def read_name(clause: Clause) -> list[Extracted]:
    """Return the user's name as the clause gives it, if it does."""
    for pattern, ends in ((_DENIED, True), (_STATED, False), (_CALLED, False), (_INTRODUCED, False)):
        found = pattern.match(clause.text)
        if found is None:
            continue
        name, _rest = split_name(found["name"])
        if not name and pattern is _STATED:
            name = _plain(found["name"])
        return [Extracted("name", name, clause.evidence, ends)] if name else []
    return []


def after_introduction(clause: Clause) -> str:
    """Return the text behind the name in "I'm Ada, a nurse from Rome": " a nurse from Rome"."""
    found = _INTRODUCED.match(clause.text)
    name, rest = split_name(found["name"]) if found else ("", "")
    return rest if name else ""


def split_name(text: str) -> tuple[str, str]:
    """Return the capitalised name at the beginning and the rest; both are "" if no name, or no likely one, is there."""
    taken: list[str] = []
    left = text.split(" ")
    ended = False
    while left and len(taken) < _MOST_WORDS and not ended:
        word = left[0].rstrip(_ENDS)
        if not (_is_capitalised(word) or (taken and word.casefold() in PARTICLES)):
            break
        ended = left[0] != word
        taken.append(word)
        left.pop(0)
    while taken and not _is_capitalised(taken[-1]):
        left.insert(0, taken.pop())
    name = " ".join(taken)
    if not taken or not _may_be_name(taken[0]) or (left and not ended and _goes_on(left[0])):
        return "", ""
    return name, " ".join(left)


def _goes_on(word: str) -> bool:
    """Tell whether `word` shows that the capitalised words before it are no name ("I'm Happy to help")."""
    return word[:1].isalnum() and word.casefold() not in _MAY_FOLLOW


def _plain(text: str) -> str:
    """Return a name in small letters, which only "my name is" introduces: one or two words with nothing after them."""
    parts = text.strip(_ENDS + " ").split(" ")
    if len(parts) > _PLAIN_MOST_WORDS or not all(part.replace("-", "").replace("'", "").isalpha() for part in parts):
        return ""
    return " ".join(parts) if all(_may_be_name(part) for part in parts) else ""


def _is_capitalised(word: str) -> bool:
    return bool(word) and word[0].isalpha() and not word[0].islower() and word.casefold() not in {"i", "i'm", "i've"}


def _may_be_name(word: str) -> bool:
    folded = word.casefold()
    if folded in NO_NAMES | NATIONALITIES | RELIGIONS | DIETS:
        return False
    if len(word) > 1 and word.isupper() and word.isascii():
        return False
    return not (len(word) > len("irving") and folded.endswith("ing"))
