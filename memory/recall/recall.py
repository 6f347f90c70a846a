"""The read path of a turn: window, facts, and the search for what a message needs beyond them."""

import asyncio
import logging
from contextlib import nullcontext
from dataclasses import field, replace
from datetime import datetime

from recollect.memory.background.unread import may_go_unread
from recollect.memory.index.query_cache import LONGEST_KEPT
from recollect.memory.ports.observing import UNOBSERVED, Observer
from recollect.memory.ports.store import Store
from recollect.memory.recall.attachments import NOTHING, Attachments, SearchableDocuments
from recollect.memory.recall.candidates.candidate_query import SMALL_MEMORY
from recollect.memory.recall.foresight import Foresight
from recollect.memory.recall.hit import Hit, Recalled
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.request import Request
from recollect.memory.recall.search import Search
from recollect.memory.recall.shown import KnownFacts, Shown
from recollect.memory.threads.agents_thread import agents_record
from recollect.memory.threads.window import read_window
from recollect.memory.values.fact import by_weight, chosen_facts, own_first
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Exchange

logger = logging.getLogger(__name__)

NOTHING_MORE = Shown()


@frozen
class Recall:
    """The read path in three separate calls, window, facts and search, so that one may fail without the others."""

    store: Store
    vector_search: Search
    config: MemoryConfig
    clock: Clock
    attachments: Attachments
    foresight: Foresight = field(default_factory=Foresight)
    observer: Observer = UNOBSERVED

    def foresee(self, scope: Scope, text: str, options: RecallOptions) -> None:
        """Ask the embedder for the vector of a turn's text, before anything is read, if a search is going to need it.

        The embedder caches it for the search. It answers while the turn is accepted and the store is read.
        """
        embedder, searches = self.vector_search.embedder, options.enabled and options.top_k and options.kinds
        if not (searches and embedder.knows_meaning and len(text) <= LONGEST_KEPT):
            return  # the built-in embedder takes less time than asking it beforehand
        if self.foresight.has_more_than(_searched(scope, options), options.window):
            may_go_unread(asyncio.ensure_future(embedder.embed_query(text)))

    async def window(self, scope: Scope, options: RecallOptions, *, before: int | None = None) -> list[Exchange]:
        """Return the thread's last turns that fit into the window, oldest first. `before`: see `read_window`."""
        found = await read_window(
            self.store.conversations,
            scope,
            turns=options.window,
            tokens=self.config.window_tokens,
            before=before,
            agent_id=options.agent_id,
        )
        _say("window read", "window_read", scope, turns=len(found))
        return found

    async def facts(
        self,
        scope: Scope,
        *,
        with_global: bool = False,
        without: str | None = None,
        agent_id: str | None = None,
    ) -> KnownFacts:
        """Return the facts that hold for the user and, with a thread in `scope`, those of that thread.

        `with_global` includes the facts that everybody sees. `without` is the id of a turn that is being regenerated:
        what was learned from it is left out. `agent_id`: only facts with the label of this agent.
        """
        now = self.clock()
        living = await self.store.facts.living(scope, at=now, limit=MOST_FACTS, with_global=with_global)
        known = [fact for fact in living if fact.holds(now)]
        known = [fact for fact in known if without is None or fact.turn_id != without]
        known = [fact for fact in known if agent_id in (None, fact.agent_id)]
        _say("facts read", "facts_read", scope, living=len(living), known=len(known))
        # A block with no room for all holds the thread's own in any case: no other thread's agent gets them.
        keyed = own_first(chosen_facts(known))
        pinned = own_first(by_weight(fact for fact in known if fact.key is None and fact.pinned))
        return KnownFacts(
            facts={fact.key or "": fact.value for fact in keyed},
            notes=[fact.statement for fact in pinned],
            ids=[fact.id for fact in (*keyed, *pinned)],
            own_notes=sum(fact.home is not None for fact in pinned),
        )

    async def thread(self, scope: Scope, *, agent_id: str | None = None) -> ThreadRecord | None:
        """Return the thread's record, which holds the summary of the turns that left the window.

        `agent_id`: without the summary where others than this agent have spoken in the thread.
        """
        if agent_id is not None:
            return await agents_record(self.store, scope, agent_id)
        return await self.store.threads.record(scope)

    async def search(self, scope: Scope, text: str, options: RecallOptions, *, shown: Shown = NOTHING_MORE) -> Recalled:
        """Search for a turn of the thread by `text`; leave out what its window and its facts show already.

        The hits, best first, are past messages of where `options.scope` says, the user's notes, summaries of other
        archived threads, and passages of documents. Where none of these exist but what the window's turns said and
        taught, nothing is embedded or searched. Small documents that the thread has attached come first, whole, and do
        not count for `top_k`. `shown` says what the turn shows; the id of a turn that is being regenerated is among its
        turns too.

        Raises:
            InvalidRequest: the options' time zone does not exist.
            IndexUnavailable, StoreUnavailable, ModelUnavailable: the search is not possible now.
        """
        if options.top_k == 0:
            documents = await self._documents(scope, options)
            return _unsearched(await self._whole(documents), documents, options)
        with self.observer.memory_call("search_memory"):
            return await self._search_for_turn(scope, text, options, shown)

    async def _search_for_turn(self, scope: Scope, text: str, options: RecallOptions, shown: Shown) -> Recalled:
        """Do what `search` says, of options that ask for hits."""
        searched = _searched(scope, options)
        most = options.window + len(shown.turns)
        # Read in one hop, and the rest in another one: the turn waits for both.
        count, names = await asyncio.gather(
            self.store.conversations.count_turns(searched, at_most=max(most, SMALL_MEMORY) + 1),
            self.vector_search.names(scope.user_id),
        )
        # Where speakers have names, the text that is embedded may be another one.
        self.foresight.saw(searched, 0 if names else count)
        now, beginning = self.clock(), nullcontext()
        if count > most:  # whatever is shown, there is more to search: the embedder works while the store is read
            beginning = self.vector_search.beginning(text, options, names=names, now=now)
        with beginning as begun:
            read_window = shown.window or (lambda: self.window(scope, options))
            documents, window, facts = await asyncio.gather(
                self._documents(scope, options), read_window(), shown.fact_ids()
            )
            whole = await self._whole(documents)
            given = frozenset(hit.entry.id for hit in whole)
            turns = list(dict.fromkeys([*(exchange.user.turn_id for exchange in window), *shown.turns]))
            is_within = count <= len(turns) and documents.without(given).is_nothing
            if is_within and not await self.store.facts.has_notes(Scope(searched.user_id), besides=turns):
                return _unsearched(whole, documents, options)
            preferred, is_small = scope.thread_id if options.scope == "auto" else None, count <= SMALL_MEMORY
            names_own = preferred is not None and not is_small and await self._has_turns_beyond(scope, len(window))
            request = Request(
                searched,
                text,
                options,
                shown=turns,
                for_turn=True,
                thread_id=scope.thread_id,
                preferred=preferred,
                names_own=names_own,
                is_small=is_small,
                searchable=documents.without(given),
                given=given,
                given_facts=facts,
                prepared=None if begun is None else await begun,
            )
            found = await self.vector_search.find(request, now=now)
            return replace(found, hits=[*whole, *found.hits]) if whole else found

    async def find(self, scope: Scope, text: str, options: RecallOptions, *, now: datetime | None = None) -> Recalled:
        """Search the thread, or all of the user's memory where `scope` has none, without a turn; best hits first.

        In a thread only the documents that it has attached are searched, and those in `options.domains`. Times in the
        text, and recency, are computed from `now` (UTC; default: the clock).

        Raises:
            InvalidRequest: the options' time zone does not exist.
            IndexUnavailable, StoreUnavailable, ModelUnavailable: the search is not possible now.
        """
        with self.observer.memory_call("search_memory"):
            documents = NOTHING
            if options.top_k:
                documents = await self._documents(scope, options, attached_only=scope.thread_id is not None)
            return await self.vector_search.find(
                Request(scope, text, options, searchable=documents), now=now or self.clock()
            )

    async def _documents(
        self, scope: Scope, options: RecallOptions, *, attached_only: bool = False
    ) -> SearchableDocuments:
        """Return the documents that a search with these options looks into."""
        if "document" not in options.kinds:
            return NOTHING
        documents = await self.attachments.searchable(scope, options.domains, attached_only=attached_only)
        if options.filter is None or not (documents.documents or documents.attached):
            return documents
        return await self.attachments.filtered(documents, options.filter)

    async def _whole(self, documents: SearchableDocuments) -> list[Hit]:
        """Return the attached documents that a turn gets whole."""
        return await self.attachments.whole(documents) if documents.attached else []

    async def _has_turns_beyond(self, scope: Scope, shown: int) -> bool:
        return await self.store.conversations.count_turns(scope, at_most=shown + 1) > shown


def _searched(scope: Scope, options: RecallOptions) -> Scope:
    """Return where a turn's search looks."""
    return scope if options.scope == "thread" else Scope(scope.user_id)


def _unsearched(whole: list[Hit], documents: SearchableDocuments, options: RecallOptions) -> Recalled:
    """Return what a turn gets without a search; only documents were checked by its filter."""
    return Recalled(whole, is_complete=None if options.filter is None else documents.is_complete)


def _say(text: str, action: str, scope: Scope, **counts: int) -> None:
    """Log what was read: ids and counts, no text of the user's."""
    logger.debug(text, extra={"action": action, "user_id": scope.user_id, "thread_id": scope.thread_id, **counts})
