"""Merges candidates that say the same: equal texts of one speaker are one hit, the newest. Pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from recollect.memory.language.folding import folded
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.ranking import Scored
from recollect.memory.values.fact import fold
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import iso

MOST_IDS = 50
"""How many ids a hit names at most of the texts that are equal to it."""
_FEW, _MORE = 25, 200
"""How many letters and digits of a text's beginning and end are compared before the whole is folded."""
_CHARACTERS_EACH = 4
"""How many characters are read for each letter that is compared; more only where they hold too few."""
_MOST_JOINED = 3
"""How many letters may become one when the text goes on: those of a Hangul syllable."""
_SIGNS = late_pattern(r"[\W_]+")
_ASCII_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())


@frozen
class Repeats:
    """How often one speaker said a hit's text, itself included: `first` and `last` are when (UTC).

    `ids` are up to `MOST_IDS` of the memories that say it, newest first.
    """

    count: int
    first: datetime
    last: datetime
    ids: Sequence[str]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "Repeats | None":
        """Return the repeats of `entries`, which are newest first; None for one entry alone."""
        if len(entries) < 2:
            return None
        ids = [entry.memory_id for entry in entries[:MOST_IDS]]
        return cls(len(entries), entries[-1].created_at, entries[0].created_at, ids)

    def as_json(self) -> dict[str, Any]:
        """Return the `repeats` of a HIT of the HTTP contract."""
        return {"count": self.count, "first": iso(self.first), "last": iso(self.last), "ids": list(self.ids)}


class Merged(NamedTuple):
    """A candidate that stands for those equal to it, and the `older` ones, newest first."""

    kept: Scored
    older: Sequence[Scored]


def merge(scored: Sequence[Scored], begun: Sequence[Sequence[int]] | None = None) -> list[Merged]:
    """Merge equal texts of one speaker and kind, and return all candidates best first.

    The newest is kept, with the best score of those that it stands for: the rest of a better score is its part
    `repeated`. Ties keep their order. `begun` is `begun_alike` of their entries, where it is known.
    """
    merged = list[Merged]()
    for places in equal([one.candidate.entry for one in scored], begun):
        newest, *older = (scored[place] for place in places)
        if not older:
            merged.append(Merged(newest, older))
            continue
        best = max(scored[place].score for place in places)
        if best > newest.score:
            parts = {**newest.scores, "repeated": best - newest.score}
            newest = newest._replace(score=best, scores=parts)
        merged.append(Merged(newest._replace(older=[one.candidate.entry for one in older]), older))
    return sorted(merged, key=lambda one: -one.kept.score)


def begun_alike(entries: Sequence[Entry]) -> list[list[int]]:
    """Return the places of entries of one speaker and kind that begin alike.

    That tells most texts apart, and reads little of each; of those left together `equal` may read all.
    """
    groups = _split(range(len(entries)), lambda place: speaker_of(entries[place]))
    return [part for group in groups for part in _by_text(entries, group, _beginning)]


def equal(entries: Sequence[Entry], begun: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """Return the places of entries that say the same, newest first in each list; the lists keep the entries' order."""
    groups, alone = [list(group) for group in (begun or begun_alike(entries))], list[list[int]]()
    for form in _FORMS:
        alone += [group for group in groups if len(group) == 1]
        groups = [part for group in groups if len(group) > 1 for part in _by_text(entries, group, form)]
    ordered = sorted([*alone, *groups])  # by their first places, because each list ascends
    for group in ordered:
        if len(group) > 1:
            group.sort(key=lambda place: _age(entries[place]), reverse=True)
    return ordered


def most_repeated(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries whose text another of them has too, letter by letter."""
    said: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        said.setdefault((*speaker_of(entry), entry.content), []).append(entry)
    return [entry for group in said.values() if len(group) > 1 for entry in group]


def _by_text(entries: Sequence[Entry], places: Sequence[int], form: Callable[[str], Hashable]) -> list[list[int]]:
    """Split `places` by the texts' forms; each text is formed once, and none where all are equal."""
    texts = dict.fromkeys(entries[place].content for place in places)
    if len(texts) < 2:
        return [list(places)]
    forms = {text: form(text) for text in texts}
    return _split(places, lambda place: forms[entries[place].content])


def _split(places: Iterable[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return list(groups.values())


def says_the_same(newest: Entry) -> str:
    """Return the trace's reason for an entry that was merged into the `newest` one."""
    return f"{newest.memory_id} says the same, and is newer"


def speaker_of(entry: Entry) -> tuple[Hashable, ...]:
    """Return kind and speaker; a passage is its document's."""
    return entry.kind, entry.role, entry.name, entry.origin.id if entry.origin is not None else None


def _beginning(text: str, count: int = _FEW) -> str:
    """Return the first `count` letters and digits, case-folded."""
    read = count * _CHARACTERS_EACH
    while True:
        letters = _letters(text[:read])
        if read >= len(text) or len(letters) >= count + _MOST_JOINED:
            return letters[:count]
        read *= _CHARACTERS_EACH


def _longer_beginning(text: str) -> str:
    return _beginning(text, _MORE)


def _ending(text: str) -> str:
    """Return the last letters and digits, case-folded."""
    read = _FEW * _CHARACTERS_EACH
    while True:
        letters = _letters(text[-read:])
        if read >= len(text) or len(letters) >= _FEW + _MOST_JOINED:
            return letters[-_FEW:]
        read *= _CHARACTERS_EACH


def _ascii_letters(text: str) -> bytes:
    """Return the ASCII letters and digits, case-folded: many times as fast as to find out what else is a letter."""
    return folded(text).encode("ascii", "ignore").translate(None, _ASCII_SIGNS)


def _letters(text: str) -> str:
    """Return the letters and digits, case-folded."""
    plain = folded(text)
    return plain.encode().translate(None, _ASCII_SIGNS).decode() if plain.isascii() else _SIGNS.sub("", plain)


def _folded(text: str) -> str:
    return fold(text) or text  # A text of signs alone folds to nothing, and "?" is not "!".


def _age(entry: Entry) -> tuple[datetime, int, str]:
    return entry.created_at, entry.position or 0, entry.id


_FORMS = (_longer_beginning, _ending, _ascii_letters, _letters, _folded)
"""The forms by which texts that begin alike are told apart, the cheapest first; texts that are equal in one are so in
those before."""
