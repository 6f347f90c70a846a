"""Five-fold cross-validation by conversation: each pair is measured with weights chosen on the other eight."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import product
from statistics import fmean

from benchmarks.recalling.locomo import Question, Talk
from benchmarks.recalling.measures import AT, BUDGET, Outcome, outcome
from benchmarks.recalling.passes import say, search
from recollect.memory.memory import Memory
from recollect.memory.recall.candidate_filter import CandidateFilter
from recollect.memory.recall.candidates.candidate_query import CandidateQuery
from recollect.memory.recall.candidates.retrieval import retrieve
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.near_repeats import losses
from recollect.memory.recall.query import prepare_query
from recollect.memory.recall.ranking import Scored, is_relevant, rank
from recollect.memory.recall.search import MOST_NAMES, SMALL
from recollect.memory.recall.signals import Signals, signals_for
from recollect.memory.temporal.interval_questions import asks_for_nothing_else
from recollect.memory.temporal.temporal import find_interval
from recollect.memory.values.scope import Scope

FOLDS = 5
CHOSEN_BY = (5, 10, 25)
"""Weights are chosen by the mean of recall at these, and within the budget of tokens."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Differences of signals from their defaults: weight moved from the cosines to BM25, and two factors."""

    words: float = 0.0
    thread: float = 1.0
    fact: float = 1.0

    def of(self, base: Signals) -> Signals:
        """Return `base` with these weights; with the defaults `base` itself."""
        if self == Weights():
            return base
        cosines = base.dense + base.context
        moved = min(max(self.words, -base.bm25), cosines)
        kept = (cosines - moved) / cosines if cosines else 1.0
        return replace(
            base,
            dense=base.dense * kept,
            context=base.context * kept,
            bm25=base.bm25 + moved,
            thread=base.thread * self.thread,
            thread_for_several=base.thread_for_several * self.thread,
            fact=base.fact * self.fact,
        )


def weights_grid() -> list[Weights]:
    """Return a small grid around the defaults, which come first."""
    around = [Weights(*point) for point in product((-0.1, 0.0, 0.1), (0.7, 1.0, 1.3), (0.5, 1.0, 1.5))]
    return [Weights(), *(weights for weights in around if weights != Weights())]


async def cross_validated(memory: Memory, talks: Sequence[Talk], *, doing: str) -> list[Outcome]:
    """Return the outcomes of all questions, each with the weights that are best on conversations of other folds.

    Candidates are retrieved once a question and ranked with each weights; times are not measured.

    Raises:
        RuntimeError: the ranking here is not what the service's search gives, which the defaults show, or a reranker
            is set.
    """
    if memory.config.reranker is not None or memory.config.reranker_path is not None:
        raise RuntimeError("Folds are measured without a reranker: unset RERANKER and RERANKER_PATH.")
    grid = weights_grid()
    passes: list[list[Outcome]] = [[] for _ in grid]
    for talk in talks:
        say(f"{doing}, {len(grid)} weights: {talk.id}")
        for question in talk.questions:
            rankings = await _rankings(memory, talk, question, grid)
            for found, hits in zip(passes, rankings, strict=True):
                found.append(
                    outcome(hits, question.evidence, talk=talk.id, category=question.category, milliseconds=0.0)
                )
    return chosen_elsewhere(passes, folds([talk.id for talk in talks]))


async def _rankings(memory: Memory, talk: Talk, question: Question, grid: Sequence[Weights]) -> list[Sequence[Hit]]:
    """Rank the question's candidates with each weights of `grid`, the first of which are the defaults."""
    given = await search(memory, talk.id, question.text, max(AT), now=talk.asked_at)
    named = await asyncio.to_thread(find_interval, question.text, now=talk.asked_at, timezone=UTC)
    if named is not None and asks_for_nothing_else(named.rest):
        return [given] * len(grid)  # a period is listed, not ranked
    names = await memory.parts.store.timeline.names(talk.id, limit=MOST_NAMES)
    query = prepare_query(question.text, names=names, period=named.period if named is not None else None)
    meaning = memory.parts.embedder.knows_meaning
    sought = CandidateQuery(
        scope=Scope(talk.id),
        dense=await memory.parts.embedder.embed_query(query.dense_text),
        bm25=query.bm25,
        kinds=("episode",),
        period=query.period,
        has_context=meaning,
    )
    candidates = await retrieve(memory.parts.index, sought)
    base = signals_for(candidates, knows_meaning=meaning)
    found = [_hits(rank(candidates, query, knows_meaning=meaning, signals=weights.of(base))) for weights in grid]
    if [hit.entry.id for hit in found[0]] != [hit.entry.id for hit in given]:
        raise RuntimeError("The folds' ranking is not the search's own: bring benchmarks/recalling/folds.py in step.")
    return found


def _hits(scored: Sequence[Scored]) -> Sequence[Hit]:
    """Select hits as the search does: all of a small memory, of others the relevant ones."""
    filtered = CandidateFilter(scored)
    filtered.merge()
    if len(filtered.left) > SMALL:
        filtered.keep(lambda one: is_relevant(one.candidate), "threshold", "not relevant")
    filtered.shift("near_repeat", losses(filtered.left, count=max(AT)))
    return [Hit(one.candidate.entry, one.score, one.similarity, 0.0) for one in filtered.left[: max(AT)]]


def folds(ids: Sequence[str]) -> list[frozenset[str]]:
    """Assign the conversations to folds: neighbours in the file lie in different ones."""
    return [frozenset(ids[start::FOLDS]) for start in range(min(FOLDS, len(ids)))]


def chosen_elsewhere(passes: Sequence[Sequence[Outcome]], parts: Sequence[frozenset[str]]) -> list[Outcome]:
    """Return for each part the outcomes of the pass that is best on all other parts; of equal ones the first."""
    found = list[Outcome]()
    for part in parts:
        best = max(passes, key=lambda outcomes: _score([one for one in outcomes if one.talk not in part]))
        found += [one for one in best if one.talk in part]
    return found


def _score(outcomes: Sequence[Outcome]) -> float:
    if not outcomes:
        return 0.0  # there is no other part
    recalls = [fmean(one.at(k) for one in outcomes) for k in CHOSEN_BY]
    return fmean([*recalls, fmean(one.within(BUDGET) for one in outcomes)])
