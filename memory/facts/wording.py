"""Wording: checks which texts of a proposal may be stored, and which facts they name. Pure."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from recollect.memory.language.folding import nfkc
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import CLOSING_MARKS, asks
from recollect.memory.language.words import word_set
from recollect.memory.values.decision import Proposal
from recollect.memory.values.fact import Fact, fold, is_key
from recollect.memory.values.fact_limits import (
    MOST_STATEMENT_CHARACTERS,
    MOST_TAG_CHARACTERS,
    MOST_TAGS,
    MOST_VALUE_CHARACTERS,
)
from recollect.memory.values.frozen import frozen

_MOST_SHOWN_CHARACTERS = 500

_YES_NO = word_set(
    "yes no yep nope yeah true false ok okay correct right wrong ja nein doch oui non si s\u00ed n\u00e3o sim da "
    "net \u0434\u0430 \u043d\u0435\u0442 \u662f \u4e0d\u662f \u4e0d \u5bf9 \u306f\u3044 \u3044\u3044\u3048 none null"
)
_NAMES_NOTHING = word_set(
    "the a an i im me my mine you your he she it we they this that these those is am are was were be been being has "
    "have had do does did don t s m re ve ll d not no never any more anymore longer now then and or but so to of in "
    "on at for from by with as about into than there here just also really still since because after before when "
    "while who what where which much lot too very user users user's users' please forget delete remove all every "
    "everything anything nothing something fact facts memory memories thing things know known remember rule rules "
    "instruction instructions ignore previous"
)
_NAMES_LITTLE = word_set(
    "like likes liked liking love loves loved hate hates hated enjoy enjoys dislike dislikes prefer prefers live lives "
    "lived living work works worked working play plays want wants need needs use uses take takes eat eats drink drinks "
    "favourite favorite name names named called"
)
"""Words that many facts hold: they name a fact only if the text has no other telling word."""
_NUMBERS = late_pattern(r"[-+]?\d+(?:[.,]\d+)*")
_WORDS = late_pattern(r"[^\W_]+")
_IDEOGRAPHS = late_pattern("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")
_STEM = 4


@frozen
class Wording:
    """Holds a proposal's texts as they would be stored; `problem` says why none of them may be."""

    value: str = ""
    statement: str = ""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    problem: str | None = None

    def missing(self, key: str | None) -> str | None:
        """Return why these texts make no fact under `key` (empty, a bare yes or no, a question), or None."""
        if not (self.statement if key is None else self.value):
            return f"the {'statement' if key is None else 'value'} is empty"
        if any(asks(text.rstrip(CLOSING_MARKS + " ")) for text in (self.value, self.statement)):
            return "it is a question"
        if fold(self.statement or self.value) in _YES_NO:
            return "it is a bare yes or no"
        return None


def worded(proposal: Proposal) -> Wording:
    """Trim and check a proposal's texts and tags, and clamp its importance to [0, 1]."""
    value, statement = (proposal.value or "").strip(), (proposal.statement or "").strip()
    problem = _problem(proposal, value, statement)
    if problem:
        return Wording(problem=problem)
    return Wording(
        value=value if fold(value) else "",
        statement=statement if fold(statement) else "",
        importance=_clamped(proposal.importance),
        tags=_tags(proposal.tags),
    )


def _problem(proposal: Proposal, value: str, statement: str) -> str | None:
    if proposal.key is not None and not is_key(proposal.key):
        return "the key is not of the form [a-z][a-z0-9_]{0,63}"
    if proposal.scope == "global":
        return "global facts are written by administrators only"
    if len(value) > MOST_VALUE_CHARACTERS:
        return f"the value is longer than {MOST_VALUE_CHARACTERS} characters"
    if len(statement) > MOST_STATEMENT_CHARACTERS:
        return f"the statement is longer than {MOST_STATEMENT_CHARACTERS} characters"
    if clean(value + statement) != value + statement:
        return "it holds characters that cannot be stored"
    return None


def _clamped(importance: float) -> float:
    return 0.5 if math.isnan(importance) else min(1.0, max(0.0, importance))


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    trimmed = (clean(tag).strip() for tag in tags)
    return tuple(dict.fromkeys(tag for tag in trimmed if 0 < len(tag) <= MOST_TAG_CHARACTERS))[:MOST_TAGS]


def clean(text: str) -> str:
    """Remove what no store keeps: NUL and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def clean_excerpt(text: str | None) -> str | None:
    """Clean a model's text for the record of a refusal, and cut it to 500 characters."""
    return None if text is None else clean(text[:_MOST_SHOWN_CHARACTERS])


def numbers_in(text: str) -> tuple[str, ...]:
    """Return the numbers in `text`, in order, with signs and decimals."""
    return tuple(_NUMBERS.findall(nfkc(text)))


def names_fact(text: str, fact: Fact) -> bool:
    """Tell whether `text` holds a telling word of the fact's key, value or statement.

    A word that many facts hold ("like") tells nothing beside one that names another thing ("I no longer like tea").
    Words of four letters or more also match their longer forms (work, works); ideographs match in pairs.
    """
    return Terms.of(text).name(_texts_of(fact))


def names_another(text: str, fact: Fact, others: Iterable[str]) -> bool:
    """Tell whether `text` names one of `others` (texts of facts) better than `fact`, and not its whole value."""
    terms = Terms.of(text)
    if fact.value != fact.statement and _terms(fact.value) <= _terms(text):
        return False
    own = terms.count(_texts_of(fact))
    return any(terms.count(other) > own for other in others)


def _texts_of(fact: Fact) -> str:
    return f"{fact.key or ''} {fact.value} {fact.statement}"


def _is_small_number(term: str) -> bool:
    """Tell whether the word is a number such as a day or an hour, which stands in facts that have nothing in common."""
    return len(term) <= 2 and term.isdecimal()


@frozen
class Terms:
    """Holds the telling words of a text, prepared for comparisons with many others."""

    words: frozenset[str]
    in_order: Sequence[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Terms":
        """Find the telling words of `text`; words that many facts hold, and days, count only if it has no others."""
        every = _terms(text)
        found = {term for term in every - _NAMES_LITTLE if not _is_small_number(term)} or every
        long = sorted(term for term in found if len(term) >= _STEM)
        return cls(frozenset(found), long, frozenset(term.removesuffix("s") for term in long))

    def name(self, other: str) -> bool:
        """Tell whether `other` (such as a fact's texts) has one of the words, or a longer or shorter form of one."""
        return any(map(self._has, _terms(other.replace("_", " "))))

    def count(self, other: str) -> int:
        """Count such words in `other`."""
        return sum(map(self._has, _terms(other.replace("_", " "))))

    def _has(self, term: str) -> bool:
        if term in self.words or term[:_STEM] in self.words:
            return True
        if len(term) < _STEM:
            return False
        stem = term.removesuffix("s")
        longer = stem if len(stem) >= _STEM else term
        at = bisect_left(self.in_order, longer)
        if at < len(self.in_order) and self.in_order[at].startswith(longer):
            return True
        return any(stem[:end] in self.stems for end in range(_STEM, len(stem) + 1))


def _terms(text: str) -> set[str]:
    found: set[str] = set()
    for word in _WORDS.findall(fold(text)):
        signs = _IDEOGRAPHS.findall(word)
        for run in signs:
            found.update([run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)])
        if not signs and word not in _NAMES_NOTHING:
            found.add(word)
    return found
