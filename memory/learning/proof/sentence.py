# ruff: noqa: RUF001 - signs and words of many languages
"""Sentence: finds the sentence around a quote, and its clauses. Pure; at most MOST_AROUND characters on each side."""

import re
from collections.abc import Iterator

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import SPACED_ENDS, UNSPACED_ENDS
from recollect.memory.language.words import word_set
from recollect.memory.learning.proof.evidence import Heard
from recollect.memory.learning.proof.negations import denies
from recollect.memory.values.frozen import frozen

MOST_AROUND = 600
"""A sentence has at most this many characters before its quote, and behind it."""
_END = late_pattern(rf"(?:[{SPACED_ENDS}]+[')\]]*(?=\s|$)|[!?{UNSPACED_ENDS}](?!\s*')|\n)")
_ABBREVIATION = late_pattern(
    r"(?:^|[\s(])(?:dr|mr|mrs|ms|st|prof|jr|sr|inc|ltd|vs|etc|approx|ca|bzw|nr|no|tel|str|e\.g|i\.e|z\.b|d\.h|p\.ex"
    r"|mme|m|sra?|av"
    r"|[a-z]|\d{1,2})\.$"
)
_CLAUSE_END = late_pattern(
    r"[,;:()\u2013\u2014\u3001\u3002!?]|\.(?=\s|$)|\s-\s|\n"
    r"|\s(?:but|although|though|whereas|however|yet|aber|sondern|doch|obwohl|mais|pero|sino|aunque|ma|per\u00f2|mas"
    r"|por\u00e9m|maar|"
    r"ale|но|а|men)\s"
    r"|\s(?:and|or|so|because|since|while|und|oder|weil|denn|et|car|y|porque|e|perch\u00e9|en|и|потому что)\s"
    r"(?=(?:i|i'm|i've|i'd|my|we|he|she|they|it|ich|mein\w*|wir|er|sie|es|je|j'\w+|mon|ma|nous|il|elle|yo|mi|me|soy"
    r"|vivo|tengo"
    r"|io|mio|mia|sono|ho|eu|meu|minha|sou|tenho|ik|mijn|я|мой|моя|у)\b)"
    r"|(?<=[がけはしでりくて])(?=、)|但是?|可是|不过|だけど|けれど|けど|でも"
)
_SUBJECTS = word_set(
    "i i'm i've i'd i'll im my we he she they it you there ich mein meine wir er sie es man je j'ai j'habite j'aime "
    "mon ma "
    "mes nous il elle on yo mi me nos soy vivo tengo trabajo io mio mia sono ho vivo eu meu minha sou moro tenho ik "
    "mijn wij "
    "я мы мой моя мне у jestem mam jag min the der die das la le el"
)
_FRAGMENT_WORDS = 4
_LISTS = ",:;()\u3001"


@frozen
class FoldedClause:
    """Holds a folded clause, and whether it denies what it says."""

    text: str
    denies: bool


@frozen
class Sentence:
    """Holds the sentence around a quote, and the `clauses` that the quote reaches into."""

    text: str
    clauses: tuple[FoldedClause, ...]


def sentence_of(said: Heard, start: int, end: int) -> Sentence:
    """Return the sentence around the quote from `start` to `end`, or the sentences if the quote spans several."""
    begin = _begin(said.lines, start)
    until = _until(said.lines, end)
    text = said.lines[begin:until]
    return Sentence(text.replace("\n", " "), tuple(_reached(text, start - begin, end - begin)))


def clauses_of(text: str) -> list[FoldedClause]:
    """Return the clauses of a folded text."""
    return list(_reached(text, 0, len(text)))


def _begin(lines: str, start: int) -> int:
    near = max(0, start - MOST_AROUND)
    ends = [found for found in _END.finditer(lines, near, start) if not _is_abbreviation(lines, found)]
    return ends[-1].end() if ends else near


def _until(lines: str, end: int) -> int:
    far = min(len(lines), end + MOST_AROUND)
    ends = (found for found in _END.finditer(lines, max(0, end - 1), far) if not _is_abbreviation(lines, found))
    return next((max(found.start(), end) for found in ends), far)


def _is_abbreviation(lines: str, found: re.Match[str]) -> bool:
    return found[0] == "." and _ABBREVIATION.search(lines[max(0, found.start() - 8) : found.end()]) is not None


def _reached(text: str, start: int, end: int) -> Iterator[FoldedClause]:
    """Yield the clauses that overlap [start, end); a short one in a list ("jazz, rock") denies as the one before it."""
    begin, before = 0, False
    ends = [(found.start(), found.end()) for found in _CLAUSE_END.finditer(text)]
    linked = False
    for stop, following in [*ends, (len(text), len(text))]:
        clause = text[begin:stop].strip(" '")
        if any(char.isalnum() for char in clause):
            denied = denies(clause)
            if not denied and linked and before and _is_fragment(clause):
                denied = True
            if begin < end and stop > start:
                yield FoldedClause(clause, denied)
            before = denied
        linked = text[stop:following].strip() in _LISTS and stop < following
        begin = following
    return


def _is_fragment(clause: str) -> bool:
    found = clause.split()
    return (
        len(found) <= _FRAGMENT_WORDS
        and found[0] not in _SUBJECTS
        and (clause.isascii() or len(clause) < _FRAGMENT_WORDS)
    )
