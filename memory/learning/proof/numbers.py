"""Numbers of a text, in digits and in words, so that "two", "2" and "\uff12" are equal. Pure.

Of a quoted text every reading of "1,500" and "twenty-one" counts. Each number of a claim must be among these readings.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.learning.proof.number_words import (
    AMBIGUOUS,
    AND,
    JAPANESE_COUNTS,
    NATIVE_KOREAN,
    SCALES,
    SIGN_SCALES,
    SIGNS,
    VALUES,
)
from recollect.memory.values.frozen import frozen

_DIGITS = late_pattern(r"\d+(?:[.,'\u2019]\d+)*")
_PHRASE = late_pattern(r"\d(?:[\d\s().,'\u2019/+\u2010-\u2014-]*\d)?")
_SIGN_RUN = late_pattern(f"[{''.join([*SIGNS, *SIGN_SCALES])}]+")
_TOKENS = late_pattern(r"[^\W\d_]+|\d+(?:[.,]\d+)*|[^\w\s]")
_SIGNED = late_pattern(r"(?<![\w.,)-])[-\u2212](?=\d)")
_GROUPED = late_pattern(r"\d{1,3}(?:[.,'\u2019]\d{3})+")
_MOST_SIGNS = 60
_SPOKEN_DIGITS = 3
_MOST_COUNTED = 10
_FOUR_TWENTIES = (4, 20)
_COUNTED = {**NATIVE_KOREAN, **JAPANESE_COUNTS}


@frozen
class Numbers:
    """Holds the numbers of a quoted text: every reading of each, and its strings of digits without separators."""

    readings: frozenset[str]
    strings: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Numbers":
        """Find the numbers of the folded `text`."""
        plain = ascii_digits(text)
        readings = {reading for found in _DIGITS.finditer(plain) for reading in _readings(found[0])}
        readings |= {f"-{reading}" for found in _SIGNED.finditer(plain) for reading in _after(plain, found.end())}
        spoken = list(_spoken(plain))
        readings |= set(spoken) | _pairs_of(spoken) | set(_signs(plain))
        if not plain.isascii():
            readings |= {str(number) for word, number in _COUNTED.items() if word in plain}
        return cls(frozenset(readings), frozenset(_strings(plain)) | frozenset(_spoken_strings(plain)))

    def hold(self, number: str) -> bool:
        """Tell whether `number`, as a claim writes it, has one of the readings."""
        return not self.readings.isdisjoint(_readings(number))


def claimed_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield each number of a folded claim, with the string of digits around it ("" if it is a word)."""
    plain = ascii_digits(text)
    for phrase in _PHRASE.finditer(plain):
        squeezed = re.sub(r"\D", "", phrase[0])
        for found in _DIGITS.finditer(phrase[0]):
            is_signed = found.start() == 0 and bool(_SIGNED.search(plain[max(0, phrase.start() - 2) : phrase.end()]))
            yield f"-{found[0]}" if is_signed else found[0], squeezed
    for number in [*_spoken(plain, whole=True), *_signs(plain)]:
        if number != "1":
            yield number, ""


