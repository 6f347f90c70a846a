"""Holding a user's claim: what is done under it comes in turn with the user's updates, in whichever process."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from memory.documents import Claim, Updates
from memory.errors import StoreUnavailable, UpdatePending
from memory.times import Clock
from memory.user_work import LEASE

logger = logging.getLogger(__name__)

RENEW_SECONDS = LEASE.total_seconds() / 3
LOOK_SECONDS = 0.1
"""How often to look whether whoever works on the user's updates is through."""
BUSY = "What the user said before is still being learned from; send the request again when that has ended."


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim that is renewed for as long as it is held."""

    updates: Updates
    claim: Claim
    clock: Clock

    async def check(self) -> None:
        """Make sure that it is still held, and will be for the whole lease.

        Raises:
            UpdatePending: another process has taken over.
        """
        if not await self.updates.renew(self.claim, lease=LEASE, now=self.clock()):
            raise UpdatePending(BUSY)

    async def keep(self) -> None:
        """Renew it until cancelled, or lost: `check` tells."""
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
    """Hold the right to work on the user's memory.

    Raises:
        UpdatePending: somebody else held it for `wait_seconds`.
        StoreUnavailable: the documents cannot be reached.
    """
    owner = f"claim-{uuid4().hex}"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    while (claim := await updates.claim(user_id, owner=owner, lease=LEASE, now=clock())) is None:
        left = deadline - loop.time()
        if left <= 0:
            raise UpdatePending(BUSY)
        await asyncio.sleep(min(LOOK_SECONDS, left))
    held = HeldClaim(updates, claim, clock)
    keeping = asyncio.create_task(held.keep(), name="claim-renew")
    try:
        yield held
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await updates.release(claim)
