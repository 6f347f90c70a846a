"""The vector index port: the derived search structure. Everything in it can be rebuilt from the store."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal, Protocol
from zlib import crc32

from recollect.memory.values.filtering.filter import Item
from recollect.memory.values.filtering.items import message_item
from recollect.memory.values.filtering.narrow import NONE, Narrow
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import to_ms
from recollect.memory.values.turn import Message, derived_id

Kind = Literal["episode", "fact", "summary", "document"]
Channel = Literal["dense", "context", "bm25"]
"""A point's named vectors: of its text, of its text behind the message before it, and of its weighted words."""
Vector = Sequence[float]


@frozen
class SparseVector:
    """Token ids and their weights, of equal length."""

    indices: Sequence[int]
    values: Sequence[float]


@frozen
class Origin:
    """The document that a passage belongs to. The index holds only its `id`, so that the other fields may change.

    `page` counts from 1 and is None where the document has no pages.
    """

    id: str
    title: str = ""
    domain: str | None = None
    source: str | None = None
    page: int | None = None


@frozen
class Entry:
    """The data of a point, apart from its vectors. `id` is the point's: a UUID derived from its owner.

    `fact_id` is a fact's own id, which a caller may have chosen; `message_id` is the importer's id of a message where
    it gave one; `position` is the message's position in the thread; `origin` is a passage's document. `item` is that
    which filters look at: the index keeps its terms and does not give it back. Passages and summaries have none.
    """

    id: str
    user_id: str
    thread_id: str | None
    turn_id: str | None
    kind: Kind
    content: str
    created_at: datetime
    role: str | None = None
    name: str | None = None
    message_id: str | None = None
    position: int | None = None
    origin: Origin | None = None
    fact_id: str | None = None
    item: Item | None = field(default=None, compare=False, repr=False)

    @property
    def memory_id(self) -> str:
        """The id that answers show: a fact's own id; otherwise the point's."""
        return self.fact_id or self.id

    def payload(self) -> dict[str, Any]:
        """Return the point's payload in LangChain's layout: `page_content` and `metadata`, times as epoch milliseconds.

        langchain_qdrant's retrievers read these two keys too.
        """
        # Other kinds have no such fields: they would change what their fingerprints are made from.
        own = {} if self.origin is None else {"document_id": self.origin.id}
        own |= {} if self.fact_id is None else {"fact_id": self.fact_id}
        return {
            "page_content": self.content,
            "metadata": {
                "user_id": self.user_id,
                "thread_id": self.thread_id,
                "turn_id": self.turn_id,
                "kind": self.kind,
                "role": self.role,
                "name": self.name,
                "message_id": self.message_id,
                "created_at": to_ms(self.created_at),
                "position": self.position,
                **own,
            },
        }


@frozen
class Point:
    """An entry with its vectors by channel, of which `dense` is always there.

    `fingerprint` identifies what the point was made from: see `index_fingerprint`.
    """

    entry: Entry
    dense: Vector
    context: Vector | None = None
    bm25: SparseVector | None = None
    fingerprint: str | None = None

    def payload(self) -> dict[str, Any]:
        """Return the entry's payload with the fingerprint in its metadata."""
        said = self.entry.payload()
        return {**said, "metadata": {**said["metadata"], "fingerprint": self.fingerprint}}


@frozen
class Allowance:
    """Holds what a filter lets a search find: these `points`, and those for whose terms and times `terms` holds."""

    points: frozenset[str]
    terms: Narrow = NONE


@frozen
class Query:
    """One search of one channel. `vector` is sparse for `bm25` alone; `limit` is at least 1.

    Filters: no point of a turn in `exclude_turns`; with `ids`, only these points; with `period`, only points created
    within it; with `documents`, only passages of these documents; with `allowed`, only what that
    allows. Words are weighted by how rare they are among all
    points of the scope's user, never among other users'.
    """

    scope: Scope
    vector: Vector | SparseVector
    limit: int
    kinds: Sequence[Kind] = ("episode",)
    exclude_turns: Sequence[str] = ()
    with_vectors: bool = False
    channel: Channel = "dense"
    ids: Sequence[str] | None = None
    period: Period | None = None
    documents: Sequence[str] | None = None
    allowed: Allowance | None = None


