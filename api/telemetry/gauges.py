"""Figures that are read when Prometheus asks for them, rather than counted as events happen."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from recollect.memory.operations import Operations
from recollect.memory.ports.updates import Backlog
from recollect.memory.updates.retention import REASONS, Reason
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.frozen import frozen

logger = logging.getLogger(__name__)

MOST_COUNTED = 100_000
"""The most pending updates that a scrape counts."""
COUNT_SECONDS = 3.0


class Evictions(Collector):
    """Removals by retention's limits, by reason, as one open memory has counted them."""

    def __init__(self, evicted: Mapping[Reason, int]) -> None:
        self._evicted = evicted

    @override
    def collect(self) -> Iterable[Metric]:
        """Yield a figure for each reason, zeros included."""
        family = CounterMetricFamily(
            "recollect_evictions", "Facts and messages removed to keep within bounds.", labels=["reason"]
        )
        for reason in REASONS:
            family.add_metric([reason], self._evicted.get(reason, 0))
        yield family


@frozen
class Uncounted(Collector):
    """The requests that passed without being counted against RATE_LIMIT_PER_MINUTE."""

    requests: int

    @override
    def collect(self) -> Iterable[Metric]:
        """Yield their number since the start."""
        yield CounterMetricFamily(
            "recollect_rate_limit_uncounted",
            "Requests that passed uncounted because the store did not answer.",
            value=self.requests,
        )


@frozen
class PendingUpdates(Collector):
    """The pending updates of all users, whichever process will run them."""

    backlog: Backlog
    now: datetime

    @override
    def collect(self) -> Iterable[Metric]:
        """Yield their number, and the age of the oldest in seconds; 0 without any."""
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


async def pending_updates(operations: Operations) -> list[Collector]:
    """Read the pending updates from the store; return nothing where it does not answer within `COUNT_SECONDS`."""
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            return [PendingUpdates(await operations.backlog(at_most=MOST_COUNTED), operations.now())]
    except (RecollectError, TimeoutError) as error:
        logger.warning(
            "pending updates not counted", extra={"action": "metrics_incomplete", "error": type(error).__name__}
        )
        return []
