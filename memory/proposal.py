"""The wording of a proposal: what of it may be stored, and what it names. Pure checks, no knowledge of other facts."""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory.decision import Proposal
from memory.fact import Fact, fold, is_key
from memory.words import words

MOST_VALUE_CHARACTERS = 1_000
MOST_STATEMENT_CHARACTERS = 2_000
MOST_TAGS = 10
MOST_TAG_CHARACTERS = 64
_MOST_SHOWN_CHARACTERS = 500

_YES_NO = words(
    "yes no yep nope yeah true false ok okay correct right wrong ja nein doch oui non si s\u00ed n\u00e3o sim da "
    "net \u0434\u0430 \u043d\u0435\u0442 \u662f \u4e0d\u662f \u4e0d \u5bf9 \u306f\u3044 \u3044\u3044\u3048 none null"
)
_NAMES_NOTHING = words(
    "the a an i im me my mine you your he she it we they this that these those is am are was were be been being has "
    "have had do does did don t s m re ve ll d not no never any more anymore longer now then and or but so to of in "
    "on at for from by with as about into than there here just also really still since because after before when "
    "while who what where which much lot too very user users user's users' please forget delete remove all every "
    "everything anything nothing something fact facts memory memories thing things know known remember rule rules "
    "instruction instructions ignore previous"
)
_NAMES_LITTLE = words(
    "like likes liked liking love loves loved hate hates hated enjoy enjoys dislike dislikes prefer prefers live lives "
    "lived living work works worked working play plays want wants need needs use uses take takes eat eats drink drinks "
    "favourite favorite name names named called"
)
"""What many facts hold: it names one of them only where nothing else does."""
_NUMBERS = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
_WORDS = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")
_STEM = 4
_CLOSING = "\"'\u201d\u2019\u00bb) "
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


@dataclass(frozen=True, slots=True)
class Wording:
    """A proposal's texts as they would be stored; `problem` says why none of it may be."""

    value: str = ""
    statement: str = ""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    problem: str | None = None

    def missing(self, key: str | None) -> str | None:
        """Why these texts make no fact under `key`: nothing said, a bare yes or no, or a question."""
        if not (self.statement if key is None else self.value):
            return f"the {'statement' if key is None else 'value'} is empty"
        if any(text.rstrip(_CLOSING).endswith(_QUESTION_MARKS) for text in (self.value, self.statement)):
            return "it is a question"
        if fold(self.statement or self.value) in _YES_NO:
            return "it is a bare yes or no"
        return None


def worded(proposal: Proposal) -> Wording:
    """The texts trimmed and bounded, the importance clamped to [0, 1], with what speaks against them."""
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
    """`text` without what no store keeps: NUL and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def bounded(text: str | None) -> str | None:
    """What the record of a refusal shows of a model's text: clean, and at most 500 characters."""
    return None if text is None else clean(text[:_MOST_SHOWN_CHARACTERS])


def numbers_in(text: str) -> tuple[str, ...]:
    """The numbers in `text`, in order, signs and decimals included."""
    return tuple(_NUMBERS.findall(unicodedata.normalize("NFKC", text)))


def names_fact(text: str, fact: Fact) -> bool:
    """Whether `text` holds a telling word of the fact's key, value or statement.

    A word that many facts hold ("like") tells nothing beside one that names another thing ("I no longer like tea").
    Words of four letters or more also match their longer forms (work, works); ideographs match in pairs.
    """
    return Terms.of(text).name(_texts_of(fact))


def names_another(text: str, fact: Fact, others: Iterable[str]) -> bool:
    """Whether `text` names one of the `others` (texts of facts) better than `fact`, and not the fact's whole value."""
    terms = Terms.of(text)
    if fact.value != fact.statement and _terms(fact.value) <= _terms(text):
        return False
    own = terms.count(_texts_of(fact))
    return any(terms.count(other) > own for other in others)


def _texts_of(fact: Fact) -> str:
    return f"{fact.key or ''} {fact.value} {fact.statement}"


@dataclass(frozen=True, slots=True)
class Terms:
    """The telling words of a text, prepared for comparing with many others."""

    words: frozenset[str]
    by_stem: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, text: str) -> "Terms":
        """Those of `text`; words that many facts hold only where there are no others."""
        every = _terms(text)
        found = every - _NAMES_LITTLE or every
        by_stem: dict[str, list[str]] = {}
        for term in found:
            if len(term) >= _STEM:
                by_stem.setdefault(term[:_STEM], []).append(term.removesuffix("s"))
        return cls(frozenset(found), by_stem)

    def name(self, other: str) -> bool:
        """Whether `other` (a fact's texts, say) has a word of them, or a longer or shorter form of one."""
        return any(map(self._has, _terms(other.replace("_", " "))))

    def count(self, other: str) -> int:
        """How many such words `other` has."""
        return sum(map(self._has, _terms(other.replace("_", " "))))

    def _has(self, term: str) -> bool:
        if term in self.words:
            return True
        stem = term.removesuffix("s")
        forms = self.by_stem.get(term[:_STEM], ()) if len(term) >= _STEM else ()
        return any(stem.startswith(form) or form.startswith(stem) for form in forms)


def _terms(text: str) -> set[str]:
    found: set[str] = set()
    for word in _WORDS.findall(fold(text)):
        signs = _IDEOGRAPHS.findall(word)
        for run in signs:
            found.update([run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)])
        if not signs and word not in _NAMES_NOTHING:
            found.add(word)
    return found
