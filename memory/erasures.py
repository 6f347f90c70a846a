"""What is kept of erasures: tombstones that fence late writers out, and receipts. Neither holds an id.

A *subject* is who or what was erased, as a keyed hash: `H(user)` of a whole user, `H(user)/H(user/thread)` of a thread.
The key is made once, stays in the documents, and is shown nowhere: without it no hash can be tried against ids.
"""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from memory.scope import Scope
from memory.times import iso

SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Tombstone:
    """That a subject was erased: how often so far (`epoch`), when it last began or ended (UTC), and what is at work."""

    subject: str
    epoch: int
    at: datetime
    erasing: frozenset[str] = frozenset()
    """The ids of the erasures that have not ended."""

    @property
    def user(self) -> str:
        """The hash of the user, of a thread's tombstone too."""
        return self.subject.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure, and in the end its receipt: how much each data holder had, and how much a scan found afterwards.

    `scope` says whose it is until all of it is gone, so that it can be gone on with after a kill; a receipt has none.
    `is_done`: nothing is left on any disk either, and nobody works on it any more. `remaining` is None of a holder that
    could not be asked. `by` is the keyed hash of who asked for it.
    """

    id: str
    subject: str
    by: str
    erased_at: datetime
    touched_at: datetime
    scope: Scope | None
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    remaining: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    is_done: bool = False

    @property
    def is_of_a_user(self) -> bool:
        """Whether it is of a whole user, not of one thread."""
        return "/" not in self.subject

    def as_json(self) -> dict[str, Any]:
        """The receipt as the HTTP contract shows it; one that is not done yet says that it is `pending`."""
        receipt = {
            "erasure_id": self.id,
            "erased_at": iso(self.erased_at),
            "counts": dict(self.counts),
            "remaining": dict(self.remaining),
        }
        return receipt if self.is_done else {**receipt, "pending": True}


class Erasures(Protocol):
    """Tombstones, receipts, and the scan over what else the backend holds."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may erase in the same documents."""
        ...

    async def secret(self) -> bytes:
        """The key of the hashes: `SECRET_BYTES` random bytes, made by the first call that ever asks."""
        ...

    async def raise_fence(self, subject: str, erasure_id: str, *, at: datetime) -> Tombstone:
        """Begin an erasure: raise the subject's epoch and name the erasure as at work. The tombstone as it is then."""
        ...

    async def lift_fence(self, subject: str, erasure_id: str, *, at: datetime) -> None:
        """End it: the erasure is no longer at work, and the epoch rises once more. Done twice, it is done once."""
        ...

    async def tombstones(self, subjects: Sequence[str]) -> dict[str, Tombstone]:
        """Those of these subjects (at most 500) that have one."""
        ...

    async def erased(self, users: Sequence[str]) -> set[str]:
        """Those of these users' hashes (at most 500) that have a tombstone, or one of whose threads has one."""
        ...

    async def tombstones_since(self, at: datetime, *, after: str = "", limit: int = 500) -> list[Tombstone]:
        """A page of those raised or lifted at or after `at`, ascending by subject from behind `after`."""
        ...

    async def raises(self) -> int:
        """A number that rises with every `raise_fence`."""
        ...

    async def put(self, erasure: Erasure) -> None:
        """Store the erasure in place of what is stored under its id."""
        ...

    async def erasure(self, erasure_id: str) -> Erasure | None:
        """One erasure, or None."""
        ...

    async def unfinished(self, *, limit: int) -> list[Erasure]:
        """Erasures that are not done, those that were touched longest ago first."""
        ...

    async def delete_work(self, scope: Scope) -> int:
        """Delete what the backend itself keeps of work on the scope: claims, and places in the queue of its threads.

        To be called before the scope's messages are deleted: they name the threads.
        """
        ...

    async def count(self, holder: str, scope: Scope) -> int:
        """How much there is of the scope in all that belongs to the data holder of this name: a scan."""
        ...

    async def scrub(self) -> None:
        """Leave nothing on this machine's disk of what was deleted, where the backend keeps its files here.

        Raises:
            StoreUnavailable: another program holds it up.
        """
        ...


def hash_of(secret: bytes, *ids: str) -> str:
    """The keyed hash of a user's id, or of a user's and a thread's."""
    return hmac.digest(secret, "/".join(ids).encode(), "sha256").hex()


def subject_of(secret: bytes, scope: Scope) -> str:
    """The subject of this user, or of this thread."""
    user = hash_of(secret, scope.user_id)
    return user if scope.thread_id is None else f"{user}/{hash_of(secret, scope.user_id, scope.thread_id)}"
