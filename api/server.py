"""Runs the application under uvicorn, on a socket that is bound before anything is opened."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from api.app import create_app
from api.log import configure_logging
from memory.errors import ConfigurationError
from settings import Settings

logger = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigurationError: the address cannot be bound, or a setting stops the start.
    """
    configure_logging(settings.log_level)
    with bind(settings.host, settings.port) as bound:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(settings, bound))


async def _serve(settings: Settings, bound: socket.socket) -> None:
    """Open, serve, drain and close. The lifespan is entered here, so that what stops a start is one plain exception."""
    url = _url(bound)
    app = create_app(settings, url=url)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
    )
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopped.set()
        app.state.stop_at = loop.time() + settings.shutdown_seconds

    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises the signal again once it has stopped: this handler keeps it from cutting the drain short.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    async with app.router.lifespan_context(app):
        if not stopped.is_set():
            logger.info("serving", extra={"action": "serving", "url": url})
            server = _Server(config, on_exit=stop)
            await server.serve(sockets=[bound])
    logger.info("stopped", extra={"action": "stopped"})


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, *, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the clock of the drain, then finish what is under way."""
        self._on_exit()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """A bound TCP socket; port 0 takes a free one.

    Raises:
        ConfigurationError: the address is taken, or none of this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"HOST {host} is no address of this machine ({error.strerror}).") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ConfigurationError(f"Cannot listen on {host}:{port} ({error.strerror}); set another PORT.") from error
    return bound


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
