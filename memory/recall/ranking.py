"""Ranking steps as pure functions on candidates: the clock and the options are arguments.

A score is the sum of channels scaled to [0, 1] and of signals of the conversation; thresholds act on raw similarity.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import mul
from types import MappingProxyType
from typing import NamedTuple

from recollect.memory.language.punctuation import asks
from recollect.memory.ports.vector_index import Entry, Vector
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.query import PreparedQuery
from recollect.memory.recall.signals import Signals, signals_for
from recollect.memory.temporal.dates import says_time
from recollect.memory.values.period import Period

RECENCY_HALF_LIFE_DAYS = 30.0
RELEVANT = 0.1
"""The least cosine that counts as relevant. Unrelated texts rarely reach it; related ones with few common words may
miss it."""
THREAD_BEST = 3
"""A thread's score is the mean of its best so many messages; each missing one counts as 0."""
READ_FOR_TIMES = 60
"""How many of the best candidates are searched for time words: reading all texts would take too long."""
FEW_FACTS = 10
"""With fewer facts than this their own lowest cosine is no scale: the messages' lowest cosine takes its place."""
AFTERWARDS = timedelta(days=7)
"""How long after a period people still speak of what happened in it."""
LONG_ENOUGH = 300
_CHANNELS = ("dense", "context", "bm25", "fact")
"""The channels, in the order in which a candidate has its raw scores."""
_ALWAYS_TOLD = frozenset({*_CHANNELS, "fused"})
_READ_CHARACTERS = 1_000


class Scored(NamedTuple):
    """A candidate with the score that orders it and, by name, the parts of that score.

    The score is about 1 for the best match in every channel, more with signals, and may be below 0. `scores` has the
    raw ones of the channels (`dense`, `context`, `bm25`, `fact`), and the parts that add up to the score: `fused` and
    each signal that is not 0. `older` are the entries that say the same, newest first (`repeats.py`).
    """

    candidate: Candidate
    score: float
    scores: Mapping[str, float] = MappingProxyType[str, float]({})
    older: Sequence[Entry] = ()

    @property
    def similarity(self) -> float:
        """Return the raw cosine of its text, in [-1, 1]."""
        return self.candidate.similarity


def rank(
    candidates: Sequence[Candidate], query: PreparedQuery, *, knows_meaning: bool, signals: Signals | None = None
) -> list[Scored]:
    """Score the candidates and return them best first; ties go by id.

    `knows_meaning`: see `Embedder`. `signals` replaces the weights that `signals_for` would choose.
    """
    used = (signals or signals_for(candidates, knows_meaning=knows_meaning)).scaled()
    entries = [one.entry for one in candidates]
    asking = [entry.kind == "episode" and asks(entry.content) for entry in entries]
    columns = {"fused": fuse(candidates, used), **_own_signals(entries, asking, query, used)}
    if query.asks_when:
        columns["time"] = _timed(entries, _sums(columns), used.time_words)
    if used.answer:
        columns["answer"] = [used.answer * score for score in _asked_before(entries, asking, _sums(columns))]
    weight = used.thread_for_several if query.asks_for_several else used.thread
    columns["thread"] = [weight * prior for prior in thread_priors(entries, _sums(columns))]
    names, rows = (*_CHANNELS, *columns), zip(*columns.values(), strict=True)
    scored = [
        Scored(candidate, sum(row), _explained(names, (*candidate.raw, *row)))
        for candidate, row in zip(candidates, rows, strict=True)
    ]
    return sorted(scored, key=lambda one: (-one.score, one.candidate.entry.id))


def fuse(candidates: Sequence[Candidate], signals: Signals) -> list[float]:
    """Return the weighted sum of the channels: cosines scaled to [0, 1] by min-max, BM25 as a share of the best.

    Where a candidate has no context, its own cosine takes that place; for a fact or a passage it takes the place of the
    nearest fact, too.
    """
    dense = [one.dense for one in candidates]
    context = [one.dense if one.context is None else one.context for one in candidates]
    stated = {"fact", "document"}
    fact = [one.dense if one.fact is None and one.entry.kind in stated else one.fact for one in candidates]
    few = sum(value is not None for value in fact) < FEW_FACTS
    lowest = min((value for value in dense if value is not None), default=None) if few else None
    near = spread(dense)
    weighted = (
        (signals.dense, near),
        (signals.context, spread(context)),
        (signals.bm25, _own_words(candidates, share_of_best([one.bm25 for one in candidates]), near, signals.echo)),
        (signals.fact, spread(fact, lowest=lowest)),
    )
    scaled = [[weight * value for value in values] for weight, values in weighted if weight]
    return [math.fsum(parts) for parts in zip(*scaled, strict=True)] if scaled else [0.0] * len(candidates)


