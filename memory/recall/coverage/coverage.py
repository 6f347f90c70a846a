"""Chooses hits that cover a period, or a subject over time, in place of the few best ones. Pure."""

from collections.abc import Sequence

from recollect.memory.ports.vector_index import Entry
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period

MOST_COVERED = 50
"""How many hits cover a period where a token budget, and not `top_k`, bounds them."""
MOST_READ = 2_000
"""How many messages of a period are read at most."""
SLICES = 20
"""Into how many parts a period with more messages is cut; of each the oldest ones are read."""
PER_PLACE = 3
"""How many of the best candidates are chosen from, as a multiple of the places."""
LEAST_SHARE = 0.5
"""The least score of a candidate that is chosen, as a share of the best one's: others are not of the subject."""


@frozen
class Coverable:
    """An entry that may be chosen, and its score; 0 where nothing was ranked."""

    entry: Entry
    score: float = 0.0


def cover(found: Sequence[Coverable], count: int) -> list[int]:
    """Choose up to `count` of what was `found`, and return their places, those that matter most first.

    Each thread gets a place before any gets a second. Within a thread the chosen ones are spread over its time: it is
    cut into as many parts as it has places, and the best of each part is chosen, a user's message before a reply.
    A summary is chosen only where no message of its thread is.
    """
    threads = _threads(found)
    shares = _shares([len(places) for places in threads], count)
    spread = [_spread(found, places, share) for places, share in zip(threads, shares, strict=True)]
    rounds = max(shares, default=0)
    return [chosen[turn] for turn in range(rounds) for chosen in spread if turn < len(chosen)]


def slices(period: Period) -> list[Period]:
    """Cut the period into `SLICES` parts of equal length."""
    step = (period.end - period.begin) / SLICES
    begins = [period.begin + number * step for number in range(SLICES)]
    return [Period(begin, end) for begin, end in zip(begins, [*begins[1:], period.end], strict=True)]


def best_of(scores: Sequence[float], count: int) -> list[int]:
    """Return the places of the candidates that are of the subject; `scores` are descending, `count` the free places."""
    least = LEAST_SHARE * max(scores, default=0.0)
    return [place for place, score in enumerate(scores[: PER_PLACE * count]) if score >= least]


def in_order(entry: Entry) -> tuple[float, str, int]:
    """Return what sorts entries by time, those of one time by thread and position."""
    return entry.created_at.timestamp(), entry.thread_id or "", entry.position or 0


def _threads(found: Sequence[Coverable]) -> list[list[int]]:
    """Return the places of each thread in order of time, the thread of the best candidate first, ties by time."""
    threads: dict[str, list[int]] = {}
    for place in sorted(range(len(found)), key=lambda place: in_order(found[place].entry)):
        threads.setdefault(_home(found[place].entry), []).append(place)
    kept = [_without_summaries(found, places) for places in threads.values()]
    return sorted(kept, key=lambda places: -max(found[place].score for place in places))


def _home(entry: Entry) -> str:
    return entry.origin.id if entry.origin is not None else entry.thread_id or entry.kind


def _without_summaries(found: Sequence[Coverable], places: list[int]) -> list[int]:
    said = [place for place in places if found[place].entry.kind != "summary"]
    return said or places


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """Share `count` places out, one each by turns; where threads are more than places, over all of them evenly."""
    shares = [0] * len(sizes)
    if len(sizes) > count:
        for number in range(count):
            shares[number * len(sizes) // count] = 1
        return shares
    left = min(count, sum(sizes))
    while left:
        for number, size in enumerate(sizes):
            if left and shares[number] < size:
                shares[number] += 1
                left -= 1
    return shares


def _spread(found: Sequence[Coverable], places: Sequence[int], share: int) -> list[int]:
    """Choose `share` of the places, the best of each part of their time; those that are far apart come first."""
    chosen = list[int]()
    for part in range(share):
        parted = places[part * len(places) // share : (part + 1) * len(places) // share]
        chosen.append(max(parted, key=lambda place: (found[place].score, found[place].entry.role != "assistant")))
    order = list[int]()
    left = list(range(len(chosen)))
    while left:
        far = max(left, key=lambda number: min((abs(number - taken) for taken in order), default=0))
        left.remove(far)
        order.append(far)
    return [chosen[number] for number in order]
