"""The store port: the truth. Small Protocols by capability; `Store` bundles what one backend offers.

Rules for every backend: a call carries its user (and thread); the missing is None, False, 0 or empty, never an error; a
backend that cannot be reached raises `StoreUnavailable`, and nothing else crosses this seam. `limit` bounds what a call
returns, and 0 returns nothing; `where` narrows it to items for which that holds; all times are UTC in whole
milliseconds. All correctness rests on atomic writes of single records (unique inserts, conditional updates): no
transaction spans two of them.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from recollect.memory.ports.callers.rate_leases import RateLeases
from recollect.memory.ports.client_records import ClientRecords
from recollect.memory.ports.conversations import Conversations
from recollect.memory.ports.counts import Counts
from recollect.memory.ports.documents import Documents
from recollect.memory.ports.embedder import EmbedderChoices
from recollect.memory.ports.erasures import Erasures
from recollect.memory.ports.facts import Facts
from recollect.memory.ports.filtering.filter_terms import FilterTerms
from recollect.memory.ports.imports import Imports
from recollect.memory.ports.keys import Keys
from recollect.memory.ports.sessions import Sessions
from recollect.memory.ports.thread_queue import ThreadQueue
from recollect.memory.ports.threads import Threads
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.updates import Updates


class Store(Protocol):
    """One backend. Its `open_…` context manager opens and closes it."""

    name: str
    """The name that `/health` shows: "sqlite" or "mongodb"."""

    conversations: Conversations
    """Messages and turns."""

    timeline: Timeline
    """Messages by time and by position."""

    imports: Imports
    """Turns that are imported in bulk."""

    facts: Facts
    """Facts."""

    updates: Updates
    """Pending updates and their claims."""

    threads: Threads
    """Thread records."""

    documents: Documents
    """Documents with their passages, and what threads have attached."""

    counts: Counts
    """Counts of users, threads, turns, messages and facts."""

    queue: ThreadQueue
    """The queues of the threads."""

    keys: Keys
    """API keys."""

    rate_leases: RateLeases | None
    """The requests that callers may still send; None where one process alone has the store open, and counts them."""

    sessions: Sessions
    """Sessions of the inspector."""

    client_records: ClientRecords
    """Open rounds and conversations of OpenAI's clients."""

    filter_terms: FilterTerms
    """The terms of what MEMORY_FILTER_KEYS declares."""

    embedder_choices: EmbedderChoices
    """The record of the embedder that serves."""

    erasures: Erasures
    """Tombstones and receipts of erasures."""

    @abstractmethod
    def users(self) -> AsyncIterator[Sequence[str]]:
        """Yield the id of every user who has a message, fact, thread record or document, the global one too.

        They come in batches, ascending.
        """
        ...

    @abstractmethod
    async def ping(self) -> None:
        """Ask the backend whether it can serve.

        Raises:
            StoreUnavailable: it cannot.
        """
        ...
