"""The claim under which this process works on one user's updates, and the turns that it names."""

from collections.abc import Collection
from datetime import timedelta

from recollect.memory.ports.updates import Claim, Updates
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update

LEASE = timedelta(seconds=15)
MOST_NAMED = 20
"""A claim names at most this many turns."""


class WorkClaim:
    """Takes, keeps and releases a user's claim; `owner` names this process.

    While it names all turns that are worked on, others find by these turns that it is over, and nobody has to write it.
    """

    def __init__(self, updates: Updates, user_id: str, *, owner: str, clock: Clock) -> None:
        self._updates = updates
        self._user_id = user_id
        self._owner = owner
        self._clock = clock
        self._claim: Claim | None = None
        self._named: list[str] = []

    @property
    def is_held(self) -> bool:
        """Whether this process holds it, as far as it knows."""
        return self._claim is not None

    async def take(self, turn_ids: Collection[str]) -> bool:
        """Take the claim for these turns; return False while another process holds it. Without any it names none."""
        named = list(turn_ids) if len(turn_ids) <= MOST_NAMED else []
        self._claim = await self._updates.claim(
            self._user_id, owner=self._owner, lease=LEASE, now=self._clock(), turns=named
        )
        self._named = named
        return self._claim is not None

    async def covers(self, turn_ids: Collection[str]) -> bool:
        """Have a claim that names turns name these too, before they are worked on; return False if it was lost."""
        if not self._named or all(turn_id in self._named for turn_id in turn_ids):
            return True
        named = list(dict.fromkeys((*self._named, *turn_ids)))
        self._named = named if len(named) <= MOST_NAMED else []
        claim = self._claim
        return claim is not None and await self._updates.renew(claim, lease=LEASE, now=self._clock(), turns=self._named)

    async def renew(self) -> bool:
        """Extend the claim. Return False if it was lost: then the work must end."""
        claim = self._claim
        if claim is None or await self._updates.renew(claim, lease=LEASE, now=self._clock()):
            return True
        return self._claim is not claim  # the work ended and released the claim while it was renewed

    async def record(self, turn: Turn, update: Update) -> bool:
        """Write the turn's update under the claim; return False if that was lost, or the turn is gone."""
        claim = self._claim
        return claim is not None and await self._updates.record(turn, update, generation=claim.generation)

    async def release(self, *, all_ended: bool) -> None:
        """Give the claim up; `all_ended`: the ends of all turns that were worked on are recorded."""
        claim = self._claim
        if claim is None:
            return
        # Forget the claim before the release: `renew` must not take the released claim for a lost one.
        self._claim = None
        await self._updates.release(claim, is_over=all_ended and bool(self._named))
