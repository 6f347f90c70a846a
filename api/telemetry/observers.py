"""Opens this process's observers: figures for `GET /metrics` always, traces where a collector is named."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.datastructures import State

from recollect.api.telemetry.metrics import Metrics
from recollect.memory.ports.observing import Observer


@asynccontextmanager
async def open_observer(collector: str | None, state: State) -> AsyncGenerator[Observer]:
    """Provide the observer; leaves `metrics`, and with a collector's URL `traces`, in the application's state."""
    state.metrics = metrics = Metrics()
    if collector is None:
        yield metrics
        return
    traces = await asyncio.to_thread(_traces)
    async with traces(collector, metrics) as observer:
        state.traces = observer
        yield observer


def _traces():
    """Import what opens traces. Its libraries are read from disk, so this runs in a thread."""
    from recollect.api.telemetry.traces import open_traces

    return open_traces
