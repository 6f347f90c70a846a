"""Validity dates: tells whether the user has named the time that a model gives for a fact's validity. Pure."""

from collections.abc import Iterator

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.learning.proof.numbers import Numbers, claimed_numbers
from recollect.memory.learning.proof.sentence import Sentence
from recollect.memory.learning.proof.times import SaidTimes
from recollect.memory.learning.proof.witness import Witness
from recollect.memory.temporal.dates import Dated, read_date

_MOST_READ = 500
"""A time in this many first characters of the message may date facts of its other sentences."""
_EDGES = late_pattern(r"-(?:01-01|12-31)$|-(?:01|28|29|30|31)$")
"""The endings of dates with which a model writes the first or last day of a year or a month."""


def says_date(date: str, quote: str, witness: Witness) -> bool:
    """Tell whether the quote's sentence or the beginning of the message names `date`, or a time that includes it."""
    beginning = witness.own[:_MOST_READ]
    texts = [one.text for one in witness.sentences(witness.places(quote)[:1])]
    return any(_says(Sentence(text, ()), date.strip(), witness) for text in dict.fromkeys([*texts, beginning]))


def _says(sentence: Sentence, date: str, witness: Witness) -> bool:
    times, numbers = SaidTimes(sentence.text, witness.at), Numbers.of(sentence.text)
    for written in _forms(date):
        read = read_date(written[:100])
        if read is not None and _lies_in(read[0], times):
            return True
        other = times.carried_numbers(written, numbers)
        if all(numbers.hold(number) or number in other for number, _ in claimed_numbers(written)):
            return True
    return False


def _forms(date: str) -> Iterator[str]:
    yield date
    shorter = _EDGES.sub("", date)
    if shorter != date:
        yield shorter


def _lies_in(dated: Dated, times: SaidTimes) -> bool:
    claimed = dated.begun(times.at)
    return claimed is not None and any(
        claimed.begin < span.end and (claimed.end > span.begin or claimed.begin == span.begin) for span in times.spans
    )
