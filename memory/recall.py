"""Recall: what of the past a message calls for, beyond the window."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.documents import Documents
from memory.fact import Fact, by_weight, fact_dict
from memory.finding import Finding, Request
from memory.hit import Recalled
from memory.mem_config import MemoryConfig
from memory.recall_options import RecallOptions
from memory.scope import Scope
from memory.shelf import NOTHING, Shelf
from memory.thread_record import ThreadRecord
from memory.times import Clock
from memory.turn import Exchange
from memory.window import read_window

WORKING_MEMORY_IMPORTANCE = 0.7
"""How important a thread's own fact must be to enter the prompt."""
MOST_FACTS = 5_000
"""How many living facts a turn looks at, newest first."""


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The facts that are always given: the keyed ones as a dict, pinned free-text ones as statements.

    The weightiest come first. Other free-text facts are recalled by meaning.
    """

    facts: Mapping[str, str]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Recall:
    """The whole read path: window, facts and search, each on its own, so that each can fail on its own."""

    documents: Documents
    finding: Finding
    config: MemoryConfig
    clock: Clock
    shelf: Shelf

    async def window(self, scope: Scope, options: RecallOptions, *, before: int | None = None) -> list[Exchange]:
        """The thread's last turns within the window's token budget, oldest first. `before`: see `read_window`."""
        return await read_window(
            self.documents.conversations,
            scope,
            turns=options.window,
            tokens=self.config.window_tokens,
            before=before,
        )

    async def facts(self, scope: Scope, *, with_global: bool = False, without: str | None = None) -> KnownFacts:
        """The facts that hold for the user, and with a thread the weighty ones of that thread's working memory.

        `without`: a turn whose lessons are left out, because it is being answered anew.
        """
        now = self.clock()
        living = await self.documents.facts.living(scope, at=now, limit=MOST_FACTS, with_global=with_global)
        known = [fact for fact in living if fact.holds(now) and _is_weighty(fact)]
        known = [fact for fact in known if without is None or fact.turn_id != without]
        return KnownFacts(
            facts=fact_dict(known),
            notes=[fact.statement for fact in by_weight(fact for fact in known if fact.key is None and fact.pinned)],
        )

    async def thread(self, scope: Scope) -> ThreadRecord | None:
        """The thread's record, with the summary of what left the window."""
        return await self.documents.threads.record(scope)

    async def search(
        self,
        scope: Scope,
        text: str,
        options: RecallOptions,
        *,
        before: int | None = None,
        without: str | None = None,
        known: Collection[str] = (),
    ) -> Recalled:
        """What a turn of the thread calls for by `text`, best first: nothing that its window or its facts show.

        Past messages of the thread (or with `options.scope` all of the user's), the user's free-text facts, summaries
        of other archived threads, and passages of documents. Where there are none, nothing is embedded and nothing
        searched. Small documents that the thread has attached come first, whole, and beside `top_k`. `without`: a turn
        that is left out, because it is being answered anew; `known`: further turns that are shown already.
        """
        reach = await self.shelf.reach(scope, options.domains) if "document" in options.kinds else NOTHING
        whole = await self.shelf.whole(reach) if reach.attached else []
        if options.top_k == 0:
            return Recalled(whole)
        given = frozenset(hit.entry.id for hit in whole)
        shown = await self.window(scope, options, before=before)
        sought = scope if options.scope == "thread" else Scope(scope.user_id)
        turns = [exchange.user.turn_id for exchange in shown]
        if without is not None:
            turns.append(without)
        turns += [turn_id for turn_id in known if turn_id not in turns]
        if reach.without(given).is_nothing and not await self._has_more(sought, len(turns)):
            return Recalled(whole)
        request = Request(
            sought,
            text,
            options,
            shown=turns,
            for_turn=True,
            thread_id=scope.thread_id,
            reach=reach.without(given),
            given=given,
        )
        found = await self.finding.find(request, now=self.clock())
        return replace(found, hits=[*whole, *found.hits]) if whole else found

    async def find(self, scope: Scope, text: str, options: RecallOptions, *, now: datetime | None = None) -> Recalled:
        """What of the thread (or, without one, of all the user's) `text` calls for, without a turn; best first.

        Of a thread's documents those that it has attached, and those that `options.domains` names.
        `now` (UTC) is what times in the text are reckoned from, and recency.
        """
        reach = NOTHING
        if "document" in options.kinds and options.top_k:
            is_thread = scope.thread_id is not None
            reach = await self.shelf.reach(scope, options.domains, attached_only=is_thread)
        return await self.finding.find(Request(scope, text, options, reach=reach), now=now or self.clock())

    async def _has_more(self, sought: Scope, shown: int) -> bool:
        """Whether there is anything beyond the window: a turn, or a free-text fact."""
        if await self.documents.conversations.count_turns(sought, at_most=shown + 1) > shown:
            return True
        return await self.documents.facts.has_notes(Scope(sought.user_id))


def _is_weighty(fact: Fact) -> bool:
    """Working memory enters the prompt where it matters; the rest serves to tell what is known already."""
    return fact.scope != "thread" or fact.importance >= WORKING_MEMORY_IMPORTANCE
