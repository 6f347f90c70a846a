"""Witness: the message, its time and the question before it, against which claims are proved. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from recollect.memory.language.quoted_parts import own_words, speeches, without_speech
from recollect.memory.learning.proof.evidence import Heard, find_quote, folded_quote, heard
from recollect.memory.learning.proof.sentence import Sentence, sentence_of
from recollect.memory.values.frozen import frozen


@frozen
class Witness:
    """Holds a folded message, its time (UTC), and what the assistant said just before (`asked`).

    `own` is the message without quoted lines, fences and forwarded mail; `unspoken` also leaves out `speeches`, the
    speech that it quotes.
    """

    own: Heard
    unspoken: Heard
    speeches: Sequence[Heard]
    at: datetime
    asked: str = ""

    @classmethod
    def of(cls, message: str, said: Heard, *, at: datetime, asked: str = "") -> "Witness":
        """Read `message`, whose folded form is `said`."""
        own = own_words(message)
        quoted = speeches(own)
        kept = without_speech(own) if quoted else own
        if not any(char.isalnum() for char in kept):
            kept, quoted = own, []  # all of it is in quotation marks, as some programs send it
        heard_own = said if own == message else heard(own)
        return cls(heard_own, heard(kept) if quoted else heard_own, [heard(one) for one in quoted], at, asked)

    def places(self, quote: str) -> list[tuple[int, int]]:
        """Return the (start, end) of each place in `own` where the quote is the user's own statement."""
        _, places = find_quote(quote, self.own)
        wanted = folded_quote(quote)
        if places and any(wanted in speech for speech in self.speeches) and not find_quote(quote, self.unspoken)[1]:
            return []
        return places

    def sentences(self, places: Sequence[tuple[int, int]]) -> Iterator[Sentence]:
        """Yield the sentences of these places."""
        return (sentence_of(self.own, start, end) for start, end in places)