@frozen
class Match:
    """A found entry. `similarity` is the raw cosine in [-1, 1]; `dense` is set if the query had `with_vectors`."""

    entry: Entry
    similarity: float
    dense: Vector | None = None


class PointStore(Protocol):
    """Points of one collection.

    Every call but `ping` and those that a scan consists of (`fingerprints`, `entries`, `ids`, `users`, `count`) is
    scoped to a user. A backend that cannot be reached raises `IndexUnavailable`, and nothing else crosses this seam.
    """

    @abstractmethod
    async def upsert(self, points: Sequence[Point]) -> None:
        """Store `points`, replacing their owner's points of the same ids; they are durable when it returns.

        Raises:
            PointTaken: another user has a point with one of these ids, and keeps it. Other points may be stored.
        """
        ...

    @abstractmethod
    async def search(self, query: Query) -> list[Match]:
        """Return up to `query.limit` entries by descending cosine similarity. `query.channel` is not `bm25`."""
        ...

    @abstractmethod
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """Return for each of `queries` (of one user) the found points' ids with their raw scores, best first.

        It asks in one batch and reads no payload. Dense scores are cosines in [-1, 1]; points without that vector are
        left out. A `bm25` score is the sum, over the words in common, of
        query weight * point weight * ln(1 + (N - n + 0.5) / (n + 0.5)),
        where N of the user's points have words and n of them have that word; the last factor is Lucene's idf. Points
        that share no word with the query are left out.
        """
        ...

    @abstractmethod
    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Return, for those of `ids` (at most 500) that have a point, the fingerprint stored with it, or None."""
        ...

    @abstractmethod
    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """Return the entries of those of `ids` (at most 500) that have a point, in any order."""
        ...

    @abstractmethod
    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        """Return up to `limit` point ids greater than `after`, ascending: one page of a scan.

        The scan covers all users, or the points of `scope`.
        """
        ...

    @abstractmethod
    async def users(self) -> list[str]:
        """Return the users who have points, in any order, by a scan."""
        ...

    @abstractmethod
    async def threads(self, user_id: str) -> list[str]:
        """Return the ids of the threads in which the user has points, in any order."""
        ...

    @abstractmethod
    async def count(self, *, user_id: str | None = None, thread_id: str | None = None) -> int:
        """Count the points of all users, of one user, or of one thread of that user."""
        ...

    @abstractmethod
    async def retouch(self, entries: Sequence[Entry]) -> int:
        """Write the terms of these `entries` (at most 500) to their owners' points where these have others.

        Vectors stay as they are. Return how many were written; entries without a point are no error.
        """
        ...

    @abstractmethod
    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete the user's points with these ids; ids without a point are no error."""
        ...

    @abstractmethod
    async def delete(self, scope: Scope) -> int:
        """Delete all points of the thread (or of the user); return how many were deleted."""
        ...

    @abstractmethod
    async def ping(self) -> None:
        """Ask the backend whether it can serve.

        Raises:
            IndexUnavailable: it cannot.
        """
        ...


class Successor(Protocol):
    """A new collection that a rebuild fills beside the serving one; it may hold points of a killed rebuild.

    The index keeps serving and taking writes meanwhile, so every write since the rebuild began goes to both
    collections, in the same order: none is lost when the new one is promoted.
    """

    points: PointStore
    """The points of the new collection."""

    @abstractmethod
    async def promote(self) -> None:
        """Serve from the new collection, from one call to the next; the old one is deleted when this returns.

        Raises:
            IndexUnavailable: it missed a write, or could not be promoted; the old collection goes on serving.
        """
        ...


