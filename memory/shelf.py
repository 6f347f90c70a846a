"""The shelf: which documents a search may look into, and which a turn gets whole."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from memory.hit import Hit
from memory.library import Attached, Library, LibraryDocument
from memory.ranking import recency
from memory.scope import GLOBAL_USER, Scope
from memory.times import Clock
from memory.tokens import CHARACTERS_PER_TOKEN
from memory.vector_index import Entry, Origin

MOST_WHOLE_TOKENS = 2_000
"""Attached documents are given whole as long as they fit into this together, in the order of attaching."""
MOST_OF_DOMAINS = 5_000
"""So many of an owner's documents in the wanted domains are searched, the newest ones."""
EMPTY_SECONDS = 1.0
"""So long it is taken for granted that nobody has a document: where other processes add the first one, searches here
know of it that much later. Turns of a service without documents ask no more often than that."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Which passages a search may find: by owner the ids of their documents, or None for all of theirs.

    `attached` is what the thread has attached, in order.
    """

    documents: Mapping[str, Sequence[str] | None] = field(default_factory=dict[str, Sequence[str] | None])
    attached: Sequence[LibraryDocument] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to search."""
        return all(ids is not None and not ids for ids in self.documents.values())

    def without(self, given: Collection[str]) -> "Reach":
        """The same where these documents are in view already; one that is reached with all others stays."""
        left = {
            owner: None if ids is None else [one for one in ids if one not in given]
            for owner, ids in self.documents.items()
        }
        return Reach(left, self.attached)


NOTHING = Reach()


class Shelf:
    """Looks documents up for searches; `notice` tells it that there may be some now."""

    def __init__(self, library: Library, clock: Clock) -> None:
        self._library = library
        self._clock = clock
        self._empty_until = 0.0

    def notice(self) -> None:
        """Somebody adds a document."""
        self._empty_until = 0.0

    async def reach(self, scope: Scope, domains: Sequence[str], *, attached_only: bool = False) -> Reach:
        """What a search of this scope reaches: what its thread has attached, and documents of the user and everybody.

        With `domains` only those in one of these; without any, all of them, or with `attached_only` none.
        """
        if monotonic() < self._empty_until:
            return NOTHING
        holdings = await self._library.holdings(scope.user_id)
        owners = [name for name, holds in ((scope.user_id, holdings.own), (GLOBAL_USER, holdings.shared)) if holds]
        if not owners:
            if await self._library.is_empty():
                self._empty_until = monotonic() + EMPTY_SECONDS
            return NOTHING
        attached: list[Attached] = []
        if scope.thread_id is not None:
            attached = await self._library.attached(scope)
        ready = [one.document for one in attached if one.document.version]
        if not domains and not attached_only:
            return Reach(dict.fromkeys(owners), ready)
        reached: dict[str, Sequence[str] | None] = {}
        for owner in owners:
            ids = [one.id for one in ready if one.user_id == owner]
            if domains:
                ids += await self._library.in_domains(owner, domains, limit=MOST_OF_DOMAINS)
            reached[owner] = list(dict.fromkeys(ids))
        return Reach(reached, ready)

    async def whole(self, reach: Reach) -> list[Hit]:
        """The attached documents that are small enough to be given whole; nothing has ranked them."""
        left = MOST_WHOLE_TOKENS * CHARACTERS_PER_TOKEN
        hits = list[Hit]()
        for document in reach.attached:
            if document.characters <= left:
                left -= document.characters
                text = await self._text(document)
                if text:
                    hits.append(self._given(document, text))
        return hits

    async def _text(self, document: LibraryDocument) -> str:
        batches = self._library.passages.of_document(user_id=document.user_id, document_id=document.id)
        return "".join([passage.text async for batch in batches for passage in batch]).strip()

    def _given(self, document: LibraryDocument, text: str) -> Hit:
        entry = Entry(
            id=document.id,
            user_id=document.user_id,
            thread_id=None,
            turn_id=None,
            kind="document",
            content=text,
            created_at=document.updated_at,
            origin=Origin(document.id, document.title, document.domain, document.source),
        )
        return Hit(entry, 0.0, 0.0, recency(document.updated_at, self._clock()), whole=True)
