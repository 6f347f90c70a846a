"""Runs `recollect worker`: a process that works updates off and answers nobody."""

import asyncio
import contextlib
import logging
import signal

from starlette.datastructures import State

from recollect.api.server import loop_factory
from recollect.api.telemetry.observers import open_observer
from recollect.memory.opening.opening import open_memory
from recollect.memory.values.mem_config import MemoryConfig

logger = logging.getLogger(__name__)


def work(config: MemoryConfig, *, collector: str | None) -> None:
    """Work updates off until SIGINT or SIGTERM; `collector` is where traces go.

    Raises:
        ConfigurationError: a setting is wrong, or the stores are embedded.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_work(config.replace(worker="only"), collector))


async def _work(config: MemoryConfig, collector: str | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with open_observer(collector, State()) as observer, open_memory(config, observer=observer) as memory:
        logger.info("working", extra={"action": "working"})
        await stopped.wait()
        # Before anything else ends: the other processes take the users over as soon as their claims are free.
        await memory.operations.drain(0)
    logger.info("stopped", extra={"action": "stopped"})
