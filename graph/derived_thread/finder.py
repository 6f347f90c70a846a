"""Finds the thread of a chat client that names none and sends its whole history: the one whose turns it continues.

What users said has an indexed hash in the store, so that no scan is needed; the texts themselves decide.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from recollect.graph.derived_thread.branches import Saying, followed, sent_sayings, stored_sayings
from recollect.graph.history import history_fingerprint
from recollect.memory.memory import Memory
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

MOST_TEXTS = 4
"""A history is looked for by so many of its texts: the last one, the first one, and the longest."""
MOST_THREADS = 20
"""So many messages that say a text are looked at."""
MOST_TWINS = 20
"""So many threads may have begun with the same history; then ids are not looked for any more."""
PAGE = 200
"""So many messages are read at a time."""


@frozen
class ThreadFinder:
    """Finds the thread of one request: the user's `message` behind a `history`.

    `agent_id`: among the turns with this agent's label, to which the caller's key is bound.
    """

    memory: Memory
    user_id: str
    history: Sequence[Mapping[str, Any]]
    message: str
    agent_id: str | None = None

    async def find(self) -> str:
        """Return the id of the thread that the request continues, or asks for again; else that of a new one."""
        sent = sent_sayings(self.history)
        if sent:
            return await self._continued(sent) or await self._new("")
        twins = await self._saying(self.message)
        for thread_id in twins:
            if await self._is_only(thread_id):
                return thread_id
        return await self._new(twins[0] if twins else "")

    async def left(self, thread_id: str) -> tuple[str, ...]:
        """Return the thread's turns that the request has left for another branch, by an edited message."""
        found = followed(sent_sayings(self.history), self.message, await self._stored(thread_id))
        return found.left if found is not None else ()

    async def _continued(self, sent: Sequence[Saying]) -> str | None:
        """Return the thread along which the history runs the furthest, with the same answers, and leaves nothing.

        Of several alike it is the one in which one of the texts was said last.
        """
        best, chosen = None, None
        for thread_id in await self._candidates(sent):
            found = followed(sent, self.message, await self._stored(thread_id, at_least=len(sent) + 1))
            if found is None:
                continue
            rank = found.turns, found.answers, not found.left
            if best is None or rank > best:
                best, chosen = rank, thread_id
        return chosen

    async def _candidates(self, sent: Sequence[Saying]) -> list[str]:
        texts = [sent[-1].text, sent[0].text, *sorted((one.text for one in sent), key=len, reverse=True)]
        found = [await self._saying(text) for text in list(dict.fromkeys(texts))[:MOST_TEXTS]]
        return list(dict.fromkeys(thread_id for threads in found for thread_id in threads))

    async def _saying(self, text: str) -> list[str]:
        return await self.memory.threads_saying(self.user_id, text, limit=MOST_THREADS)

    async def _is_only(self, thread_id: str) -> bool:
        """Tell whether the message is the user's only one in the thread."""
        return self._asks_again(await self._stored(thread_id, at_least=2))

    def _asks_again(self, stored: Sequence[Saying]) -> bool:
        return len(stored) == 1 and stored[0].says(self.message)

    async def _stored(self, thread_id: str, *, at_least: int | None = None) -> list[Saying]:
        """Return the thread's turns, oldest first; with `at_least`, no more pages than have so many finished ones."""
        scope, messages = Scope(self.user_id, thread_id), list[Message]()
        answered = 0
        while page := await self.memory.messages(scope, limit=PAGE, after=messages[-1].position if messages else 0):
            messages += page
            answered += sum(message.role == "assistant" for message in page)
            if len(page) < PAGE or (at_least is not None and answered > at_least):
                break
        return stored_sayings([message for message in messages if self.agent_id in (None, message.agent_id)])

    async def _new(self, twin: str) -> str:
        """Return the id of a new thread: a keyed hash of the request, which is the same where the request is repeated.

        Requests that begin at once get the same thread, and run there one after another. `twin` is a thread that began
        alike and is another one.
        """
        history = history_fingerprint(self.history) or ""
        for _ in range(MOST_TWINS):
            whose = (self.user_id,) if self.agent_id is None else (self.user_id, self.agent_id)
            hashed = await self.memory.keyed_hash(*whose, history, self.message, twin)
            thread_id = f"chat_{hashed[:32]}"
            stored = await self._stored(thread_id, at_least=2)
            if not stored or self._asks_again(stored):
                return thread_id
            twin = thread_id
        return f"chat_{uuid4().hex}"
