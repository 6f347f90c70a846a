"""Runs `recollect serve`: in this process, or in several behind one socket."""

import functools
import gc
import importlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from recollect.api.cli.deferred_models import deferred_models
from recollect.api.cli.ending import end_command
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.frozen import frozen

if TYPE_CHECKING:
    from fastapi import FastAPI


@frozen
class Application:
    """The application and its bounds. It can be pickled: each of several processes makes its own.

    `make` makes it for the URL that it is served at; `configure_log` sets the process's logging up.
    """

    make: "Callable[[str], FastAPI]"
    configure_log: Callable[[], None]
    address: tuple[str, int]
    shutdown_seconds: float
    max_connections: int


def run_service(application: Application, *, workers: int) -> None:
    """Serve until SIGINT or SIGTERM, with `workers` processes.

    Raises:
        ConfigurationError: the address cannot be bound, or a setting stops the start.
    """
    _prepare(application)
    from recollect.api.server import Address, bind

    with bind(Address(*application.address)) as bound:
        if workers == 1:
            _serve_on(application, bound)
            return
        from recollect.api.processes import Processes

        serving = functools.partial(serve_process, application)
        Processes(serving, bound, count=workers, shutdown_seconds=application.shutdown_seconds).run()


def serve_process(application: Application, bound: socket.socket) -> None:
    """Serve on a bound socket, as one of several processes; what stops it is one sentence and an exit code."""
    try:
        _prepare(application)
        _serve_on(application, bound)
    except RecollectError as error:
        end_command(error)


def _prepare(application: Application) -> None:
    application.configure_log()
    # The imports' objects live as long as the process: collections would only look through them, and take a sixth of
    # the start. The server collects again when all is imported.
    gc.disable()
    with deferred_models():
        importlib.import_module("fastapi")


def _serve_on(application: Application, bound: socket.socket) -> None:
    from recollect.api.middleware.connections import ConnectionLimits
    from recollect.api.server import run

    run(
        bound,
        application.make,
        shutdown_seconds=application.shutdown_seconds,
        limits=ConnectionLimits(most=application.max_connections),
    )
