"""The erasures port: tombstones that fence late writers out, and receipts of erasures. Neither holds an id.

A *subject* is who or what was erased, as a keyed hash: `H(user)` of a whole user, `H(user)/H(user/thread)` of a thread.
The key is made once, stays in the store, and is shown nowhere: without it no hash can be tried against ids.
"""

import hmac
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import iso

SECRET_BYTES = 32


@frozen
class Tombstone:
    """The record that a subject was erased.

    `epoch` rises when an erasure begins and when it ends, and `at` (UTC) is when it last did. A writer that read a
    lower epoch began before that, and may hold data from before the erasure: it has to give up.
    """

    subject: str
    epoch: int
    at: datetime
    erasing: frozenset[str] = frozenset()
    """The ids of erasures that have begun and not ended."""

    @property
    def user(self) -> str:
        """The hash of the user, also in a thread's tombstone."""
        return self.subject.partition("/")[0]


@frozen
class Erasure:
    """One erasure; once done, it is its receipt. `counts` is how much each data holder had.

    `remaining` is how much a scan found afterwards, None for a holder that could not be asked. `scope` names the user
    (and thread) until all data are gone, so that another process can continue after a kill; a receipt has None.
    `is_done`: nothing is left on any disk either, and nobody works on it any more. `by` is the keyed hash of who asked
    for it.
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
        """Tell whether it erases a whole user, not one thread."""
        return "/" not in self.subject

    def as_json(self) -> dict[str, Any]:
        """Return the receipt as the HTTP contract shows it; an erasure that is not done has `pending` true."""
        receipt = {
            "erasure_id": self.id,
            "erased_at": iso(self.erased_at),
            "counts": dict(self.counts),
            "remaining": dict(self.remaining),
        }
        return receipt if self.is_done else {**receipt, "pending": True}


class Erasures(Protocol):
    """Tombstones, receipts, and the scan over what else the backend holds.

    A writer is fenced in two phases. It compares the tombstone's epoch before it reads anything else, and again after
    its write: if the epoch rose in between, it takes its write back. So an erasure raises its fence before it deletes
    anything. Writers need not read each tombstone: as long as `epoch` stays, none has changed.
    """

    is_shared: bool
    """Tell whether other processes may erase in the same store."""

    @abstractmethod
    async def secret(self) -> bytes:
        """Return the key of the hashes, `SECRET_BYTES` random bytes; the first call ever makes and stores it."""
        ...

    @abstractmethod
    async def block(self, subject: str, erasure_id: str, *, at: datetime) -> Tombstone:
        """Begin an erasure: raise the subject's epoch and add `erasure_id` to `erasing`; return the new tombstone.

        It is one atomic write, and stays until `unblock`, after a kill too.
        """
        ...

    @abstractmethod
    async def unblock(self, subject: str, erasure_id: str, *, at: datetime) -> None:
        """End an erasure: remove `erasure_id` from `erasing` and raise the epoch once more.

        If it has ended already, change nothing.
        """
        ...

    @abstractmethod
    async def tombstones(self, subjects: Sequence[str]) -> dict[str, Tombstone]:
        """Return, by subject, the tombstones of those of `subjects` (at most 500) that have one."""
        ...

    @abstractmethod
    async def erased(self, users: Sequence[str]) -> set[str]:
        """Return those of `users` (at most 500 hashes) that have a tombstone, or a thread of which has one."""
        ...

    @abstractmethod
    async def tombstones_since(self, at: datetime, *, after: str = "", limit: int = 500) -> list[Tombstone]:
        """Return up to `limit` tombstones that were raised or lifted at or after `at`.

        They come by subject, ascending, from behind `after`.
        """
        ...

    @abstractmethod
    async def epoch(self) -> int:
        """Return a number that rises with every fence that is raised or lifted, of whatever subject.

        It rises after the subject's tombstone did: who reads it first and then the tombstone finds that one too.
        """
        ...

    @abstractmethod
    async def put(self, erasure: Erasure) -> None:
        """Store `erasure` in place of the stored one with its id."""
        ...

    @abstractmethod
    async def erasure(self, erasure_id: str) -> Erasure | None:
        """Return the erasure with this id, or None."""
        ...

    @abstractmethod
    async def unfinished(self, *, limit: int) -> list[Erasure]:
        """Return erasures that are not done, those first that were touched longest ago."""
        ...

    @abstractmethod
    async def delete_work(self, scope: Scope) -> int:
        """Delete what the backend stores for work on the scope: claims, and entries in its threads' queues.

        Call it before the scope's messages are deleted, because they name the threads. Return how many there were.
        """
        ...

    @abstractmethod
    async def count(self, holder: str, scope: Scope) -> int:
        """Count, by a scan, what the data holder of this name has of the scope."""
        ...

    @abstractmethod
    async def scrub(self) -> None:
        """Remove what was deleted from this machine's disk, where the backend keeps its files here.

        Raises:
            StoreUnavailable: another program holds the files.
        """
        ...


def keyed_hash(secret: bytes, *ids: str) -> str:
    """Return the keyed hash (HMAC-SHA256, hexadecimal) of a user's id, or of a user's and a thread's."""
    return hmac.digest(secret, "/".join(ids).encode(), "sha256").hex()


def subject_of(secret: bytes, scope: Scope) -> str:
    """Return the subject of the scope's user, or of its thread."""
    user = keyed_hash(secret, scope.user_id)
    return user if scope.thread_id is None else f"{user}/{keyed_hash(secret, scope.user_id, scope.thread_id)}"
