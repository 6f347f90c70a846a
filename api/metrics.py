"""`GET /metrics`: what Prometheus scrapes."""

from collections.abc import Iterable

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from api.caller import ADMIN_ONLY
from api.state import OpenMemory
from memory.bounds import REASONS, Bounds

router = APIRouter(tags=["health"])


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


@router.get("/metrics", response_model=None, include_in_schema=False, dependencies=[ADMIN_ONLY])
async def get_metrics(memory: OpenMemory) -> Response:
    """Counted by this process since its start. A registry of its own: two apps in one process do not mix."""
    registry = CollectorRegistry()
    registry.register(Evictions(memory.bounds))
    return Response(generate_latest(registry), headers={"content-type": CONTENT_TYPE_LATEST})
