"""What a client's model writes down for its user: a free-text fact with source `tool`.

It is no person's word: later learning may change it, and REVIEW holds it back as it holds back what is learned.
"""

from dataclasses import replace
from uuid import uuid4

from memory.fact import Fact, fold
from memory.fact_edit import written
from memory.memory import Memory
from memory.plan import Review
from memory.recall import MOST_FACTS
from memory.scope import Scope


async def note(memory: Memory, user_id: str, statement: str, tags: tuple[str, ...] = ()) -> Fact:
    """The new fact, `proposed` where it has to wait for a person; the known one where the user has such a note already.

    `statement` has 1-2,000 characters; there are at most 10 `tags` of 1-64 characters.

    Raises:
        InvalidRequest: names each field that is wrong.
        UserErased: the user is being erased.
        StoreUnavailable: nothing is stored.
    """
    async with memory.fences.writing(user_id) as writing:
        known = await _known(memory, user_id, statement)
        if known is not None:
            return known
        now, config = memory.clock(), memory.config
        waits = Review(config.review, config.sensitive_tags).holds_back(tags)
        fact = replace(
            written(user_id, None, {"statement": statement, "tags": tags}, now=now),
            id=str(uuid4()),
            source="tool",
            status="proposed" if waits else "active",
            proposes="add" if waits else None,
        )
        facts = memory.documents.facts
        writing.take_back(lambda: facts.remove(user_id=user_id, fact_ids=[fact.id]))
        await facts.insert(fact)
    memory.bounds.touch(user_id)
    await memory.points.sync_soon(user_id)
    return fact


async def _known(memory: Memory, user_id: str, statement: str) -> Fact | None:
    """The note that says the same, but for case, white space and punctuation: models like to repeat themselves."""
    facts, scope, said = memory.documents.facts, Scope(user_id), fold(statement)
    living = await facts.living(scope, at=memory.clock(), limit=MOST_FACTS)
    waiting = await facts.proposed(scope, limit=MOST_FACTS)
    notes = (fact for fact in [*living, *waiting] if fact.key is None and fact.proposes in (None, "add"))
    return next((fact for fact in notes if fold(fact.statement) == said), None)
