"""ProposedFact: tells why a quote does not carry what a proposal would store, if it does not. Pure.

A quote carries a claim whose value and statement add no number, name, address or negation to the quote's sentence, drop
none of its negations, and whose key adds nothing. Plain words are not compared: a model may word a fact as it likes.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice

from recollect.memory.language.lexemes import STOP_WORDS
from recollect.memory.language.words import word_set
from recollect.memory.learning.proof.addresses import claimed_addresses, says_address
from recollect.memory.learning.proof.evidence import folded_quote, heard
from recollect.memory.learning.proof.keys import (
    added_words,
    is_truth,
    judges,
    key_words,
    may_be_unsaid,
    names_something,
)
from recollect.memory.learning.proof.names import (
    claimed_names,
    is_carried,
    is_german,
    is_mixed,
    is_time,
    small_words,
    unsaid_signs,
)
from recollect.memory.learning.proof.negations import denies, says_it_is_over
from recollect.memory.learning.proof.numbers import Numbers, claimed_numbers
from recollect.memory.learning.proof.sentence import FoldedClause, Sentence, clauses_of
from recollect.memory.learning.proof.short import Answer, answer_of, is_one_word
from recollect.memory.learning.proof.times import SaidTimes, is_month, is_weekday
from recollect.memory.learning.proof.units import converted_numbers
from recollect.memory.learning.proof.vocabulary import CASELESS, WORD, Vocabulary, contents
from recollect.memory.learning.proof.witness import Witness
from recollect.memory.values.frozen import frozen

_MOST_PLACES, _MOST_SENTENCES = 20, 8
_MOST_CLAUSES = 40
_PASSED_ON = "the quote is what the message passes on, not what the user says"
_ONE_WORD = "a quote of one word proves nothing but that word"
_ENGLISH = word_set("i'm i've my the is are was have has don like love live work of and with not from it's our")
_GENERIC = STOP_WORDS | {"user", "users", "nutzer", "usuario", "utilisateur", "like", "likes", "has", "lives", "works"}


@frozen
class ProposedFact:
    """Holds what a proposal would store. Its statement may use the `known` names: the user's, and the old fact's.

    `is_past` says that it names its end, so that it need not deny that it still holds. `is_known_key` says that its key
    is known or wanted, and so adds nothing.
    """

    key: str | None
    value: str
    statement: str
    known: frozenset[str] = frozenset()
    is_past: bool = False
    is_known_key: bool = False


def proof_problem(claim: ProposedFact, quote: str, witness: Witness) -> str | None:
    """Return why the quote does not carry `claim`; None if it does in at least one of its places."""
    places = witness.places(quote)
    if not places:
        return _PASSED_ON
    sentences = {sentence.text: sentence for sentence in witness.sentences(places[:_MOST_PLACES])}
    problems = (_problem(claim, quote, sentence, witness) for sentence in islice(sentences.values(), _MOST_SENTENCES))
    first = next(problems)
    return None if first is None or any(problem is None for problem in problems) else first


def carried_tags(tags: Sequence[str], quote: str, witness: Witness) -> tuple[str, ...]:
    """Return the tags that the quote's sentence carries; the fact is stored without the others."""
    if not tags:
        return ()
    trials = [
        _Trial(ProposedFact(None, "", ""), one, witness.at, "") for one in witness.sentences(witness.places(quote)[:1])
    ]
    return tuple(tag for tag in tags if any(trial.carries_tag(tag) for trial in trials))


def ending_problem(quote: str, witness: Witness) -> str | None:
    """Return why the quote does not prove an ending, or None. Reconciliation checks which fact it names."""
    if not witness.places(quote):
        return _PASSED_ON
    short = folded_quote(quote)
    if is_one_word(short) and answer_of(short, witness.asked) is None:
        return _ONE_WORD
    return None


def _problem(claim: ProposedFact, quote: str, sentence: Sentence, witness: Witness) -> str | None:
    """Return why the quote in `sentence` does not carry `claim`, or None if it does."""
    short = folded_quote(quote)
    if is_one_word(short):
        answer = answer_of(short, witness.asked)
        if answer is not None:
            return _Trial(claim, _answered(answer, sentence), witness.at, answer.text).problem()
        if is_truth(short):
            return "a bare yes or no proves nothing without the question that it answers"
        if not _is_value(short, claim):
            return _ONE_WORD
    return _Trial(claim, sentence, witness.at, heard(witness.asked).lines).problem()