def _own_words(
    candidates: Sequence[Candidate], words: Sequence[float], near: Sequence[float], echo: float
) -> list[float]:
    """Reduce an assistant message's share of BM25 by how far its own text is: part of it are its question's words."""
    return [
        share * (1 - echo + echo * own) if one.entry.role == "assistant" else share
        for one, share, own in zip(candidates, words, near, strict=True)
    ]


def spread(values: Sequence[float | None], *, lowest: float | None = None) -> list[float]:
    """Scale the values that are not None by min-max: the highest is 1, the lowest (or `lowest`, if less) 0.

    A None becomes 0; where all values are equal, they become 1.
    """
    there = [value for value in values if value is not None]
    if not there:
        return [0.0] * len(values)
    low, high = min(there), max(there)
    low = low if lowest is None else min(low, lowest)
    width = high - low
    if width <= 0:
        return [0.0 if value is None else 1.0 for value in values]
    return [0.0 if value is None else (value - low) / width for value in values]


def share_of_best(values: Sequence[float | None]) -> list[float]:
    """Divide each value, 0 or more, by the greatest one; a None becomes 0."""
    best = max((value for value in values if value is not None), default=0.0)
    return [value / best if value is not None and best > 0 else 0.0 for value in values]


def thread_priors(entries: Sequence[Entry], scores: Sequence[float]) -> list[float]:
    """Return for each message the mean of its thread's three best scores; for any other entry its own score."""
    best: dict[str, list[float]] = {}
    for entry, score in zip(entries, scores, strict=True):
        if _is_of_a_thread(entry):
            best.setdefault(entry.thread_id or "", []).append(score)
    means = {thread: math.fsum(sorted(found)[-THREAD_BEST:]) / THREAD_BEST for thread, found in best.items()}
    return [
        means[entry.thread_id or ""] if _is_of_a_thread(entry) else score
        for entry, score in zip(entries, scores, strict=True)
    ]


def within(period: Period, created_at: datetime) -> float:
    """Return 1 for a time within `period`, 0.5 within the week after it, else 0."""
    if period.begin <= created_at < max(period.end, period.begin + timedelta(microseconds=1)):
        return 1.0
    return 0.5 if period.end <= created_at < period.end + AFTERWARDS else 0.0


def is_relevant(candidate: Candidate) -> bool:
    """Tell whether the candidate is near the query at all: by the raw cosine of text or context, or by a word."""
    cosines = (candidate.dense, candidate.context)
    return any(value is not None and value >= RELEVANT for value in cosines) or bool(candidate.bm25)


def recency(created_at: datetime, now: datetime) -> float:
    """Return how recent a memory is, in [0, 1]: 1 now, 0.5 after 30 days (exponential decay); a later time is 1."""
    days = max(0.0, (now - created_at).total_seconds() / 86_400)
    return 0.5 ** (days / RECENCY_HALF_LIFE_DAYS)


def blend(similarity: float, fresh: float, weight: float) -> float:
    """Return (1 - weight) · similarity + weight · recency; neither is scaled before."""
    return (1 - weight) * similarity + weight * fresh


