"""One connection does no harm to others: heads and bodies without end, answers that nobody takes, too many."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from recollect.api.middleware.connections import ConnectionLimits
from recollect.api.server import Address, bind, configured
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused

QUICK = ConnectionLimits(
    head_bytes=2_000, head_fields=20, head_seconds=0.4, body_seconds=0.4, idle=0.4, unread=0.4, linger=0.4
)
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


class Echo:
    """Answers how long the body was. `/endless` answers without an end, `/slow` once it is let go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"x-fields", b"%d" % len(scope["headers"]))],
        }
        if scope["path"] == "/slow":
            await self.go_on.wait()
        if scope["path"] == "/endless":
            await send(start)
            while (await _unless_left(receive)) is None:
                await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            self.left.set()
            return
        size, message = 0, {"more_body": True}
        while message.get("more_body"):
            message = dict(await receive())
            size += len(message.get("body", b""))
        if message["type"] == "http.disconnect":
            self.left.set()
        await send(start)
        await send({"type": "http.response.body", "body": str(size).encode()})


async def _unless_left(receive: Receive) -> Any:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.001):
            while (message := await receive())["type"] != "http.disconnect":
                pass
            return message


class Client:
    """One connection, as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        async with asyncio.timeout(20):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
            length = headers.get("content-length")
            if length is None:
                size = int((await self.reader.readline()).strip(), 16)
                return int(lines[0].split()[1]), headers, (await self.reader.readexactly(size + 7))[:size]
            return int(lines[0].split()[1]), headers, await self.reader.readexactly(int(length))

    async def error(self, status: int, code: str) -> dict[str, str]:
        """Return the next answer, which must be this error, and the connection's last."""
        answered, headers, body = await self.answer()
        shown = httpx.Response(answered, headers=headers, content=body)
        refused(shown, status, code)
        assert headers["connection"] == "close"
        assert headers["x-content-type-options"] == "nosniff"
        await self.ended()
        return headers

    async def ended(self) -> None:
        """Wait until the server has closed the connection."""
        async with asyncio.timeout(20):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(1_000_000):
                    pass


class Served:
    """A server with bounds, and clients of it."""

    def __init__(self, app: Echo, port: int) -> None:
        self.app, self.port = app, port
        self._clients = list[Client]()

    async def client(self, data: bytes = b"", *, buffer: int | None = None) -> Client:
        plain = socket.socket()
        if buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.port))
        made = Client(*await asyncio.open_connection(sock=plain, limit=1_000))
        self._clients.append(made)
        await made.send(data)
        return made

    def close(self) -> None:
        for client in self._clients:
            client.writer.close()


@asynccontextmanager
async def served(limits: ConnectionLimits = QUICK) -> AsyncGenerator[Served]:
    app = Echo()
    with bind(Address("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(configured(app, 1, limits))
        server.capture_signals = contextlib.nullcontext  # pyright: ignore[reportAttributeAccessIssue]  # the test's own
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        bound.listen()
        running = Served(app, bound.getsockname()[1])
        try:
            yield running
        finally:
            running.close()
            server.should_exit = True
            await serving


@pytest.fixture
async def quick() -> AsyncIterator[Served]:
    async with served() as running:
        yield running


async def fill(client: Client, line: bytes) -> None:
    """Send the line for ever, or until the server has had enough."""
    for _ in range(10_000):
        if client.writer.is_closing() or client.reader.at_eof():
            return
        await client.send(line)
        await asyncio.sleep(0)
        if client.reader._buffer:  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]
            return
    pytest.fail("it takes headers without end")


@pytest.mark.parametrize(
    ("start", "line"),
    [
        (HEAD, b"x-more: " + b"y" * 90 + b"\r\n"),
        (HEAD, b"x: y\r\n"),
        (HEAD + b"x-one: ", b"y" * 100),
        (HEAD, b"x" * 100),
        (b"GET /", b"x" * 100),
        (b"", b"\r\n" * 50),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x-trailer: " + b"y" * 90 + b"\r\n"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 100),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-one: ", b"y" * 100),
    ],
)
async def test_a_head_without_end_is_cut_off(quick: Served, start: bytes, line: bytes) -> None:
    client = await quick.client(start)
    await fill(client, line)
    await client.error(431, "request_header_fields_too_large")


async def test_a_head_may_be_just_as_long_as_is_said(quick: Served) -> None:
    client = await quick.client()
    for extra, status in ((0, 200), (0, 200), (1, 431)):
        filler = QUICK.head_bytes - len(HEAD) - len(b"x-long: \r\n\r\n") + extra
        await client.send(HEAD + b"x-long: " + b"y" * filler + b"\r\n\r\n")
        assert (await client.answer())[0] == status
    await client.ended()


async def test_it_may_come_byte_by_byte_and_a_body_right_behind(quick: Served) -> None:
    client = await quick.client()
    for byte in POST + b"Content-Length: 3000\r\n\r\n":
        await client.send(bytes([byte]))
    await client.send(b"x" * 3_000 + HEAD + b"\r\n")
    assert (await client.answer())[2] == b"3000"
    assert (await client.answer())[2] == b"0"


