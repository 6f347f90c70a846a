"""Packs ranked hits into a token budget: whole, as excerpts, or not at all. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from recollect.memory.language.sentences import sentences
from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.hit import Hit
from recollect.memory.threads.summary_text import cut_at_word
from recollect.memory.values.frozen import frozen
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN, estimate_tokens

Relevance = Callable[[str], float]
"""Returns how relevant a passage is to the query, 0 or more."""

LONG_SHARE = 0.4
"""A message that costs more than this share of the budget is shortened to its best passages."""
TOKEN_PRICE = 0.0007
"""The score that a hit loses for each token, in the order in which hits enter the budget."""
LEAST_TOKENS = 25
"""The shortest excerpt, in tokens: a shorter one says too little."""
GAP = " […] "
_MOST_PASSAGES = 2_000


@frozen
class Packed:
    """The hits that fit, best first, each followed by its neighbours; the ids of dropped hits and of neighbours."""

    hits: Sequence[Hit]
    left_out: frozenset[str]
    neighbours: frozenset[str]


def cost(entry: Entry, content: str | None = None) -> int:
    """Return the tokens of `[date] speaker: text`: ceil(characters / 4). `content` replaces the entry's own text."""
    speaker = entry.name or entry.role or entry.kind
    said = entry.content if content is None else content
    return estimate_tokens(f"[{entry.created_at:%Y-%m-%d}] {speaker}: {said}")


def pack(
    hits: Sequence[Hit],
    budget: int,
    *,
    relevance: Relevance,
    neighbours: Mapping[str, Sequence[Entry]],
    first: Sequence[str] = (),
) -> Packed:
    """Pack the hits into `budget` tokens, and their neighbours into what is left; keep the hits' order.

    Of two hits with about the same score the cheaper one is taken first. A long message is shortened to its best
    passages by `relevance`. `neighbours` are, by a hit's id, the messages beside it that it needs; one that is a hit
    itself enters once. `first` are ids of hits that enter in this order, before all others.
    """
    places = {name: place for place, name in enumerate(first)}
    left, fitting, left_out = budget, dict[str, Hit](), set[str]()
    by_price = sorted(hits, key=lambda one: cost(one.entry) * TOKEN_PRICE - one.score)
    for hit in sorted(by_price, key=lambda one: places.get(one.entry.id, len(places))):
        fitted = _fitted(hit, left, min(left, int(budget * LONG_SHARE)), relevance)
        if fitted is None:
            left_out.add(hit.entry.id)
            continue
        left -= cost(fitted.entry)
        fitting[hit.entry.id] = fitted
    chosen = [fitting[hit.entry.id] for hit in hits if hit.entry.id in fitting]
    given, beside = set(fitting), set[str]()
    packed = list[Hit]()
    for hit in chosen:
        packed.append(hit)
        for entry in neighbours.get(hit.entry.id, ()):
            if entry.id not in given and cost(entry) <= left:
                left -= cost(entry)
                given.add(entry.id)
                beside.add(entry.id)
                packed.append(Hit(entry, hit.score, 0.0, hit.recency))
    return Packed(packed, frozenset(left_out), frozenset(beside))


def excerpt(text: str, characters: int, *, relevance: Relevance) -> str:
    """Return the best passages of `text` in at most `characters`, in their order; "" where it has no sentence.

    A passage is a sentence. Consecutive passages are joined by a space, others by " […] ". Where none is relevant, the
    excerpt is the text's beginning.
    """
    if len(text) <= characters:
        return text
    passages = sentences(text, most=_MOST_PASSAGES)
    ranked = sorted(range(len(passages)), key=lambda place: (-relevance(passages[place]), place))
    chosen, left = set[int](), characters - 2 * len(GAP)
    for place in ranked:
        if not chosen and left > 0:
            passages[place] = cut_at_word(passages[place], left)  # the best one enters in any case
        needed = len(passages[place]) + len(GAP)
        if needed <= left + len(GAP) * (not chosen):
            chosen.add(place)
            left -= needed
    return _joined(passages, chosen)


def _joined(passages: Sequence[str], chosen: set[int]) -> str:
    parts = list[str]()
    for place in sorted(chosen):
        if place and place - 1 not in chosen:
            parts.append(GAP.strip())
        parts.append(passages[place])
    if chosen and max(chosen) < len(passages) - 1:
        parts.append(GAP.strip())
    return " ".join(parts)


def _fitted(hit: Hit, left: int, allowed: int, relevance: Relevance) -> Hit | None:
    """Return the hit whole if it costs at most `allowed` tokens, else as an excerpt; None where that is too short.

    A hit of at most twice `LEAST_TOKENS` enters whole as long as it fits into the `left` tokens.
    """
    price = cost(hit.entry)
    if price <= allowed or (price <= left and price <= 2 * LEAST_TOKENS):
        return hit
    head = cost(hit.entry, "")
    if allowed - head < LEAST_TOKENS:
        return None
    text = excerpt(hit.entry.content, (allowed - head) * CHARACTERS_PER_TOKEN, relevance=relevance)
    return replace(hit, entry=replace(hit.entry, content=text), excerpt=True) if text else None
