"""Notes that a client's model writes for its user: facts without a key, with source `tool`.

No person wrote them: later learning may change them, and REVIEW holds them back like learned facts.
"""

from dataclasses import replace
from uuid import uuid4

from recollect.memory.facts.fact_edit import written
from recollect.memory.facts.fact_service import Noted
from recollect.memory.facts.known_statement import confirm, known_statement
from recollect.memory.learning.plan import Review
from recollect.memory.memory import Memory
from recollect.memory.values.scope import Scope


async def note(
    memory: Memory, user_id: str, statement: str, tags: tuple[str, ...] = (), *, agent_id: str | None = None
) -> Noted:
    """Store a new fact, `proposed` where it has to wait for a person; or confirm the known fact that says the same.

    `statement` has 1-2,000 characters; there are at most 10 `tags` of 1-64 characters. `agent_id`: the new fact gets
    this label, and a fact without it is not the known one.

    Raises:
        InvalidRequest: names each field that is wrong.
        UserErased: the user is being erased.
        StoreUnavailable: nothing is stored.
    """
    async with memory.parts.fences.writing(user_id) as writing:
        facts = memory.parts.store.facts
        known = await known_statement(
            facts,
            Scope(user_id),
            statement,
            clock=memory.parts.clock,
            with_proposed=True,
            among=lambda fact: agent_id in (None, fact.agent_id),
        )
        if known is not None:
            return Noted(await confirm(facts, known, clock=memory.parts.clock), known=True)
        now, config = memory.now(), memory.config
        # The service does not see what else the client's model has read: only REVIEW_TOOLS=all holds every note back.
        waits = Review.of(config).holds_back(tags) or config.review_tools == "all"
        fact = replace(
            written(user_id, None, {"statement": statement, "tags": tags, "agent_id": agent_id}, now=now),
            id=str(uuid4()),
            source="tool",
            status="proposed" if waits else "active",
            proposes="add" if waits else None,
        )
        writing.on_erased(lambda: facts.remove(user_id=user_id, fact_ids=[fact.id]))
        await facts.insert(fact)
    memory.parts.retention.touch(user_id)
    await memory.parts.points.sync_soon(user_id)
    return Noted(fact, known=False)
