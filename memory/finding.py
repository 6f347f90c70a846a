"""The plain search: what of all kinds of memory a query finds, without a turn."""

from collections.abc import Sequence
from dataclasses import replace

from memory.documents import Documents
from memory.recall import MMR_CANDIDATES, Hit, Recall, RecallOptions, rank
from memory.scope import Scope
from memory.times import Clock
from memory.vector_index import Kind, Match, Query

KINDS: tuple[Kind, ...] = ("episode", "fact", "summary")
MOST_CANDIDATES = 1_000
BATCH = 500


async def find(
    recall: Recall, scope: Scope, query: str, options: RecallOptions, *, kinds: Sequence[Kind] = KINDS
) -> list[Hit]:
    """What of the thread (or, without one, of all the user's) is nearest in meaning, best first: at most `top_k`.

    Facts and summaries are as the documents have them now: facts that no longer hold, or do not hold yet, are left out.
    Of `options`, `top_k`, `score_threshold` and the weights count.

    Raises:
        IndexUnavailable, StoreUnavailable, ModelUnavailable: nothing was searched.
    """
    if options.top_k == 0 or not kinds:
        return []
    dense = await recall.embedder.embed_query(query)
    wanted = options.top_k * (MMR_CANDIDATES if options.mmr_lambda is not None or options.recency_weight else 1)
    limit = wanted
    while True:
        asked = Query(scope=scope, dense=dense, limit=limit, kinds=kinds, with_vectors=options.mmr_lambda is not None)
        found = await recall.index.search(asked)
        current = await _current(recall.documents, scope.user_id, found, recall.clock)
        if len(current) >= wanted or len(found) < limit or limit >= MOST_CANDIDATES:
            return rank(current[:wanted], options, now=recall.clock())
        limit = min(MOST_CANDIDATES, 2 * limit)


async def _current(documents: Documents, user_id: str, found: Sequence[Match], clock: Clock) -> list[Match]:
    """The matches that the documents stand behind, with the documents' text."""
    texts = await _texts_of_facts(
        documents, user_id, [match.entry.id for match in found if match.entry.kind == "fact"], clock
    )
    threads = [match.entry.thread_id for match in found if match.entry.kind == "summary" and match.entry.thread_id]
    for start in range(0, len(threads), BATCH):
        records = await documents.threads.records(user_id=user_id, thread_ids=threads[start : start + BATCH])
        texts |= {record.point_id: record.summary for record in records if record.has_point and record.summary}
    return [
        match if text is None else replace(match, entry=replace(match.entry, content=text))
        for match in found
        if (text := texts.get(match.entry.id)) is not None or match.entry.kind not in {"fact", "summary"}
    ]


async def _texts_of_facts(documents: Documents, user_id: str, ids: Sequence[str], clock: Clock) -> dict[str, str]:
    now, texts = clock(), dict[str, str]()
    for start in range(0, len(ids), BATCH):
        facts = await documents.facts.facts(user_id=user_id, fact_ids=ids[start : start + BATCH])
        texts |= {fact.id: fact.statement for fact in facts if fact.holds(now)}
    return texts
