"""Runs the application under uvicorn, on a socket that is bound before anything is opened."""

import asyncio
import contextlib
import functools
import logging
import multiprocessing
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from typing import cast

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from typing_extensions import override

from recollect.api.middleware.connection import Connection
from recollect.api.middleware.connections import ConnectionLimits, Connections, raise_open_files
from recollect.graph.turns import TurnRunner
from recollect.memory.background.interpreter import settle_interpreter
from recollect.memory.language.late_pattern import compile_late_patterns
from recollect.memory.opening.late_imports import import_clients
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen

logger = logging.getLogger(__name__)

_WAITING = 2_048
"""How many connections wait to be accepted."""
_FIRST_SECONDS = 0.5
"""How long the first requests have Python's lock for themselves, before patterns are compiled that they do not use."""


@frozen
class Address:
    """The address to listen at; port 0 takes a free one."""

    host: str
    port: int


def run(
    bound: socket.socket,
    make_app: Callable[[str], FastAPI],
    *,
    shutdown_seconds: float,
    limits: ConnectionLimits | None = None,
) -> None:
    """Serve the application that `make_app` makes for its URL on a bound socket, until SIGINT or SIGTERM.

    Other processes may listen on the socket too.

    Raises:
        ConfigurationError: a setting stops the start.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        raise_open_files(limits := limits or ConnectionLimits())
        # requests hides this warning of its own import; in a thread, another thread's restored filters undo that.
        warnings.filterwarnings("ignore", message="SOCKS support in urllib3")
        runner.run(_serve(make_app, bound, shutdown_seconds, limits))


async def _serve(
    make_app: Callable[[str], FastAPI], bound: socket.socket, shutdown_seconds: float, limits: ConnectionLimits
) -> None:
    """Open, serve, drain and close. The lifespan is entered here, so that a failed start raises one plain exception."""
    url = url_of(bound)
    app = make_app(url)
    config = configured(app, shutdown_seconds, limits)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not stopped.is_set():
            stopped.set()
            app.state.stop_at = loop.time() + shutdown_seconds
            # Imports and files are not waited for, so that turns have the time.
            stop_bulk: Callable[[], None] = getattr(app.state, "stop_bulk", _nothing)
            stop_bulk()

    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises the signal again once it has stopped: this handler keeps that from cutting the drain short.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    end_with_parent(loop)
    async with app.router.lifespan_context(app):
        settling = asyncio.create_task(_settle(app), name="settle")
        if not stopped.is_set():
            logger.info("serving", extra={"action": "serving", "url": url})
            await _Server(config, on_exit=stop).serve(sockets=[bound])
        settling.cancel()
    logger.info("stopped", extra={"action": "stopped"})


async def _settle(app: FastAPI) -> None:
    """Settle the interpreter once all is imported and compiled; see `serving.py`, which has stopped its collections."""
    turns: TurnRunner | None = getattr(app.state, "turns", None)
    if turns is not None and turns.graph.loading is not None:
        await asyncio.wait([turns.graph.loading])
    await asyncio.to_thread(import_clients)
    await asyncio.sleep(_FIRST_SECONDS)
    await asyncio.to_thread(compile_late_patterns)
    settle_interpreter()


def _nothing() -> None:
    """Do nothing: there is nothing to stop yet."""


def configured(app: ASGIApp, shutdown_seconds: float, limits: ConnectionLimits | None = None) -> uvicorn.Config:
    """Configure uvicorn for the application, whose lifespan the caller enters."""
    connections = Connections(limits)
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # an address that anybody can write opens nothing, and counts for nothing
        server_header=False,
        timeout_graceful_shutdown=max(1, round(shutdown_seconds)),
    )
    # uvicorn calls both as they are; its types demand a class for the one and whole seconds for the other.
    config.http = cast("type[Connection]", functools.partial(Connection, connections=connections))
    config.timeout_keep_alive = cast("int", connections.limits.idle)
    return config


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, *, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the clock of the drain, then finish the running requests."""
        self._on_exit()
        await super().shutdown(sockets)


def bind(address: Address) -> socket.socket:
    """Return a bound TCP socket, whose callers wait until it is served.

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
        bound.listen(_WAITING)  # before that, another process that starts meanwhile could bind the same address
    except OSError as error:
        bound.close()
        raise ConfigurationError(
            f"Cannot listen on {address.host}:{address.port} ({error.strerror}); set another PORT."
        ) from error
    return bound


def url_of(bound: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def end_with_parent(loop: asyncio.AbstractEventLoop) -> None:
    """End as at SIGTERM when the process that started this one is gone, even where that one was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def end() -> None:
        loop.remove_reader(parent.sentinel)
        os.kill(os.getpid(), signal.SIGTERM)

    with contextlib.suppress(NotImplementedError):
        loop.add_reader(parent.sentinel, end)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of the service's event loop; None: Python's own."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
