"""A search as its caller asks for it."""

import asyncio
from collections.abc import Sequence

from recollect.memory.background.scanning import MOST_CHECKED
from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.attachments import NOTHING, SearchableDocuments
from recollect.memory.recall.coverage.coverage_questions import WANTED, why_covered
from recollect.memory.recall.query import PreparedQuery
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.temporal.interval_questions import asks_for_nothing_else
from recollect.memory.temporal.temporal import Found
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope


@frozen
class Prepared:
    """A search's text, taken apart, with the time that it names. `vector` is the query's, if it was asked for already.

    Whoever has asked for the vector calls `end`.
    """

    query: PreparedQuery
    named: Found | None
    vector: "asyncio.Future[Sequence[float]] | None" = None

    def asks_for_time_alone(self, options: RecallOptions) -> bool:
        """Tell whether a search with these options is to give the messages of a period, unranked."""
        wants_messages = "episode" in options.kinds and not options.tags
        return self.named is not None and wants_messages and asks_for_nothing_else(self.named.rest)

    def end(self) -> None:
        """Give up a vector that nobody waits for any more."""
        if self.vector is not None:
            self.vector.cancel()


@frozen
class Request:
    """A search for `text` in `scope`. `shown` are the ids of turns that the caller shows already.

    `for_turn`: a turn asks, of the thread `thread_id` where it has one. It gets the thread's summary and the keyed and
    pinned facts in any case, so they are no hits; the user's own facts count as well as the thread's. `preferred` is
    the thread whose hits go before those of the user's other threads, unless these score more by `scope_margin`:
    `scope` is the user's then. It `names_own` candidates where it has turns that the caller does not show, unless the
    memory `is_small`: at most `SMALL_MEMORY` turns to search, of which each channel names all. `searchable` are the
    documents to search, `given` the ids of those that the caller shows already, `given_facts` those of facts that it
    shows, as far as they are known. `prepared` is the text as it was
    prepared before, if it was.
    """

    scope: Scope
    text: str
    options: RecallOptions
    shown: Sequence[str] = ()
    for_turn: bool = False
    thread_id: str | None = None
    preferred: str | None = None
    names_own: bool = True
    is_small: bool = False
    searchable: SearchableDocuments = NOTHING
    given: frozenset[str] = frozenset()
    given_facts: frozenset[str] = frozenset()
    prepared: Prepared | None = None

    @property
    def fact_homes(self) -> frozenset[str | None] | None:
        """Return the homes of the facts that may be hits; see `CandidateQuery`."""
        if self.for_turn:
            return frozenset({None, self.thread_id})
        return None if self.scope.thread_id is None else frozenset({self.scope.thread_id})

    @property
    def why_covered(self) -> str | None:
        """Return why the search covers its subject over time, in place of the best few hits; None if it does not."""
        wanted = self.options.coverage
        if wanted == "off":
            return None
        asked = why_covered(self.text)
        return asked if asked is not None or wanted == "auto" else WANTED

    def shows(self, entry: Entry) -> bool:
        """Tell whether the caller shows `entry`: a document given whole, or the summary of the asking thread."""
        if entry.origin is not None:
            return entry.origin.id in self.given
        return entry.kind == "summary" and self.thread_id is not None and entry.thread_id == self.thread_id

    def most_read(self, wanted: int) -> int:
        """Return how many messages are read for `wanted` unranked hits; of those that a filter drops, many."""
        return wanted + 2 * len(self.shown) if self.options.filter is None else MOST_CHECKED
