"""Runs LoCoMo through the memory: imported as users import, searched as `POST /api/memory/search` searches."""

import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from benchmarks.recalling.locomo import Said, Talk
from benchmarks.recalling.measures import AT, Outcome, outcome
from recollect.memory.memory import Memory
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.request import Request
from recollect.memory.transfer.import_line import read_message
from recollect.memory.transfer.importing import import_lines
from recollect.memory.transfer.line_source import split_lines
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import derived_id


async def search(
    memory: Memory, user_id: str, query: str, top_k: int, *, now: datetime, thread_id: str | None = None
) -> Sequence[Hit]:
    """Return the user's messages that the query finds, best first, as the route does with its defaults.

    With a `thread_id`, as a turn of that thread does with the scope `auto`: its hits go first.
    """
    options = RecallOptions(top_k=top_k, kinds=("episode",))
    request = Request(Scope(user_id), query, options, preferred=thread_id)
    return (await memory.recall.vector_search.find(request, now=now)).hits


async def take_in(memory: Memory, talks: Sequence[Talk]) -> None:
    """Import the messages.

    Raises:
        RuntimeError: a line was refused, or was there already.
    """
    for talk in talks:
        result = await import_lines(memory, split_lines(_json_lines(talk)))
        if result.imported != len(talk.messages):
            raise RuntimeError(f"Of {talk.id}, {len(result.failed)} lines failed and {result.known} were known.")
        say(f"{talk.id}: {result.imported} messages imported")
    await _check_indexed(memory, {talk.id: len(talk.messages) for talk in talks})


async def _json_lines(talk: Talk) -> AsyncIterator[bytes]:
    for said in talk.messages:
        yield json.dumps(said.line(talk.id)).encode() + b"\n"


async def add_facts(memory: Memory, talks: Sequence[Talk]) -> None:
    """Store the observations as facts, learned from the messages that they are taken from, and index them."""
    for talk in talks:
        by_id = {said.message_id: said for said in talk.messages}
        for number, observed in enumerate(talk.observations):
            fact = _fact(talk.id, number, observed.statement, by_id[observed.message_id])
            if not await memory.parts.store.facts.insert(fact):
                raise RuntimeError("A fact was there already.")
        await memory.parts.points.sync(talk.id)
    await _check_indexed(memory, {talk.id: len(talk.messages) + len(talk.observations) for talk in talks})


def _fact(user_id: str, number: int, statement: str, said: Said) -> Fact:
    turn_id = read_message(said.line(user_id)).turn_id
    return Fact(
        id=derived_id(user_id, turn_id, f"observation-{number}"),
        user_id=user_id,
        key=None,
        value=statement,
        statement=statement,
        created_at=said.at,
        updated_at=said.at,
        confirmed_at=said.at,
        valid_from=said.at,
        thread_id=said.thread_id,
        turn_id=turn_id,
        source="import",
    )


async def _check_indexed(memory: Memory, points: dict[str, int]) -> None:
    for user_id, expected in points.items():
        found = await memory.parts.index.count(user_id=user_id)
        if found != expected:
            raise RuntimeError(f"{user_id} has {found} points in place of {expected}.")


async def ask(memory: Memory, talks: Sequence[Talk], *, doing: str, in_last_session: bool = False) -> list[Outcome]:
    """Search for every question, one after the other: of all that the user said, or with the last session first."""
    found = list[Outcome]()
    await search(memory, talks[0].id, "warm up", max(AT), now=talks[0].asked_at)
    for talk in talks:
        say(f"{doing}: {talk.id}")
        thread_id = talk.messages[-1].thread_id if in_last_session else None
        for question in talk.questions:
            begun = time.perf_counter()
            hits = await search(memory, talk.id, question.text, max(AT), now=talk.asked_at, thread_id=thread_id)
            taken = (time.perf_counter() - begun) * 1_000
            found.append(outcome(hits, question.evidence, talk=talk.id, category=question.category, milliseconds=taken))
    return found


def say(text: str) -> None:
    """Print the current step."""
    print(text, file=sys.stderr, flush=True)
