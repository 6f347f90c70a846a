"""The vector index port: derived search structure. Everything in it can be rebuilt from the documents."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal, Protocol
from zlib import crc32

from memory.dates import Period
from memory.scope import Scope
from memory.times import to_ms
from memory.turn import Message

Kind = Literal["episode", "fact", "summary", "document"]
Channel = Literal["dense", "context", "bm25"]
"""The named vectors: a text's own, that of the text behind the message before it, and its weighted words."""
Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Token ids and their weights, of equal length."""

    indices: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Origin:
    """The document that a passage is of. The index knows its `id` alone, so that the rest may change.

    `page` counts from 1, where the document has pages.
    """

    id: str
    title: str = ""
    domain: str | None = None
    source: str | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What a point says, apart from its vectors. `id` is a UUID; for an episode it is its message's.

    `message_id` is the importer's own id of a message where one was given, `position` its place in the thread; `origin`
    is a passage's document.
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

    def payload(self) -> dict[str, Any]:
        """The point's payload in LangChain's layout: `page_content` and `metadata`, times as epoch milliseconds.

        It also serves langchain_qdrant's retrievers, which read these two keys.
        """
        # Other kinds have no such field: it would change what their fingerprints are made from.
        document = {} if self.origin is None else {"document_id": self.origin.id}
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
                **document,
            },
        }


@dataclass(frozen=True, slots=True)
class Point:
    """An entry with its vectors by channel, of which `dense` is never missing.

    `fingerprint` tells what it was made from.
    """

    entry: Entry
    dense: Vector
    context: Vector | None = None
    bm25: SparseVector | None = None
    fingerprint: str | None = None

    def payload(self) -> dict[str, Any]:
        """The entry's payload with the fingerprint."""
        said = self.entry.payload()
        return {**said, "metadata": {**said["metadata"], "fingerprint": self.fingerprint}}


@dataclass(frozen=True, slots=True)
class Query:
    """One search of a channel, whose `vector` is sparse for `bm25` alone. `limit` is at least 1.

    Turns in `exclude_turns` never come back. `ids`: none but these points; `period`: none but those created within it;
    `documents`: none but passages of these documents.
    Words are weighed by how rare they are among all points of the scope's user, never among other users'.
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


@dataclass(frozen=True, slots=True)
class Match:
    """A found entry: `similarity` is the raw cosine in [-1, 1]; `dense` is there if the query asked for vectors."""

    entry: Entry
    similarity: float
    dense: Vector | None = None


class PointStore(Protocol):
    """Points of one collection.

    Every call but `ping` and those that a scan consists of (`fingerprints`, `entries`, `ids`, `users`, `count`) is
    scoped to a user. A backend that cannot be reached raises `IndexUnavailable`, and nothing else crosses this seam.
    """

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points, replacing those with the same id; durable when it returns."""
        ...

    async def search(self, query: Query) -> list[Match]:
        """The nearest entries by cosine similarity (so not of `bm25`), best first."""
        ...

    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        """For each query (of one user) the ids that it finds with their raw scores, best first: one batch, no payload.

        Scores are cosines in [-1, 1]; points without that vector never come. Of `bm25`: for each word in common, the
        query's weight times the point's times ln(1 + (N - n + 0.5) / (n + 0.5)), added up, where N of the user's points
        have words, and n of them that one. Points that share no word with the query never come.
        """
        ...

    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Of those of `ids` (at most 500) that have a point: the fingerprint it was stored with, if any."""
        ...

    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        """The entries of those of `ids` (at most 500) that have a point, in any order."""
        ...

    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        """Point ids in ascending order, from behind `after`: one page of a scan over all users, or over a scope."""
        ...

    async def users(self) -> list[str]:
        """The users who have points, in any order: a scan."""
        ...

    async def threads(self, user_id: str) -> list[str]:
        """The threads in which the user has points, in any order."""
        ...

    async def count(self, *, user_id: str | None = None, thread_id: str | None = None) -> int:
        """How many points there are: of all, of one user, or of one thread of theirs."""
        ...

    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user; those that do not exist are no error."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete all points of the thread (or the user) and say how many there were."""
        ...

    async def ping(self) -> None:
        """Ask the backend whether it can serve; raises IndexUnavailable."""
        ...


class Successor(Protocol):
    """A new collection, filled beside the one that serves; it may hold what a killed rebuild left.

    Every write to the index since it was begun is in both, in the same order.
    """

    @property
    def points(self) -> PointStore:
        """What it holds."""
        ...

    async def promote(self) -> None:
        """Serve from it, from one call to the next; the old collection is gone when this returns.

        Raises:
            IndexUnavailable: it missed a write, or could not be promoted; the old one goes on serving.
        """
        ...


class VectorIndex(PointStore, Protocol):
    """One index of points, made for one embedder: its name carries the embedder's fingerprint."""

    @property
    def name(self) -> str:
        """What `/health` calls it: "qdrant-edge" or "qdrant"."""
        ...

    def rebuilding(self) -> AbstractAsyncContextManager[Successor]:
        """Begin a successor, or take up the one that a killed rebuild left; not promoted, it stays for the next one.

        Raises:
            Rebuilding: this process has one open already.
        """
        ...

    async def other_collections(self) -> list[str]:
        """Collections of the same base name made for other embedders: never searched, only reported."""
        ...

    async def erase(self, scope: Scope) -> int:
        """`delete` in every collection of the base name, whoever it was made for; how many points there were.

        Where the files are this machine's own, a whole user's text leaves them too: they are written anew, searches go
        on meanwhile, and a rebuild under way is given up.
        """
        ...

    async def remaining(self, scope: Scope) -> int:
        """How many points of the scope all those collections hold: a scan."""
        ...

    async def rewrite(self) -> None:
        """Take what was deleted out of this machine's files; a server sees to its own."""
        ...


def episode(message: Message) -> Entry:
    """The entry of a stored message."""
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
    )


def message_of(entry: Entry) -> Message:
    """The message of an entry that `episode` made, as far as the entry says it."""
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
    """The collection's name: the base, then the embedder's fingerprint (model and dimension).

    Every character of the model outside [A-Za-z0-9.-] becomes "-"; a short digest of the exact name keeps apart those
    that this makes alike.
    """
    slug = "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "-" for char in model)[:60]
    return f"{base}__{slug}-{crc32(model.encode()):08x}-{dimension}"


_SCHEME = 2
"""Raised when points are made in another way from the same text: older points are then known as such."""


def fingerprint(entry: Entry, *, model: str, dimension: int) -> str:
    """What a point of this entry is made from: the embedder, the text and all the payload says; 16 hexadecimal digits.

    A point with another fingerprint was made by another embedder or scheme, or from another text, and is to be made
    anew. What stood before a message is not part of it: where that is removed later, the point remains right.
    """
    made_from: list[object] = [_SCHEME, model, dimension, entry.id, entry.payload()]
    text = json.dumps(made_from, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()
