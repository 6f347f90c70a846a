"""A client's connection: uvicorn's, with bounds on heads, bodies and unread answers."""

import asyncio
import logging
from typing import Any

from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from recollect.api.errors import ErrorResponse, plain_error
from recollect.api.headers import security_headers
from recollect.api.middleware.connections import Bounded, Connections

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5
"""The Retry-After of a refused connection: idle connections have ended by then."""
FRAMING_PER_BYTE = 8
"""The most bytes of chunk sizes and ends for each byte of a body: a chunk of one byte has five."""


class Connection(HttpToolsProtocol, Bounded):
    """Refuses requests over the bounds with 431, 408 or 503 (see `ConnectionLimits`), and other protocols with 400.

    Bytes are fed to the parser in pieces that end where a head must end at the latest, because the parser buffers
    without a bound.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.url = b""
        self._connections = connections
        self._limits = connections.limits
        self._in_body = False
        self._parts = 0
        """The heads and bodies that have begun: a piece that lies within one is counted whole."""
        self._head_since: float | None = None
        self._head_bytes = self._fields = 0
        self._body_since = 0.0
        self._body_bytes = self._window_bytes = self._framing = 0
        self._unsent, self._unsent_since = 0, 0.0
        self._refused_at: float | None = None
        self._dropped = 0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn's
        """Register the connection; the time limit of its first head starts."""
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._connections.add(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the connection, which makes room for another."""
        self._connections.remove(self)
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        """Feed the parser at most as many bytes as a head may have left. Drop what a refused client still sends."""
        if self._refused_at is not None:
            self._drop(len(data))
            return
        if not self._in_body and self._head_since is None:
            self._head_since = self.loop.time()
        while data and self._refused_at is None and not self.transport.is_closing():
            room = self._limits.head_bytes - (0 if self._in_body else self._head_bytes)
            self._feed(data[:room])
            data = data[room:]

    def _drop(self, size: int) -> None:
        """Count dropped bytes; stop reading after `linger_bytes`, until the connection ends."""
        self._dropped += size
        if self._dropped > self._limits.linger_bytes:
            self.flow.pause_reading()

    def _feed(self, piece: bytes) -> None:
        part, body = self._parts, self._body_bytes
        super().data_received(piece)
        if self._parts != part:
            return
        if not self._in_body:
            self._head_bytes += len(piece)
            if self._head_bytes >= self._limits.head_bytes:
                self._refuse_head()
            return
        self._framing += len(piece) - (self._body_bytes - body)
        if self._framing > self._limits.head_bytes + FRAMING_PER_BYTE * self._body_bytes:
            self._refuse_head()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header. Count trailers and drop them: they would change headers that the lock has checked."""
        self._fields += 1
        if self._fields > self._limits.head_fields:
            self._refuse_head()
        elif not self._in_body:
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        """Begin the request, unless there are too many connections."""
        if self._refused_at is None and not self._connections.serves(self) and not _is_probe(self.url):
            self._refuse(_too_many())
        self._in_body, self._head_since = True, None
        self._parts += 1
        self._body_since, self._body_bytes, self._window_bytes, self._framing = self.loop.time(), 0, 0, 0
        if self._refused_at is None:
            super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        """Count the body's bytes."""
        self._body_bytes += len(body)
        self._window_bytes += len(body)
        if self._refused_at is None:
            super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        """Expect another head."""
        self._in_body = False
        self._parts += 1
        self._head_bytes = self._fields = 0
        if self._refused_at is None:
            super().on_message_complete()

    @override
    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the contract's form."""
        self._refuse(plain_error(400, "invalid_request", "This is no HTTP request that can be read."))

    @override
    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered as if it did not ask for another protocol."""

    @override
    def check(self, now: float) -> None:
        if self._refused_at is not None:
            if not self._is_answering() and now - self._refused_at >= self._limits.linger:
                self.transport.abort()
        elif self._is_unread(now):
            logger.info("answer not taken", extra={"action": "answer_not_taken"})
            self.transport.abort()
        elif self._in_body:
            self._check_rate(now)
        elif self._head_since is not None and now - self._head_since >= self._limits.head_seconds:
            seconds = self._limits.head_seconds
            self._refuse(plain_error(408, "request_timeout", f"The request's head did not come within {seconds:g} s."))

    @override
    def turn_away(self) -> None:
        self._refuse(_too_many())
        self.transport.close()

    def _is_unread(self, now: float) -> bool:
        """Tell whether the client has read nothing of its waiting answer for too long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent or self._unsent == 0:
            self._unsent_since = now
        self._unsent = unsent
        return now - self._unsent_since >= self._limits.unread

    def _check_rate(self, now: float) -> None:
        """End a body that comes too slowly. Time in which this side does not read is not counted."""
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._body_since, self._window_bytes = now, 0
        if now - self._body_since < self._limits.body_seconds:
            return
        if self._window_bytes < self._limits.body_rate * self._limits.body_seconds:
            rate, seconds = self._limits.body_rate, self._limits.body_seconds
            sentence = f"The request's body came with less than {rate:,} bytes a second over {seconds:g} s."
            self._refuse(plain_error(408, "request_timeout", sentence))
        self._body_since, self._window_bytes = now, 0

    def _refuse_head(self) -> None:
        most, fields = self._limits.head_bytes, self._limits.head_fields
        sentence = f"The request line and headers are over {most:,} bytes or {fields:,} lines; send fewer."
        self._refuse(plain_error(431, "request_header_fields_too_large", sentence))

    def _refuse(self, answer: ErrorResponse) -> None:
        """Answer, and end the connection; while an earlier request is being answered, end it after that answer."""
        if self._refused_at is not None:
            return
        self._refused_at = self.loop.time()
        self._unset_keepalive_if_required()
        logger.info("request refused", extra={"action": "request_refused", "status": answer.status_code})
        if not self._is_answering():
            # A request that has its answer already gets no second one for its body.
            return self.transport.close() if self._in_body else self._answer(answer)
        cycle = self.cycle
        if not self._in_body:
            cycle.keep_alive = False
            return None
        cycle.disconnected = True
        cycle.message_event.set()
        return self.transport.close() if cycle.response_started or self.pipeline else self._answer(answer)

    def _is_answering(self) -> bool:
        # Before the first request there is no cycle, which uvicorn's types do not say.
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.disconnected

    def _answer(self, answer: ErrorResponse) -> None:
        """Write the answer, and let the client finish sending: a reset would discard the answer on its side."""
        path = self.url.partition(b"?")[0].decode("ascii", "replace")
        answer.take_form(path)
        more = {name.encode(): value.encode() for name, value in security_headers(path).items()}
        headers = [*self.server_state.default_headers, *answer.raw_headers, *more.items(), (b"connection", b"close")]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(STATUS_LINE[answer.status_code] + lines + b"\r\n" + bytes(answer.body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()


def _is_probe(url: bytes) -> bool:
    path = url.partition(b"?")[0]
    return path == b"/health" or path.startswith(b"/health/")


def _too_many() -> ErrorResponse:
    answer = plain_error(503, "too_many_connections", "There are too many connections (MAX_CONNECTIONS); try later.")
    answer.headers["Retry-After"] = str(RETRY_SECONDS)
    return answer