def ascii_digits(text: str) -> str:
    """Replace the digits of every script by 0-9."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.digit(char)) if char.isdecimal() and not char.isascii() else char for char in text)


def _readings(written: str) -> Iterator[str]:
    """Yield every reading of a number: its separators may group thousands or mark decimals."""
    sign, digits = ("-", written[1:]) if written.startswith("-") else ("", written)
    if digits.isdigit():
        yield sign + (digits.lstrip("0") or "0")
        return
    if _GROUPED.fullmatch(digits):
        yield sign + (re.sub(r"\D", "", digits).lstrip("0") or "0")
    whole, mark, decimals = digits.replace("'", "").replace("\u2019", "").replace(",", ".").rpartition(".")
    if mark and "." not in whole:
        left = decimals.rstrip("0")
        yield sign + (whole.lstrip("0") or "0") + (f".{left}" if left else "")
        return
    yield sign + digits
    if _GROUPED.fullmatch(digits[: -len(decimals) - 1]):
        left = decimals.rstrip("0")
        yield sign + re.sub(r"\D", "", whole) + (f".{left}" if left else "")


def _after(text: str, begin: int) -> Iterable[str]:
    found = _DIGITS.match(text, begin)
    return _readings(found[0]) if found else ()


def _strings(text: str) -> Iterator[str]:
    for found in _PHRASE.finditer(text):
        yield re.sub(r"\D", "", found[0])


def _spoken(text: str, *, whole: bool = False) -> Iterator[str]:
    """Yield the numbers that words say, and unless `whole` each part of a number by itself too.

    With `whole`, an ambiguous word begins no number, but it may continue one.
    """
    tokens = _TOKENS.findall(text)
    if VALUES.keys().isdisjoint(tokens):
        return  # most texts: no word of them is a number
    number = _Spoken()
    for token in tokens:
        value = None if whole and not number.begun and token in AMBIGUOUS else VALUES.get(token)
        if value is not None:
            if not whole:
                yield str(value)
            yield from number.take(value)
        elif token.isdigit() and len(token) < _MOST_COUNTED and not number.begun:
            number.current = int(token)
        elif token not in AND and token != "-":
            yield from number.end()
    yield from number.end()


@dataclass
class _Spoken:
    """Adds up the words of a number. `begun`: a word has been added; numbers in digits alone are found elsewhere."""

    total: int = 0
    current: int = 0
    begun: bool = False

    def take(self, value: int) -> Iterator[str]:
        """Add a word's value. Yield the number before it first if the word cannot continue that."""
        fits = _takes(self.current, value)
        if not fits:
            yield from self.end()
        if value in SCALES and value > 100:
            self.total, self.current = self.total + max(1, self.current) * value, 0
        elif value in SCALES:
            self.current = max(1, self.current) * value
        elif (self.current, value) == _FOUR_TWENTIES:
            self.current = 80
        else:
            self.current += value
        self.begun = True

    def end(self) -> Iterator[str]:
        """Yield the number if one has begun, and reset."""
        if self.begun:
            yield str(self.total + self.current)
        self.total, self.current, self.begun = 0, 0, False


def _takes(current: int, value: int) -> bool:
    """Tell whether `value` may continue the number `current`: "twenty" takes "one", "two" takes "hundred"."""
    if value in SCALES or (current, value) == _FOUR_TWENTIES:
        return current < max(value, 1000)
    if current % 100 == 0:
        return value < 100
    return value < 20 and current % 10 == 0 and (value < 10 or current % 100 in {60, 80})


def _pairs_of(numbers: Sequence[str]) -> set[str]:
    """Join pairs of two-digit numbers into years as they are spoken: "nineteen ninety"."""
    pairs = pairwise(numbers)
    return {f"{one}{other}" for one, other in pairs if len(one) == len(other) == 2 and one != "10"}


def _spoken_strings(text: str) -> Iterator[str]:
    """Yield runs of three or more digits that are spoken one by one: "five five five"."""
    tokens = _TOKENS.findall(text)
    if VALUES.keys().isdisjoint(tokens):
        return
    run = ""
    for token in [*tokens, ""]:
        value = VALUES.get(token)
        if value is not None and value < 10:
            run += str(value)
        elif run:
            if len(run) >= _SPOKEN_DIGITS:
                yield run
            run = ""


def _signs(text: str) -> Iterator[str]:
    """Yield the numbers that ideographs write."""
    if text.isascii():
        return
    for found in _SIGN_RUN.finditer(text):
        total = section = digit = 0
        for char in found[0][:_MOST_SIGNS]:
            if char in SIGNS:
                digit = digit * 10 + SIGNS[char]
            elif SIGN_SCALES[char] < 10_000:
                section += max(1, digit) * SIGN_SCALES[char]
                digit = 0
            else:
                total += max(1, section + digit) * SIGN_SCALES[char]
                section = digit = 0
        yield str(total + section + digit)
