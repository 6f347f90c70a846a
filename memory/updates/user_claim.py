"""Holds a user's claim, so that work outside the updater never runs beside the user's updates, in any process."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4

from recollect.memory.ports.updates import Claim, Updates
from recollect.memory.updates.work_claim import LEASE
from recollect.memory.values.errors import StoreUnavailable, UpdatePending
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import Clock

logger = logging.getLogger(__name__)

RENEW_SECONDS = LEASE.total_seconds() / 3
LOOK_SECONDS = 0.1
"""How often to try for a claim that somebody else holds."""
BUSY = "What the user said before is still being learned from; send the request again when that has ended."


@frozen
class HeldClaim:
    """A claim that is renewed for as long as it is held."""

    updates: Updates
    claim: Claim
    clock: Clock

    async def check(self) -> None:
        """Make sure that the claim is held, and extend it by a whole lease.

        Raises:
            UpdatePending: another process has taken over.
        """
        if not await self.updates.renew(self.claim, lease=LEASE, now=self.clock()):
            raise UpdatePending(BUSY)

    async def keep(self) -> None:
        """Renew the claim until cancelled, or until it is lost: then `check` raises."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self.check()
            except UpdatePending:
                return
            except StoreUnavailable:
                logger.warning("a claim waits for the document store", extra={"action": "claim_waits"})


@asynccontextmanager
async def user_claim(updates: Updates, user_id: str, *, clock: Clock, wait_seconds: float) -> AsyncGenerator[HeldClaim]:
    """Hold the claim on the user's updates, and renew it until the block ends.

    Raises:
        UpdatePending: somebody else held it for `wait_seconds`.
        StoreUnavailable: the store cannot be reached.
    """
    owner = f"claim-{uuid4().hex}"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    while (claim := await updates.claim(user_id, owner=owner, lease=LEASE, now=clock())) is None:
        left = deadline - loop.time()
        if left <= 0:
            raise UpdatePending(BUSY)
        # Poll: the owner may be another process, which cannot wake this one.
        await asyncio.sleep(min(LOOK_SECONDS, left))
    held = HeldClaim(updates, claim, clock)
    keeping = asyncio.create_task(held.keep(), name="claim-renew")
    try:
        yield held
    finally:
        # Stop renewing before the release: no renewal may still be under way when another owner takes the claim.
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await updates.release(claim)
