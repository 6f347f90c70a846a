"""A keep-alive HTTP connection that costs little CPU, so that the load takes little of the service's core."""

import asyncio
from typing import Any, Self, cast

import httptools
import orjson
from typing_extensions import override


class Connection(asyncio.Protocol):
    """A connection to a loopback port with one request at a time; opened by `Connection.to`."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, Any]] | None = None

    @classmethod
    async def to(cls, port: int) -> Self:
        """Connect.

        Raises:
            OSError: nobody listens there.
        """
        _, protocol = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return protocol

    async def get(self, path: str) -> tuple[int, Any]:
        """Send a GET; return its status and JSON."""
        return await self._ask(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Send a POST; return its status and JSON.

        Raises:
            ConnectionError: the other side closed the connection.
        """
        content = orjson.dumps(body)
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        return await self._ask(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    async def _ask(self, request: bytes) -> tuple[int, Any]:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to which requests are written."""
        self._transport = cast("asyncio.Transport", transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits for an answer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError())

    @override
    def data_received(self, data: bytes) -> None:
        """Hand the bytes to the parser, which calls the methods below."""
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        """Begin an answer."""
        self._body = bytearray()

    def on_body(self, body: bytes) -> None:
        """Add a piece of its body."""
        self._body += body

    def on_message_complete(self) -> None:
        """Complete the answer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), orjson.loads(self._body)))
