"""Puts the hits of one thread before those of the user's other threads. Pure."""

from collections.abc import Sequence

from recollect.memory.recall.ranking import Scored

NEAR = 2.0
"""How far below the best candidate one of the thread may score to go first, as a multiple of the margin.

Without this bound whatever the thread says of nearly the same words pushed better hits out: LoCoMo asked from its last
session lost 0.39 of R@5 with MiniLM, and loses 0.16 with it.
"""


def behind(scored: Sequence[Scored], thread_id: str, margin: float) -> list[float]:
    """Return for each candidate what puts it behind those of the thread: -`margin`, or 0.

    A candidate of other threads alone is put behind, and one of the thread that is too far from the best. Where the
    thread has none that is near, nothing is put behind.
    """
    if not scored:
        return []
    least = max(one.score for one in scored) - NEAR * margin
    threads = [{one.candidate.entry.thread_id, *(older.thread_id for older in one.older)} for one in scored]
    first = [thread_id in named and one.score >= least for one, named in zip(scored, threads, strict=True)]
    if not any(first):
        return [0.0] * len(scored)
    return [0.0 if goes_first or None in named else -margin for goes_first, named in zip(first, threads, strict=True)]
