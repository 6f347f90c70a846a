"""Pages of lists that keep to a filter.

Terms narrow what is read; what is read is checked: at most the newest 10,000 items of a list's scope.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.memory.background.scanning import MOST_CHECKED, PAGE, Fitting, first_fitting, newest_fitting, pages
from recollect.memory.facts.fact_service import FactService
from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.recall.filtering import pages_of_messages
from recollect.memory.recall.known_terms import KnownTerms
from recollect.memory.threads.agents_thread import agents_record
from recollect.memory.threads.thread_service import ThreadService
from recollect.memory.values.document import Document
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.filter import Filter, of_agent
from recollect.memory.values.filtering.items import document_item, fact_item, message_item
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrowing import narrowing
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview
from recollect.memory.values.turn import Message


@frozen
class FilteredLists:
    """The lists of people's verbs, each with a filter.

    Raises:
        StoreUnavailable: from any call, where the store cannot be reached.
    """

    store: Store
    facts: FactService
    threads: ThreadService
    keys: FilterKeys

    async def facts_of(
        self, user_id: str, shown: FactFilter, asked: Filter, *, limit: int, after: str | None = None
    ) -> Fitting[Fact]:
        """Return a page of the facts that `shown` selects and `asked` allows, as `FactService.listed` does."""

        async def read(last: Fact | None) -> Sequence[Fact]:
            items, _ = await self.facts.listed(user_id, shown, limit=PAGE, after=None if last is None else last.id)
            return items

        def is_last(fact: Fact) -> bool:
            return fact.id == after

        behind = is_last if after is not None else None
        most = self._most_facts(asked)
        return await newest_fitting(
            pages(read), lambda fact: asked.fulfilled(fact_item(fact)), behind, limit=limit, most=most
        )

    async def notes_of(
        self, user_id: str, asked: Filter, *, tag: str | None = None, limit: int, after: str | None = None
    ) -> Fitting[Fact]:
        """Return a page of the notes that `asked` allows, as `FactService.notes` does."""

        async def read(last: Fact | None) -> Sequence[Fact]:
            return await self.facts.notes(user_id, tag=tag, limit=PAGE, after=after if last is None else last.id)

        most = self._most_facts(asked)
        return await first_fitting(pages(read), lambda fact: asked.fulfilled(fact_item(fact)), limit=limit, most=most)

    def _known(self, user_id: str) -> KnownTerms:
        return KnownTerms(self.store.filter_terms, user_id, self.keys)

    def _most_facts(self, asked: Filter) -> int:
        """Return how many facts are looked at: all of them where the filter names declared keys alone."""
        return sys.maxsize if narrowing(asked, self.keys, "fact").is_whole else MOST_CHECKED

    async def threads_of(
        self,
        user_id: str,
        asked: Filter,
        *,
        limit: int,
        before: tuple[datetime, str] | None = None,
        text: str | None = None,
        agent_id: str | None = None,
    ) -> Fitting[ThreadOverview]:
        """Return a page of the threads in which one of the user's messages fulfils the filter.

        `text`: see `ThreadService.page`; with `agent_id`, it is looked for in what the key of this agent sees.
        """
        meant = await self._known(user_id).meant(asked, "episode")
        threads, seen = set(await self.store.timeline.threads(user_id, where=meant.surely)), 0
        async for page in pages_of_messages(self.store.timeline, Scope(user_id), meant.between):
            checked = page[: MOST_CHECKED - seen]
            seen += len(page)
            spoken = (one for message in checked for one in message.spoken)
            threads.update(one.thread_id for one in spoken if asked.fulfilled(message_item(one)))

        async def read(last: ThreadOverview | None) -> Sequence[ThreadOverview]:
            place = before if last is None else (last.last_activity_at, last.thread_id)
            return await self.threads.page(user_id, limit=PAGE, before=place, text=text if agent_id is None else None)

        listed = pages(read)
        if text is not None and agent_id is not None:
            own = ([one for one in page if one.thread_id in threads] async for page in listed)
            listed = self._saying(own, user_id, text, agent_id)
        found = await first_fitting(listed, lambda one: one.thread_id in threads, limit=limit)
        return replace(found, is_complete=found.is_complete and seen <= MOST_CHECKED)

    async def _saying(
        self, listed: AsyncIterator[Sequence[ThreadOverview]], user_id: str, text: str, agent_id: str
    ) -> AsyncIterator[Sequence[ThreadOverview]]:
        """Yield those threads of each page that have the text in what the key of an agent sees.

        That is the id, the title where nobody else has spoken in the thread, and the first message with the agent's
        label: by searching for texts, such a key must not find out what others have said.
        """
        wanted, own = text.casefold(), of_agent(agent_id)

        async def says(thread: ThreadOverview) -> bool:
            if wanted in thread.thread_id.casefold():
                return True
            scope = Scope(user_id, thread.thread_id)
            first = await self.messages_of(scope, own, limit=1)
            if any(wanted in message.content.casefold() for message in first.items):
                return True
            record = await agents_record(self.store, scope, agent_id) if thread.record is not None else None
            return record is not None and wanted in (record.title or "").casefold()

        async for page in listed:
            yield [thread for thread in page if await says(thread)]

    async def messages_of(self, scope: Scope, asked: Filter, *, limit: int, after: int = 0) -> Fitting[Message]:
        """Return a page of the thread's messages with positions > `after` that fulfil the filter, oldest first."""
        meant = await self._known(scope.user_id).meant(asked, "episode")
        conversations = self.store.conversations

        async def fitting(begin: int) -> Fitting[Message]:
            async def read(last: Message | None) -> Sequence[Message]:
                place = begin if last is None else last.position
                return await conversations.messages(scope, limit=PAGE, after=place, where=meant.perhaps)

            return await first_fitting(pages(read), lambda one: asked.fulfilled(message_item(one)), limit=limit)

        if meant.is_whole and (found := await fitting(after)).is_complete:
            return found
        # Positions rise by one a message, or by more: behind this one there are at most so many messages.
        oldest = await conversations.last_position(scope) - MOST_CHECKED
        first = await conversations.messages(scope, limit=1) if oldest > 0 else []
        found = await fitting(max(after, oldest))
        return replace(found, is_complete=all(message.position > oldest for message in first))

    async def documents_of(
        self,
        owner: str,
        asked: Filter,
        *,
        limit: int,
        domain: str | None = None,
        before: tuple[datetime, str] | None = None,
    ) -> Fitting[Document]:
        """Return a page of the owner's documents that fulfil the filter, newest first."""
        meant = await self._known(owner).meant(asked, "document")

        async def read(last: Document | None) -> Sequence[Document]:
            place = before if last is None else (last.created_at, last.id)
            return await self.store.documents.page(owner, limit=PAGE, domain=domain, before=place, where=meant.perhaps)

        return await first_fitting(pages(read), lambda one: asked.fulfilled(document_item(one)), limit=limit)
