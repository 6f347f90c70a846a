"""What learning from a turn again must heed: what later turns have taught or ended, and what a person forgot since."""

from memory.documents import Conversations, Facts
from memory.fact import Fact
from memory.recall import MOST_FACTS
from memory.reconciliation import Relearning
from memory.turn import Message, Turn
from memory.update import Update

_BATCH = 500


async def relearning_of(facts: Facts, conversations: Conversations, turn: Turn, update: Update) -> Relearning:
    """The round, and the ids of facts that stay as they are.

    `later` are living facts that turns with a later message taught, and facts of this turn that such turns have ended;
    `forgotten` are facts of this turn that a person forgot.
    """
    own = await _own(facts, turn.message, update)
    living = await facts.living(turn.message.scope, at=turn.message.created_at, limit=MOST_FACTS)
    by_turn: dict[str, set[str]] = {}
    for fact in living:
        # A fact is written after its message was: one from before this message was taught before it.
        if fact.turn_id is not None and fact.created_at > turn.message.created_at:
            by_turn.setdefault(fact.turn_id, set()).add(fact.id)
    for fact in own:
        if fact.status == "active" and fact.ended is not None and fact.ended.turn_id is not None:
            by_turn.setdefault(fact.ended.turn_id, set()).add(fact.id)
    return Relearning(
        round=update.learned,
        later=await _of_later_turns(conversations, turn.message, by_turn),
        forgotten=frozenset(fact.id for fact in own if fact.status == "forgotten"),
        anew=update.anew,
    )


async def _own(facts: Facts, message: Message, update: Update) -> list[Fact]:
    """The facts that the turn has added, changed or confirmed before, with earlier answers too."""
    earlier = update.earlier.fact_ids if update.earlier is not None else ()
    ids = sorted({*earlier, *(change.fact_id for change in update.changes)})
    batches = [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]
    return [fact for batch in batches for fact in await facts.facts(user_id=message.user_id, fact_ids=batch)]


async def _of_later_turns(
    conversations: Conversations, message: Message, by_turn: dict[str, set[str]]
) -> frozenset[str]:
    found: set[str] = set()
    for turn_id, ids in by_turn.items():
        if turn_id == message.turn_id:
            continue
        other = await conversations.turn(user_id=message.user_id, turn_id=turn_id)
        # Of a turn that has been removed only its facts tell the time.
        if other is None or other.message.created_at > message.created_at:
            found |= ids
    return frozenset(found)