async def test_trailers_are_no_headers(quick: Served) -> None:
    client = await quick.client(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-memory-user: eve\r\n\r\n")
    status, headers, body = await client.answer()
    assert (status, headers["x-fields"], body) == (200, "2", b"1")


@pytest.mark.parametrize("sent", [b"", b"GET", HEAD, HEAD + b"x-open: "])
async def test_a_head_that_does_not_come_is_not_waited_for(quick: Served, sent: bytes) -> None:
    client = await quick.client(sent)
    await client.error(408, "request_timeout")


async def test_a_second_head_has_its_time_too_and_an_idle_connection_ends(quick: Served) -> None:
    client = await quick.client(HEAD + b"\r\n")
    assert (await client.answer())[0] == 200
    await client.send(HEAD)
    await client.error(408, "request_timeout")
    idle = await quick.client(HEAD + b"\r\n")
    assert (await idle.answer())[0] == 200
    assert await idle.reader.read() == b""


@pytest.mark.parametrize("head", [b"Content-Length: 1000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
async def test_a_body_that_does_not_come_is_not_waited_for(quick: Served, head: bytes) -> None:
    client = await quick.client(POST + head + b"1\r\nx\r\n")
    await client.error(408, "request_timeout")
    async with asyncio.timeout(20):
        await quick.app.left.wait()


async def test_a_body_that_comes_fast_enough_is_waited_for(quick: Served) -> None:
    client = await quick.client(POST + b"Content-Length: 10000\r\n\r\n")
    for _ in range(10):
        await client.send(b"x" * 1_000)
        await asyncio.sleep(0.1)  # 10,000 bytes a second, for longer than `body_seconds`
    assert (await client.answer())[2] == b"10000"


async def test_a_rest_that_nobody_wants_ends_too(quick: Served) -> None:
    client = await quick.client(b"GET /endless HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
    assert (await client.reader.readline()).startswith(b"HTTP/1.1 200")
    await client.ended()


async def test_an_answer_that_nobody_takes_ends(quick: Served) -> None:
    await quick.client(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n", buffer=4_096)
    async with asyncio.timeout(20):
        await quick.app.left.wait()


async def test_an_answer_takes_as_long_as_it_takes_and_a_bad_second_request_waits_for_it(quick: Served) -> None:
    client = await quick.client(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await client.send(HEAD)
    await asyncio.sleep(1)  # longer than every bound
    assert not client.reader.at_eof()
    quick.app.go_on.set()
    assert (await client.answer())[0] == 200
    await client.ended()


@pytest.mark.parametrize(
    "sent", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", HEAD + b"a b\r\n\r\n"]
)
async def test_what_is_no_http_is_said_in_the_contracts_form(quick: Served, sent: bytes) -> None:
    client = await quick.client(sent)
    status, _, body = await client.answer()
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (400, "invalid_request")


async def test_only_probes_are_answered_beyond_the_most_and_room_is_used_again() -> None:
    async with served(ConnectionLimits(most=3, spare=2)) as running:
        held = [await running.client(sent) for sent in (b"", GET, HEAD)]
        first = await running.client(HEAD + b"\r\n")
        headers = await first.error(503, "too_many_connections")
        assert int(headers["retry-after"]) >= 1
        spare = await running.client(b"GET /health/ready?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await spare.answer())[0] == 200
        crowd = [await running.client(GET) for _ in range(5)]
        await crowd[0].error(503, "too_many_connections")
        probe = await running.client(GET + b"\r\n")
        assert (await probe.answer())[0] == 200
        await held[2].send(b"\r\n")
        assert (await held[2].answer())[0] == 200, "whoever came before goes on"
        for client in (*held, *crowd):
            client.writer.close()
        async with asyncio.timeout(20):
            while True:
                again = await running.client(HEAD + b"\r\n")
                if (await again.answer())[0] == 200:
                    break


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with service(tmp_path_factory.mktemp("narrow"), MAX_CONNECTIONS="4") as running:
        yield running


def test_a_service_bounds_heads_connections_and_says_so_in_openais_form_too(narrow: Service) -> None:
    narrow.http.close()
    big = {"x-long": "y" * 64_000}
    with httpx.Client(base_url=narrow.url) as client:
        refused(client.get("/api/threads", headers=big), 431, "request_header_fields_too_large")
        shown = client.get("/v1/models", headers=big)
        assert (shown.status_code, shown.json()["error"]["type"]) == (431, "invalid_request_error")
        assert client.get("/health", headers={"x-long": "y" * 60_000}).status_code == 200
    held = [socket.create_connection(("127.0.0.1", narrow.port)) for _ in range(4)]
    with httpx.Client(base_url=narrow.url) as client:
        answer = client.get("/api/threads?user_id=ada")
        refused(answer, 503, "too_many_connections")
        assert int(answer.headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200
        assert client.get("/health/ready").status_code == 200
    for one in held:
        one.close()
    assert "Traceback" not in narrow.log


def test_a_body_that_ended_early_is_not_taken_for_a_whole_one(offline: Service, user: str) -> None:
    body = json.dumps({"user_id": user, "thread_id": "t1", "message": "Hello."}).encode()
    lines = ["POST /api/agent HTTP/1.1", "Host: localhost", f"Content-Length: {len(body) + 9}"]
    with socket.create_connection(("127.0.0.1", offline.port)) as cut:
        cut.sendall("".join(f"{line}\r\n" for line in [*lines, "Content-Type: application/json", ""]).encode() + body)
    offline.turn("Hi.", user=user, thread="t2")
    assert offline.get("/api/threads/t1/messages", user_id=user)["items"] == []
