"""Reads the texts that a turn's record names by their ids, as they are stored now."""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeVar

from recollect.memory.background.batches import batches
from recollect.memory.ports.passages import Passage
from recollect.memory.ports.store import Store
from recollect.memory.values.fact import Fact
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message

_BATCH = 500
TextState = Literal["shown", "forgotten", "deleted"]
"""Whether a text is there, or what became of it: a person forgot the fact, or its source was deleted."""
_One = TypeVar("_One")


@frozen
class TextIds:
    """The ids whose texts are wanted, and what tells where they are: turns of messages, threads of summaries."""

    facts: Collection[str] = ()
    turns: Collection[str] = ()
    threads: Collection[str] = ()
    passages: Collection[str] = ()


@frozen
class StoredText:
    """A text as it is stored now, None unless it is `shown`; who said it and when, of a message."""

    text: str | None
    state: TextState
    said: Message | None = None


@frozen
class StoredTexts:
    """The texts that were found, each by the id under which a search shows it."""

    facts: Mapping[str, Fact]
    messages: Mapping[str, Message]
    summaries: Mapping[str, ThreadRecord]
    passages: Mapping[str, Passage]

    @classmethod
    async def read(cls, store: Store, user_id: str, ids: TextIds) -> "StoredTexts":
        """Read the user's own texts, and the facts and documents that everybody sees."""
        facts = list[Fact]()
        passages = list[Passage]()
        for owner in (GLOBAL_USER, user_id):
            facts += await _batched(
                ids.facts, lambda some, owner=owner: store.facts.facts(user_id=owner, fact_ids=some)
            )
            passages += await _batched(
                ids.passages,
                lambda some, owner=owner: store.documents.passages.passages(user_id=owner, passage_ids=some),
            )
        turns = [
            turn
            for some in batches(sorted(ids.turns), _BATCH)
            for turn in (await store.imports.stored(user_id, some)).values()
        ]
        records = await _batched(ids.threads, lambda some: store.threads.records(user_id=user_id, thread_ids=some))
        return cls(
            facts={fact.id: fact for fact in facts},
            messages={message.id: message for turn in turns for message in turn.spoken},
            summaries={record.point_id: record for record in records if record.summary},
            passages={passage.id: passage for passage in passages},
        )

    def text(self, kind: str | None, text_id: str) -> StoredText:
        """Return the text of a memory of this kind ("episode", "fact", "summary" or "document")."""
        if kind == "fact":
            return self._fact(self.facts.get(text_id))
        message = self.messages.get(text_id)
        if message is not None:
            return StoredText(message.content, "shown", message)
        if text_id in self.summaries:
            return StoredText(self.summaries[text_id].summary, "shown")
        passage = self.passages.get(text_id)
        return StoredText(None, "deleted") if passage is None else StoredText(passage.said, "shown")

    def _fact(self, fact: Fact | None) -> StoredText:
        if fact is None:
            return StoredText(None, "deleted")
        return StoredText(None, "forgotten") if fact.status == "forgotten" else StoredText(fact.statement, "shown")


async def _batched(
    ids: Collection[str], read: Callable[[Sequence[str]], Coroutine[Any, Any, list[_One]]]
) -> list[_One]:
    return [one for some in batches(sorted(ids), _BATCH) for one in await read(some)]
