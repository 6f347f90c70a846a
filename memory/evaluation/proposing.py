"""Proposes cases from a user's own history: quotes of facts, times that have few messages, names that few mention."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, tzinfo
from itertools import chain, islice, zip_longest

from recollect.memory.background.long_texts import off_loop
from recollect.memory.evaluation.cases import Case
from recollect.memory.language.words import word_set
from recollect.memory.ports.store import Store
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, derived_id

MOST_PROPOSED = 1_000
MOST_READ = 2_000
"""How many messages, the newest, and how many facts are looked through."""
FEW = 5
"""A day, or a name, of more messages than these asks for more than the first hits can hold."""
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][^\W\d_]{2,}(?!\w)"
_NAME = re.compile(rf"(?:(?<=[a-zß-ÿ] )|(?<=[a-zß-ÿ][,;] )){_CAPITALISED}(?:[- ]{_CAPITALISED})*")
"""Capitalised words within a sentence, each a whole word: messages are looked up by their words."""
_WORD = re.compile(r"\w+")
_NO_NAMES = word_set(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August "
    "September October November December"
)


async def propose_cases(store: Store, user_id: str, *, count: int, zone: tzinfo) -> list[Case]:
    """Return up to `count` cases, of each kind about as many; fewer where the history is short.

    Days are those of `zone`.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    messages = [one for one in await store.timeline.latest(Scope(user_id), limit=MOST_READ) if one.role == "user"]
    facts = await _facts(store, user_id)
    return await off_loop(lambda: _mixed(messages, facts, count, zone), [one.content for one in messages])


def _mixed(messages: Sequence[Message], facts: Sequence[Fact], count: int, zone: tzinfo) -> list[Case]:
    """Take cases of each kind in turn, and number them."""
    kinds = (_quotes(facts, {one.id: one for one in messages}), _days(messages, zone), _names(messages))
    mixed = (case for case in chain.from_iterable(zip_longest(*kinds)) if case is not None)
    return [replace(case, number=number) for number, case in enumerate(islice(mixed, count), 1)]


async def _facts(store: Store, user_id: str) -> list[Fact]:
    found = list[Fact]()
    async for batch in store.facts.every(user_id):
        found += [fact for fact in batch if fact.is_open and fact.evidence]
        if len(found) >= MOST_READ:
            break
    return sorted(found, key=lambda fact: (fact.created_at, fact.id), reverse=True)


def _quotes(facts: Sequence[Fact], messages: Mapping[str, Message]) -> Iterator[Case]:
    """Ask for what a fact says, and expect the message that it quotes."""
    for fact in facts:
        source = messages.get(derived_id(fact.user_id, fact.turn_id or "", "user"))
        if source is not None and fact.evidence is not None and fact.evidence in source.content:
            yield Case(0, fact.user_id, fact.statement, (source.id,))


def _days(messages: Sequence[Message], zone: tzinfo) -> Iterator[Case]:
    """Ask for what was said on a day, as a search that is asked in `zone` reckons it."""
    by_day = defaultdict[date, list[Message]](list)
    for message in messages:
        by_day[message.created_at.astimezone(zone).date()].append(message)
    for day, said in by_day.items():
        if len(said) <= FEW:
            query = f"What did I say on {day:%B} {day.day}, {day.year}?"
            yield Case(0, said[0].user_id, query, tuple(one.id for one in said))


def _names(messages: Sequence[Message]) -> Iterator[Case]:
    """Ask for what was said about a name."""
    by_word = defaultdict[str, list[Message]](list)
    names = dict[str, None]()
    for message in messages:
        for word in set(_WORD.findall(message.content)):
            by_word[word].append(message)
        names |= dict.fromkeys(_NAME.findall(message.content))
    for name in names:
        said = [one for one in by_word[_WORD.findall(name)[0]] if name in one.content]
        if name not in _NO_NAMES and len(said) <= FEW:
            yield Case(0, said[0].user_id, f"What did I say about {name}?", tuple(one.id for one in said))
