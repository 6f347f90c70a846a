"""An outage of a server that a test can begin and end, for tests that are not asynchronous."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.contracts.store.suite.cut_off import CutOff, cut_off


@dataclass(frozen=True)
class Outage:
    """A way to a server, by a loopback port."""

    proxy: CutOff
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        """The port that leads to the server."""
        return self.proxy.port

    def begin(self) -> None:
        """Close all connections, and refuse new ones."""
        self.loop.call_soon_threadsafe(self.proxy.cut)

    def end(self) -> None:
        """Let connections through again."""
        self.loop.call_soon_threadsafe(self.proxy.restore)


@contextmanager
def outage_of(url: str) -> Generator[Outage]:
    """Lead to the server at `url`; the proxy runs in a thread of its own."""
    loop, opened, closing = asyncio.new_event_loop(), list[CutOff](), threading.Event()
    ready = threading.Event()

    async def run() -> None:
        async with cut_off(url) as proxy:
            opened.append(proxy)
            ready.set()
            await asyncio.to_thread(closing.wait)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), name="outage")
    thread.start()
    assert ready.wait(10)
    try:
        yield Outage(opened[0], loop)
    finally:
        closing.set()
        thread.join(10)
        loop.close()
