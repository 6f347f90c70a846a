"""Figures that are read when Prometheus asks for them, rather than counted as things happen."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from memory.bounds import REASONS, Bounds
from memory.documents import Backlog, Documents
from memory.errors import RecollectError

logger = logging.getLogger(__name__)

MOST_COUNTED = 100_000
"""A scrape counts no further than so many pending updates."""
COUNT_SECONDS = 3.0


class Evictions(Collector):
    """What was removed to keep within bounds, by reason, as one open memory has counted it."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def collect(self) -> Iterable[Metric]:
        """All reasons, those without a removal too."""
        family = CounterMetricFamily(
            "recollect_evictions", "Facts and messages removed to keep within bounds.", labels=["reason"]
        )
        for reason in REASONS:
            family.add_metric([reason], self._bounds.evicted[reason])
        yield family


@dataclass(frozen=True)
class PendingUpdates(Collector):
    """The updates that wait to be worked off, of all users and by whichever process."""

    backlog: Backlog
    now: datetime

    def collect(self) -> Iterable[Metric]:
        """How many, and how long the oldest has been waiting in seconds; 0 where none waits."""
        yield GaugeMetricFamily(
            "recollect_pending_updates",
            f"Turns whose update is pending, counted up to {MOST_COUNTED:,}.",
            value=self.backlog.pending,
        )
        oldest = self.backlog.oldest
        yield GaugeMetricFamily(
            "recollect_pending_update_age_seconds",
            "How long the oldest pending update has been waiting.",
            value=0.0 if oldest is None else max(0.0, (self.now - oldest).total_seconds()),
        )


async def pending_updates(documents: Documents, *, now: datetime) -> list[Collector]:
    """What is pending by the documents; nothing where they do not say it within `COUNT_SECONDS`."""
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            return [PendingUpdates(await documents.updates.waiting(at_most=MOST_COUNTED), now)]
    except (RecollectError, TimeoutError) as error:
        logger.warning(
            "pending updates not counted", extra={"action": "metrics_incomplete", "error": type(error).__name__}
        )
        return []
