"""Figures: how much the memory holds, of the whole service, of one user, or of one thread."""

import asyncio
from dataclasses import asdict

from memory.documents import Documents
from memory.scope import Scope
from memory.vector_index import VectorIndex

FIGURES = ("users", "threads", "turns", "messages", "facts", "documents", "points", "pending")


async def figures(documents: Documents, index: VectorIndex, scope: Scope | None) -> dict[str, int]:
    """How much there is of a user or thread, or (None) of the whole service.

    `threads`, `turns`, `messages`, `facts` and `pending` as `Counted` says. `users` are those who have a message, a
    fact, a thread record or a document; of one user, or thread, 1 where any other figure is above 0. `documents` are
    those in the library, of a thread those attached to it. `points` are in the vector index.

    Raises:
        StoreUnavailable: documents or index cannot be reached.
    """
    user_id, thread_id = (scope.user_id, scope.thread_id) if scope is not None else (None, None)
    counted, kept, points = await asyncio.gather(
        documents.counts.count(scope),
        _documents(documents, scope),
        index.count(user_id=user_id, thread_id=thread_id),
    )
    found = {**asdict(counted), "documents": kept, "points": points}
    found["users"] = await documents.counts.users() if scope is None else int(any(found.values()))
    return {name: found[name] for name in FIGURES}


async def _documents(documents: Documents, scope: Scope | None) -> int:
    if scope is not None and scope.thread_id is not None:
        return len(await documents.library.attached(scope))
    return await documents.library.count(scope.user_id if scope is not None else None)