def mmr(relevance: Sequence[float], vectors: Sequence[Vector], *, limit: int, trade_off: float) -> list[int]:
    """Choose `limit` items greedily by maximal marginal relevance, and return their places.

    Each step takes the item with the highest λ · relevance - (1 - λ) · (its greatest cosine to those already chosen), λ
    being `trade_off` in [0, 1] (Carbonell & Goldstein, SIGIR 1998). Ties go to the earlier item.
    """
    squares = [math.fsum(map(mul, vector, vector)) for vector in vectors]
    closest = [0.0] * len(vectors)
    left, chosen = list(range(len(vectors))), list[int]()
    while left and len(chosen) < limit:
        best = max(left, key=lambda place: trade_off * relevance[place] - (1 - trade_off) * closest[place])
        left.remove(best)
        chosen.append(best)
        for place in left:
            alike = _cosine(vectors[place], vectors[best], squares[place] * squares[best])
            closest[place] = alike if len(chosen) == 1 else max(closest[place], alike)
    return chosen


def cosine_of_vectors(left: Vector, right: Vector) -> float:
    """Return the cosine of two vectors, in [-1, 1]; 0 where one of them is zero."""
    return _cosine(left, right, math.fsum(map(mul, left, left)) * math.fsum(map(mul, right, right)))


def _cosine(left: Vector, right: Vector, squares: float) -> float:
    """Return the cosine of two vectors; `squares` is the product of their squared lengths."""
    return math.fsum(map(mul, left, right)) / math.sqrt(squares) if squares else 0.0


def _own_signals(
    entries: Sequence[Entry], asking: Sequence[bool], query: PreparedQuery, signals: Signals
) -> dict[str, list[float]]:
    """Return, by signal, what each entry's own properties add; only signals that can differ from 0."""
    found: dict[str, list[float]] = {}
    if signals.length:
        share = signals.length / math.log1p(LONG_ENOUGH)
        found["length"] = [share * math.log1p(min(len(entry.content), LONG_ENOUGH)) for entry in entries]
    if query.speaker is not None:
        found["speaker"] = [signals.speaker * (entry.name == query.speaker) for entry in entries]
    if query.period is not None:
        # When a document was added says nothing of the time that it speaks of.
        found["date"] = [
            signals.date * (entry.kind != "document" and within(query.period, entry.created_at)) for entry in entries
        ]
    if signals.user and not query.to_assistant and not _is_of_another(entries, query.speaker):
        found["user"] = [signals.user * (entry.kind == "episode" and entry.role == "user") for entry in entries]
    if signals.question:
        found["question"] = [-signals.question * asks for asks in asking]
    return found


def _is_of_another(entries: Sequence[Entry], speaker: str | None) -> bool:
    """Tell whether the query asks about a speaker who is not the user.

    Then only the speaker's messages are raised: raising the user's own too would cancel that out.
    """
    roles = {entry.role for entry in entries if entry.kind == "episode" and speaker and entry.name == speaker}
    return bool(roles) and "user" not in roles


def _timed(entries: Sequence[Entry], scores: Sequence[float], weight: float) -> list[float]:
    """Return `weight` for those of the best entries whose text names a time, else 0."""
    found = [0.0] * len(entries)
    for place in heapq.nlargest(READ_FOR_TIMES, range(len(entries)), key=scores.__getitem__):
        if says_time(entries[place].content[:_READ_CHARACTERS]):
            found[place] = weight
    return found


def _asked_before(entries: Sequence[Entry], asking: Sequence[bool], scores: Sequence[float]) -> list[float]:
    """Return for each message the score of the one right before it, if that is a candidate and asks; else 0."""
    placed = {
        (one.thread_id, one.position): place
        for place, one in enumerate(entries)
        if one.position is not None and _is_of_a_thread(one)
    }
    found = [0.0] * len(entries)
    for (thread, position), place in placed.items():
        # A message without a reply leaves a gap.
        before = placed.get((thread, position - 1), placed.get((thread, position - 2)))
        if before is not None and asking[before]:
            found[place] = max(0.0, scores[before])
    return found


def _is_of_a_thread(entry: Entry) -> bool:
    return entry.kind == "episode" and entry.thread_id is not None


def _sums(columns: Mapping[str, Sequence[float]]) -> list[float]:
    return [sum(row) for row in zip(*columns.values(), strict=True)]


def _explained(names: Sequence[str], parts: Sequence[float | None]) -> dict[str, float]:
    """Return the named `parts` that a candidate has, without signals that are 0."""
    return {
        name: part
        for name, part in zip(names, parts, strict=True)
        if part or (part is not None and name in _ALWAYS_TOLD)
    }
