"""Runs the application under uvicorn, on a socket that is bound before anything is opened."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from memory.errors import ConfigurationError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes a free one."""

    host: str
    port: int


def run(make_app: Callable[[str], FastAPI], address: Address, *, shutdown_seconds: float) -> None:
    """Serve the application that `make_app` makes for its URL, until SIGINT or SIGTERM.

    Raises:
        ConfigurationError: the address cannot be bound, or a setting stops the start.
    """
    with bind(address) as bound, asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(make_app, bound, shutdown_seconds))


async def _serve(make_app: Callable[[str], FastAPI], bound: socket.socket, shutdown_seconds: float) -> None:
    """Open, serve, drain and close. The lifespan is entered here, so that what stops a start is one plain exception."""
    url = url_of(bound)
    app = make_app(url)
    config = configured(app, shutdown_seconds)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not stopped.is_set():
            stopped.set()
            app.state.stop_at = loop.time() + shutdown_seconds

    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises the signal again once it has stopped: this handler keeps it from cutting the drain short.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    async with app.router.lifespan_context(app):
        # 200,000 objects of the libraries live as long as the process: each full collection would stop it for 0.1 s.
        gc.collect()
        gc.freeze()
        if not stopped.is_set():
            logger.info("serving", extra={"action": "serving", "url": url})
            await _Server(config, on_exit=stop).serve(sockets=[bound])
    logger.info("stopped", extra={"action": "stopped"})


def configured(app: FastAPI, shutdown_seconds: float) -> uvicorn.Config:
    """How uvicorn serves the application, whose lifespan is entered by whoever serves it."""
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # an address that anybody can write opens nothing, and counts for nothing
        server_header=False,
        timeout_graceful_shutdown=max(1, round(shutdown_seconds)),
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, *, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the clock of the drain, then finish what is under way."""
        self._on_exit()
        await super().shutdown(sockets)


def bind(address: Address) -> socket.socket:
    """A bound TCP socket.

    Raises:
        ConfigurationError: the address is taken, or none of this machine's.
    """
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, name = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"HOST {address.host} is no address of this machine ({error.strerror}).") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(name)
    except OSError as error:
        bound.close()
        raise ConfigurationError(
            f"Cannot listen on {address.host}:{address.port} ({error.strerror}); set another PORT."
        ) from error
    return bound


def url_of(bound: socket.socket) -> str:
    """Where a bound socket is reached."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the service's event loop; None: Python's own."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
