"""Runs a service of the command's own, in a thread of its process, for a terminal where none runs yet."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI
from typing_extensions import override

from recollect.api.server import Address, bind, configured, loop_factory, url_of

INTERRUPTED = 130
"""The exit code of an interrupted command in shells."""


class Own(NamedTuple):
    """The address of the service, and the token that makes this command its administrator."""

    url: str
    token: str


@contextmanager
def embedded(make_app: Callable[[str], FastAPI], *, shutdown_seconds: float) -> Generator[Own]:
    """Serve on a free loopback port until exit.

    It is a whole service: other commands find it through DATA_DIR's lock file, and at the end it drains.

    Raises:
        ConfigurationError: a setting stops the start.
    """
    with bind(Address("127.0.0.1", 0)) as bound:
        bound.listen()  # who calls before the server takes calls waits a moment
        running = _Embedded(make_app, bound, shutdown_seconds)
        running.start()
        try:
            yield Own(url_of(bound), running.ready.result())
        finally:
            running.stop()


class _Embedded(threading.Thread):
    def __init__(self, make_app: Callable[[str], FastAPI], bound: socket.socket, shutdown_seconds: float) -> None:
        super().__init__(name="recollect-service", daemon=True)
        self.ready: Future[str] = Future()
        """The service's token, set once it serves."""
        self._make_app = make_app
        self._bound = bound
        self._shutdown_seconds = shutdown_seconds
        self._server: uvicorn.Server | None = None
        self._is_stopping = False

    @override
    def run(self) -> None:
        """Run the thread: open, serve, drain and close."""
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self.ready.done():
                raise
            # The starter reports what stops a start, so every error is passed to it.
            self.ready.set_exception(error)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has. An interrupt meanwhile leaves the same state as a killed service."""
        self._is_stopping = True
        if self._server is not None:
            self._server.should_exit = True
        try:
            self.join()
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)  # the stores' own threads would be waited for

    async def _serve(self) -> None:
        app = self._make_app(url_of(self._bound))
        async with app.router.lifespan_context(app):
            self._server = server = uvicorn.Server(configured(app, self._shutdown_seconds))
            self.ready.set_result(app.state.owner_token)
            if not self._is_stopping:
                await server.serve(sockets=[self._bound])