def _answered(answer: Answer, sentence: Sentence) -> Sentence:
    """Return the question as the said sentence; its clauses deny the other way if the answer is no."""
    clauses = clauses_of(answer.text)
    said = tuple(FoldedClause(clause.text, clause.denies != answer.denies) for clause in clauses)
    return Sentence(f"{answer.text} {sentence.text}", said)


def _is_value(short: str, claim: ProposedFact) -> bool:
    """Tell whether a quote of one word is the value itself, in any form."""
    value = heard(claim.value or claim.statement)
    left = [word for word in WORD.findall(value) if word not in STOP_WORDS]
    quoted = Vocabulary(short)
    if len(left) == 1 and (quoted.has(left[0]) or Numbers.of(short).hold(left[0])):
        return True
    return value.strip("' .") == short or quoted.has_place(value)


class _Trial:
    """Compares a claim with a sentence. A key may take its words from `context`, the assistant's question."""

    def __init__(self, claim: ProposedFact, sentence: Sentence, at: datetime, context: str) -> None:
        self.claim, self.sentence = claim, sentence
        self.value, self.statement = heard(claim.value), heard(claim.statement)
        self.words = Vocabulary(sentence.text)
        self.numbers = Numbers.of(sentence.text)
        self.times = SaidTimes(sentence.text, at)
        self.context = Vocabulary(context)

    def problem(self) -> str | None:
        """Return the first thing that the claim adds or drops; None without one."""
        return next(self._problems(), None)

    def _problems(self) -> Iterator[str]:
        for text, what in ((self.value, "value"), (self.statement, "statement")):
            if self._adds_address(text):
                yield f"its {what} adds an address or a code that the quote's sentence lacks"
            if self._adds_number(text):
                yield f"its {what} adds a number that the quote's sentence lacks"
        if self._adds_name_in_value():
            yield "its value adds a name that the quote's sentence lacks"
        if self._adds_name_in_statement():
            yield "its statement adds a name that the quote's sentence lacks"
        if self.claim.key is not None and self._key_adds(self.claim.key):
            yield "its key adds what the quote's sentence lacks"
        if self._changes_negation():
            yield "it adds or drops a negation of the quote's sentence"

    def carries_tag(self, tag: str) -> bool:
        """Tell whether `tag` adds no number, name or address. Its plain words are a heading, and prove nothing."""
        text = heard(tag)
        adds = self._adds_address(text) or self._adds_number(text)
        return not adds and not any(self._lacks(name) for name in claimed_names(tag))

    def _adds_address(self, text: str) -> bool:
        return any(not says_address(self.sentence.text, address) for address in claimed_addresses(text))

    def _adds_number(self, text: str) -> bool:
        claimed = list(claimed_numbers(text))
        if all(self._has_number(number, digits) for number, digits in claimed):
            return False
        other = self.times.carried_numbers(text, self.numbers) | set(converted_numbers(text, self.sentence.text))
        return any(number not in other and not self._has_number(number, digits) for number, digits in claimed)

    def _has_number(self, number: str, digits: str) -> bool:
        return self.numbers.hold(number) or (len(digits) > 2 and digits in self.numbers.strings)

    def _adds_name_in_value(self) -> bool:
        german = is_german(self.words) and is_german(Vocabulary(self.statement))
        lower = small_words(self.claim.statement)
        if any(
            self._lacks(name) for name in claimed_names(self.claim.value, lower=lower, is_value=True, german=german)
        ):
            return True
        if not names_something(self.claim.key, is_english=self._is_same_tongue()):
            return any(True for _ in unsaid_signs(self.value, self.words))
        every = WORD.findall(self.value)
        plain = [word for word in every if not CASELESS.search(word) and not word.isdigit() and not may_be_unsaid(word)]
        if plain and not self.words.has_place(self.value) and any(self._lacks(word) for word in plain):
            return True
        return any(True for _ in unsaid_signs(self.value, self.words, whole=True))

    def _adds_name_in_statement(self) -> bool:
        german = is_german(self.words) and is_german(Vocabulary(self.statement))
        names = claimed_names(self.claim.statement, german=german)
        if any(self._lacks(name) and name not in self.claim.known for name in names):
            return True
        return any(not self._is_known(run) for run in unsaid_signs(self.statement, self.words))

    def _is_known(self, run: str) -> bool:
        return any(name in run for name in self.claim.known)

    def _lacks(self, name: str) -> bool:
        if is_month(name) and (self.times.say_month(name, self.numbers) or self.times.spans):
            return False
        if is_weekday(name) and self.times.say_weekday(name):
            return False
        if is_carried(name, self.words):
            return False
        return is_mixed(name) or is_time(name) or not self._has_place_with(name)

    def _has_place_with(self, name: str) -> bool:
        """Tell whether `name` is part of a place's name of several words that the sentence has in another language."""
        return any(
            f" {name} " in f" {text} " and self.words.has_place(place)
            for text in (self.value, self.statement)
            for place in _places_in(text)
        )

    def _key_adds(self, key: str) -> bool:
        if self.claim.is_known_key:
            return self._misjudges(key)
        truth = is_truth(self.value)
        told = Vocabulary("" if truth and self._is_same_tongue() else f"{self.value} {self.statement}")
        for word in added_words(key, is_truth=truth):
            if word.isdigit():
                if not self.numbers.hold(word):
                    return True
            elif not (self.words.has(word) or self.context.has(word) or told.has(word)):
                return True
        text = " ".join(key_words(key))
        return self._adds_address(text) or self._misjudges(key)

    def _misjudges(self, key: str) -> bool:
        """Tell whether `key` affirms the value where the sentence denies it, or denies it where that affirms it."""
        if not judges(key) or not self.sentence.clauses:
            return False
        claimed = denies(f"{' '.join(key_words(key))} {self.value}")
        return not self._agrees(FoldedClause(f"{' '.join(key_words(key))} {self.value}", claimed))

    def _is_same_tongue(self) -> bool:
        """Tell whether the sentence is in English, as keys are: then a key needs no translation."""
        return self.sentence.text.isascii() and bool(self.words.words & _ENGLISH)

    def _changes_negation(self) -> bool:
        is_denied = any(clause.denies for clause in self.sentence.clauses) or denies(self.sentence.text)
        if self.value and denies(self.value) and not is_truth(self.value) and not is_denied:
            return True
        if self.statement:
            claimed = clauses_of(self.statement)
            if len(claimed) > _MOST_CLAUSES or len(self.sentence.clauses) > _MOST_CLAUSES:
                return True  # bounds the work: each clause is compared with each
        else:
            text = f"{' '.join(key_words(self.claim.key or ''))} {self.value}"
            claimed = [FoldedClause(text, denies(text))]
        return any(not self._agrees(clause) for clause in claimed)

    @cached_property
    def _clause_words(self) -> Sequence[tuple[FoldedClause, Vocabulary]]:
        return [(clause, Vocabulary(clause.text)) for clause in self.sentence.clauses]

    def _agrees(self, claimed: FoldedClause) -> bool:
        """Tell whether the clause of the sentence that shares the most words with `claimed` denies as it does."""
        every = self._clause_words
        if not every:
            return True
        wanted = contents(claimed.text, _GENERIC)
        shared = [_shared(wanted, said) for _, said in every]
        most = max(shared)
        near = [clause for (clause, _), count in zip(every, shared, strict=True) if count == most]
        if any(clause.denies == claimed.denies for clause in near):
            return True
        return self.claim.is_past and not claimed.denies and any(says_it_is_over(clause.text) for clause in near)


def _shared(wanted: Sequence[str], said: Vocabulary) -> int:
    """Count the `wanted` words that the clause `said` has."""
    return sum(said.shares_signs(word) if CASELESS.fullmatch(word) else said.has(word) for word in wanted)


def _places_in(text: str) -> Iterator[str]:
    found = text.split()
    for size in (2, 3):
        for at in range(len(found) - size + 1):
            yield " ".join(found[at : at + size]).strip(" .,'")
