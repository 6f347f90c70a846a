"""Relearning: collects what a plan of an older message must leave alone: later turns' facts, and forgotten ones."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from recollect.memory.background.batches import batches
from recollect.memory.learning.plan import CLOCKS
from recollect.memory.learning.reconciliation import Relearning
from recollect.memory.ports.conversations import Conversations
from recollect.memory.ports.facts import Facts
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update

_BATCH = 500


async def relearning_of(facts: Facts, conversations: Conversations, turn: Turn, update: Update) -> Relearning:
    """Return the round of learning, and the ids of facts that the plan must not change.

    `later` are living facts that turns with a later message taught, and facts of this turn that such turns have ended;
    `forgotten` are facts of this turn that a person forgot.
    """
    own = await _own(facts, turn.message, update)
    living = await facts.living(turn.message.scope, at=turn.message.created_at, limit=MOST_FACTS)
    by_turn = _by_turn(living, turn.message)
    for fact in own:
        if fact.status == "active" and fact.ended is not None and fact.ended.turn_id is not None:
            by_turn.setdefault(fact.ended.turn_id, set()).add(fact.id)
    return Relearning(
        round=update.learned,
        later=await _of_later_turns(conversations, turn.message, by_turn),
        forgotten=frozenset(fact.id for fact in own if fact.status == "forgotten"),
        anew=update.anew,
    )


async def said_later(conversations: Conversations, message: Message, facts: Iterable[Fact]) -> frozenset[str]:
    """Return the ids of `facts` that were said after `message`: by a later turn, or later without a turn."""
    known, after = list(facts), message.created_at + CLOCKS
    alone = {fact.id for fact in known if fact.turn_id is None and _told_at(fact) > after}
    of_turns = await _of_later_turns(conversations, replace(message, created_at=after), _by_turn(known, message))
    return of_turns | alone


def _told_at(fact: Fact) -> datetime:
    """Return when a fact without a turn was said: an imported fact holds from then."""
    return fact.valid_from if fact.source == "import" else fact.created_at


def _by_turn(facts: Iterable[Fact], message: Message) -> dict[str, set[str]]:
    """Return the ids of facts that may have been said after `message`, by the ids of their turns."""
    by_turn: dict[str, set[str]] = {}
    for fact in facts:
        # A fact is written after its message: one that is older than this message comes from an older message.
        if fact.turn_id is not None and fact.created_at > message.created_at:
            by_turn.setdefault(fact.turn_id, set()).add(fact.id)
    return by_turn


async def _own(facts: Facts, message: Message, update: Update) -> list[Fact]:
    """Return the facts that the turn added, changed or confirmed, with its previous answers too."""
    earlier = update.earlier.fact_ids if update.earlier is not None else ()
    ids = sorted({*earlier, *(change.fact_id for change in update.changes)})
    return [
        fact for batch in batches(ids, _BATCH) for fact in await facts.facts(user_id=message.user_id, fact_ids=batch)
    ]


async def _of_later_turns(
    conversations: Conversations, message: Message, by_turn: dict[str, set[str]]
) -> frozenset[str]:
    found: set[str] = set()
    for turn_id, ids in by_turn.items():
        if turn_id == message.turn_id:
            continue
        other = await conversations.turn(user_id=message.user_id, turn_id=turn_id)
        # A removed turn has no time of its own: its facts are newer than the message, so it counts as later.
        if other is None or other.message.created_at > message.created_at:
            found |= ids
    return frozenset(found)
