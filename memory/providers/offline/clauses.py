"""Cuts a message into clauses that state or ask something, in time linear in a bounded part of the message.

Statements leave out questions, suppositions, the words of others, and quoted or pasted text.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from recollect.memory.language.punctuation import SENTENCE_ENDS, UNSPACED_ENDS, asks
from recollect.memory.language.quoted_parts import own_words, without_speech
from recollect.memory.values.frozen import frozen

MOST_CHARACTERS = 16_000
_MOST_SENTENCES = 300
_MOST_SENTENCE_CHARACTERS = 500
_MOST_LEAD_INS = 8

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u00b4": "'", "`": "'"})
_PASTED = re.compile(r"(?:assistant|user|system|ai|bot|human) ?:", re.IGNORECASE)
_SENTENCE_END = re.compile(rf"(?<=[;{SENTENCE_ENDS}]) |(?<=[{UNSPACED_ENDS}])")
_ABBREVIATION = re.compile(r"\b(?:St|Mr|Mrs|Ms|Dr|Prof|Jr|Sr|Inc|Ltd|vs|e\.g|i\.e|[A-HJ-Z])\.$")
_SUBJECT = (
    r"(?=(?:i|i'm|i've|i'd|my|mine|call|you can call|please|forget|what|what's|who|where|when|why|how|do|does|did|am|is"
    r"|are|can|could|would|will|if|not|he|she|they|we|ich|mein|je|me llamo|mi nombre|vivo|that's|it's)\b)"
)
_CLAUSE_END = re.compile(
    rf"(?:,|;|:| -| \u2013| \u2014) (?:and |but |so |because |though |although |then )?{_SUBJECT}"
    r"| (?:and|but|so|because|while|although|though) (?=(?:i|i'm|i've|my|call me|you can call me|he|she|they|do)\b)"
    r"| (?:and|but) (?=(?:live|work|like|love|hate|enjoy|study|moved|come from|am|don't|no longer) )",
    re.IGNORECASE,
)
_SAME_SUBJECT = re.compile(
    r"(?:live|work|like|love|hate|enjoy|study|moved|come from|am|don't|no longer) ", re.IGNORECASE
)
_LEAD_IN = re.compile(
    r"(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening)|greetings|nice to meet you|no|nope|yes|yeah|yep|ok|okay"
    r"|well|oh|ah|hmm|actually|sorry|so|and|but|also|btw|by the way|fyi|in fact|to be clear|correction|note|please|now"
    r"|remember|don't forget|do not forget|never forget|keep in mind|just so you know|for the record|you should know"
    r"|you must know|you know|i told you|i said|i meant|i mean|as i said|i think you should know|that|anyway|thanks"
    r"|thank you|can you remember|could you remember|hallo|bonjour|hola|salut|nein|non|of course|wait|look|today)"
    r"\b(?: there| everyone| all)?[,:.!]?(?: |$)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\u00bf|(?:what|what's|who|who's|whom|whose|where|where's|when|when's|why|how|how's|which|wer|wo|wie|wann|warum|qui"
    r"|quel|quelle|comment|o\u00f9|d\u00f3nde|c\u00f3mo|qu\u00e9|qui\u00e9n|cu\u00e1l)\b"
    r"|(?:do|does|did|am|is|are|was|were|can|could|will|would|should|have|has|may)(?:n't)? "
    r"(?:i|you|we|he|she|they|it|my|your|there|this|that|the|anyone)\b"
    r"|(?:tell|remind|show|list|give)(?: me)? (?:me |about |what |who |where |all |everything |my )",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(
    r"(?:if|unless|suppose|supposing|imagine|imagining|pretend|pretending|assume|assuming|let's say|say|were i|when"
    r"|once|until|whenever|in (?:my|a|the) (?:dream|story|novel|game|film|movie)|hypothetically)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(r"\b(?:if|unless|pretend|imagine|wish|hypothetically|maybe|perhaps|supposedly)\b", re.IGNORECASE)
_REPORTED = re.compile(
    r"\b(?:(?:he|she|they|you|people|someone|somebody|everyone|everybody|mom|mum|mother|dad|father|boss|wife|husband"
    r"|friend|friends|sister|brother|teacher|doctor|colleague|it|who) (?:just |also |always |once |often |never )?"
    r"(?:says?|said|told|tells|thinks?|thought|claims?|claimed|asks|asked|wrote|writes|believes?|believed|sings|sang|goes"
    r"|called me|calls me|was like)|according to)\b",
    re.IGNORECASE,
)
_REPORTED_BY_NAME = re.compile(
    r"\b[A-Z][a-z]+ (?:says|said|told|tells|thinks|thought|claims|claimed|asked|wrote|sang)\b"
)


@frozen
class Clause:
    """A clause of a message; `evidence` is its text there, with white space folded.

    `text` lacks lead-ins such as "Hi," and may have a subject added.
    """

    text: str
    evidence: str


@frozen
class Clauses:
    """The statements and questions of a message."""

    stated: tuple[Clause, ...]
    asked: tuple[str, ...]


def read_clauses(message: str) -> Clauses:
    """Cut a message into clauses. Only its first 16,000 characters are read."""
    stated: list[Clause] = []
    asked: list[str] = []
    for sentence in _sentences(message):
        _read_sentence(sentence, stated, asked)
    return Clauses(tuple(stated), tuple(asked))


def _sentences(message: str) -> Iterator[str]:
    # Find code fences and quotation marks first: folding turns backticks into apostrophes.
    own = own_words(message[:MOST_CHARACTERS])
    unquoted = without_speech(own).translate(_APOSTROPHES)
    count = 0
    for line in unquoted.splitlines():
        whole = " ".join(line.split())
        if not whole or _PASTED.match(whole):
            continue
        begun = ""
        for piece in _SENTENCE_END.split(whole):
            begun = f"{begun} {piece}".strip()
            if _ABBREVIATION.search(begun[-8:]):
                continue
            count += 1
            if count > _MOST_SENTENCES:
                return
            yield begun[:_MOST_SENTENCE_CHARACTERS]
            begun = ""
        if begun:
            yield begun[:_MOST_SENTENCE_CHARACTERS]


def _read_sentence(sentence: str, stated: list[Clause], asked: list[str]) -> None:
    is_question = asks(sentence)
    reported = _REPORTED.search(sentence) or _REPORTED_BY_NAME.search(sentence)
    parts = [part for part in _parts(sentence.rstrip(f" ;{SENTENCE_ENDS}")) if part.text]
    for place, part in enumerate(parts):
        if _ASKS.match(part.text) or (is_question and place == len(parts) - 1):
            asked.append(" ".join(other.evidence for other in parts[place:]))
            return
        if _SUPPOSES.match(part.text) or reported:
            if is_question:
                asked.append(sentence)
            return
        if not _UNSURE.search(part.text):
            stated.append(part)


def _parts(sentence: str) -> Iterator[Clause]:
    """Yield the clauses of a sentence; one without a subject ("… and work as a nurse") gets the first person."""
    begin = 0
    before = ""
    ends = [(found.start(), found.end()) for found in _CLAUSE_END.finditer(sentence)]
    for start, end in [*ends, (len(sentence), len(sentence))]:
        evidence = sentence[begin:start].strip(" ,;:")
        begin = end
        part = _without_lead_ins(Clause(evidence, evidence))
        if _SAME_SUBJECT.match(part.text) and before.casefold().startswith(("i ", "i'm ", "i've ")):
            part = replace(part, text=f"I {part.text}")
        before = part.text
        yield part


def _without_lead_ins(clause: Clause) -> Clause:
    text = clause.text
    for _ in range(_MOST_LEAD_INS):
        found = _LEAD_IN.match(text)
        if found is None or _ASKS.match(text):
            break
        text = text[found.end() :].lstrip(" ,:")
    return replace(clause, text=f"I'm{text[2:]}" if text[:3].casefold() == "im " else text)
