"""Chooses the documents that a search looks into, and those that a turn gets whole."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from time import monotonic

from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Entry, Origin
from recollect.memory.recall.filtering import allowed_documents
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.ranking import recency
from recollect.memory.values.document import Attached, Document
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import document_item
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import Clock
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN

MOST_WHOLE_TOKENS = 2_000
"""Attached documents are given whole as long as they fit into this together, in the order of attaching."""
MOST_OF_DOMAINS = 5_000
"""How many of an owner's documents in the wanted domains are searched at most, newest first."""
EMPTY_SECONDS = 1.0
"""How long, in seconds, it is cached whether nobody has a document. A service without documents asks the store no more
often than that; a first document that another process adds is found that much later."""


@frozen
class SearchableDocuments:
    """The documents whose passages a search may find: by owner their ids, or None for all of that owner's.

    `attached` are the documents that the thread has attached, in the order of attaching. `is_complete`: no document was
    left unchecked by a filter.
    """

    documents: Mapping[str, Sequence[str] | None] = field(default_factory=dict[str, Sequence[str] | None])
    attached: Sequence[Document] = ()
    is_complete: bool = True

    @property
    def is_nothing(self) -> bool:
        """Tell whether no document is searchable."""
        return all(ids is not None and not ids for ids in self.documents.values())

    def without(self, given: Collection[str]) -> "SearchableDocuments":
        """Return these documents but the `given` ones, which the turn shows already.

        An owner of whom all documents are searchable (None) stays so: the search drops the given ones itself.
        """
        left = {
            owner: None if ids is None else [one for one in ids if one not in given]
            for owner, ids in self.documents.items()
        }
        return replace(self, documents=left)


NOTHING = SearchableDocuments()


class Attachments:
    """Looks documents up for searches. Call `notice` when a document is added.

    `keys` are those of which documents keep terms.
    """

    def __init__(self, store: Store, clock: Clock, keys: FilterKeys = NO_KEYS) -> None:
        self._store = store
        self._documents = store.documents
        self._keys = keys
        self._clock = clock
        self._is_empty = False
        self._known_until = 0.0
        self._noticed = 0

    def notice(self) -> None:
        """Forget the cached answer that nobody has a document, because one is being added."""
        self._known_until = 0.0
        self._noticed += 1

    async def searchable(
        self, scope: Scope, domains: Sequence[str], *, attached_only: bool = False
    ) -> SearchableDocuments:
        """Return the documents that a search of `scope` looks into: attached, the user's own and everybody's.

        Attached documents are always included. Of the others, `domains` includes those in one of these domains; without
        `domains` all are included, or none with `attached_only`.
        """
        if await self._nobody_has_any():
            return NOTHING
        holdings = await self._documents.holdings(scope.user_id)
        owners = [name for name, holds in ((scope.user_id, holdings.own), (GLOBAL_USER, holdings.shared)) if holds]
        if not owners:
            return NOTHING
        attached: list[Attached] = []
        if scope.thread_id is not None:
            attached = await self._documents.attached(scope)
        ready = [one.document for one in attached if one.document.version]
        if not domains and not attached_only:
            return SearchableDocuments(dict.fromkeys(owners), ready)
        chosen: dict[str, Sequence[str] | None] = {}
        for owner in owners:
            ids = [one.id for one in ready if one.user_id == owner]
            if domains:
                ids += await self._documents.in_domains(owner, domains, limit=MOST_OF_DOMAINS)
            chosen[owner] = list(dict.fromkeys(ids))
        return SearchableDocuments(chosen, ready)

    async def _nobody_has_any(self) -> bool:
        if monotonic() < self._known_until:
            return self._is_empty
        noticed = self._noticed
        is_empty = await self._documents.is_empty()
        # A document that was added meanwhile may be missing in the answer: then ask again next time.
        if noticed == self._noticed:
            self._is_empty, self._known_until = is_empty, monotonic() + EMPTY_SECONDS
        return is_empty

    async def filtered(self, documents: SearchableDocuments, asked: Filter) -> SearchableDocuments:
        """Return those of `documents` that fulfil the filter."""
        chosen: dict[str, Sequence[str] | None] = {}
        is_complete = True
        for owner, ids in documents.documents.items():
            found, checked_all = await allowed_documents(self._store, owner, asked, self._keys)
            wanted = None if ids is None else set(ids)
            chosen[owner] = [one for one in found if wanted is None or one in wanted]
            is_complete = is_complete and checked_all
        attached = [one for one in documents.attached if asked.fulfilled(document_item(one))]
        return SearchableDocuments(chosen, attached, is_complete)

    async def whole(self, documents: SearchableDocuments) -> list[Hit]:
        """Return the attached documents that fit into `MOST_WHOLE_TOKENS` together, whole and unranked."""
        left = MOST_WHOLE_TOKENS * CHARACTERS_PER_TOKEN
        hits = list[Hit]()
        for document in documents.attached:
            if document.characters <= left:
                left -= document.characters
                text = await self._text(document)
                if text:
                    hits.append(self._given(document, text))
        return hits

    async def _text(self, document: Document) -> str:
        batches = self._documents.passages.of_document(user_id=document.user_id, document_id=document.id)
        return "".join([passage.text async for batch in batches for passage in batch]).strip()

    def _given(self, document: Document, text: str) -> Hit:
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
