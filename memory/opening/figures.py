"""Counts what the memory holds: of the whole service, of one user, or of one thread."""

import asyncio
from dataclasses import asdict

from recollect.memory.memory import Memory
from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope

FIGURES = ("users", "threads", "turns", "messages", "facts", "documents", "points", "pending")


async def figures(memory: Memory, scope: Scope | None) -> dict[str, int]:
    """Return the `FIGURES` of a user or thread, or (`scope` None) of the whole service.

    `threads`, `turns`, `messages`, `facts` and `pending` are defined by `Counted`. `users` have a message, a fact, a
    thread record or a document; for one user, or thread, it is 1 where any other figure is above 0. `documents` are
    those that the user owns, for a thread those attached to it. `points` are in the vector index.

    Raises:
        StoreUnavailable: store or index cannot be reached.
    """
    store, index = memory.parts.store, memory.parts.index
    user_id, thread_id = (scope.user_id, scope.thread_id) if scope is not None else (None, None)
    counted, kept, points = await asyncio.gather(
        store.counts.count(scope),
        _documents(store, scope),
        index.count(user_id=user_id, thread_id=thread_id),
    )
    found = {**asdict(counted), "documents": kept, "points": points}
    found["users"] = await store.counts.users() if scope is None else int(any(found.values()))
    return {name: found[name] for name in FIGURES}


async def _documents(store: Store, scope: Scope | None) -> int:
    """Count the documents of all, of one user, or attached to a thread."""
    if scope is not None and scope.thread_id is not None:
        return len(await store.documents.attached(scope))
    return await store.documents.count(scope.user_id if scope is not None else None)