class VectorIndex(PointStore, Protocol):
    """One index of points, made for one embedder: its name contains the embedder's fingerprint."""

    name: str
    """The name that `/health` shows: "qdrant-edge" or "qdrant"."""

    @abstractmethod
    def rebuilding(self) -> AbstractAsyncContextManager[Successor]:
        """Begin a successor, or continue with the one that a killed rebuild left.

        A successor that is not promoted is kept for the next rebuild.

        Raises:
            Rebuilding: this process has one open already.
        """
        ...

    @abstractmethod
    async def other_collections(self) -> list[str]:
        """Return the names of collections of the same base name made for other embedders. No search reads them."""
        ...

    @abstractmethod
    async def drop_other(self, name: str) -> None:
        """Delete the collection `name` of `other_collections`, which nobody has open, with all that is stored of it.

        A collection that does not exist is no error.
        """
        ...

    @abstractmethod
    async def erase(self, scope: Scope) -> int:
        """Delete the scope's points in every collection of the base name, of any embedder; return how many.

        Where the files are on this machine, a whole user's text leaves them too: the files are rewritten while searches
        go on, and a rebuild under way is given up.
        """
        ...

    @abstractmethod
    async def remaining(self, scope: Scope) -> int:
        """Count, by a scan, the points of the scope in every collection that `erase` covers."""
        ...

    @abstractmethod
    async def rewrite(self) -> None:
        """Remove what was deleted from this machine's files; a Qdrant server removes it by itself."""
        ...

    @abstractmethod
    async def vacuum(self, seconds: float) -> bool:
        """Call `rewrite` if something was deleted and it is time; return whether it was called.

        Called often enough, it keeps two bounds: what was deleted leaves the files within `seconds`, and the files are
        rewritten at most once in that time.
        """
        ...


def episode(message: Message) -> Entry:
    """Return the entry of a stored message."""
    return Entry(
        id=message.id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        turn_id=message.turn_id,
        kind="episode",
        content=message.content,
        created_at=message.created_at,
        role=message.role,
        name=message.name,
        message_id=message.imported_id or message.id,
        position=message.position,
        item=message_item(message),
    )


def fact_point_id(user_id: str, fact_id: str) -> str:
    """Return the id of a fact's point. It is derived, because an import chooses the facts' own ids."""
    return derived_id(user_id, "fact", fact_id)


def indexed_message(entry: Entry) -> Message:
    """Return the message of an entry that `episode` made, with the fields that the entry has."""
    return Message(
        user_id=entry.user_id,
        thread_id=entry.thread_id or "",
        turn_id=entry.turn_id or "",
        role="assistant" if entry.role == "assistant" else "user",
        content=entry.content,
        created_at=entry.created_at,
        name=entry.name,
        position=entry.position or 0,
    )


def collection_name(base: str, *, model: str, dimension: int) -> str:
    """Return the collection's name: the base, then the embedder's fingerprint (model and dimension).

    Every character of the model outside [A-Za-z0-9.-] becomes "-"; a CRC-32 of the exact name keeps models apart that
    become alike.
    """
    slug = "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "-" for char in model)[:60]
    return f"{base}__{slug}-{crc32(model.encode()):08x}-{dimension}"


_SCHEME = 2
"""To be increased when the same text gives another point: the fingerprints of older points then differ."""


def index_fingerprint(entry: Entry, *, model: str, dimension: int) -> str:
    """Return 16 hexadecimal digits over the embedder (`model`, `dimension`), the scheme, and the entry's payload.

    A point with another fingerprint was made by another embedder or scheme, or from another text, and has to be made
    again. The message before is not part of it: where that is removed later, the point stays valid.
    """
    made_from: list[object] = [_SCHEME, model, dimension, entry.id, entry.payload()]
    text = json.dumps(made_from, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()
