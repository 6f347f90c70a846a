"""Answers of providers that are too long: in characters, on the wire, or once they are unpacked."""

import gzip
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatReply, ChatRequest
from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.catalog import open_chat_model, open_embedder
from recollect.memory.providers.wire import MOST_BYTES, AnswerTooLong
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI

HELLO = ChatRequest([{"role": "user", "content": "Hello."}])
WHOLE = (f"{'w' * 499} " * 2_000)[:1_000_000]
NATIVE = {"anthropic": "claude-some-1", "gemini": "gemini-some-1"}
STARTS = {
    "openai": b'{"choices": [{"message": {"role": "assistant", "content": "',
    "anthropic": b'{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "',
    "gemini": b'{"candidates": [{"content": {"role": "model", "parts": [{"text": "',
}


class Endless:
    """A server that answers every POST with `piece`, as often as anybody reads. `sent` counts its bytes."""

    def __init__(self) -> None:
        self.start, self.piece, self.kind, self.packed = b"", b"x" * 65_536, "application/json", ""
        self.sent = 0
        endless = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", endless.kind)
                if endless.packed:
                    self.send_header("Content-Encoding", endless.packed)
                self.end_headers()
                try:
                    self.wfile.write(endless.start)
                    while endless.sent < 200_000_000:
                        endless.sent += self.wfile.write(endless.piece)
                except OSError:
                    pass

            def do_GET(self) -> None:
                self.do_POST()

            @override
            def log_message(self, format: str, *args: Any) -> None:
                pass

        socketserver.TCPServer.request_queue_size = 5
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> "Endless":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def config(self, provider: str) -> MemoryConfig:
        if provider == "openai":
            return MemoryConfig(base_url=f"{self.url}/v1", chat_model="some", embedding_model="some")
        return MemoryConfig(provider=provider, api_key="key", base_url=self.url, chat_model=NATIVE[provider])


@pytest.fixture
def endless() -> Iterator[Endless]:
    with Endless() as made:
        yield made


@pytest.fixture
async def embedder(config: MemoryConfig) -> Any:
    async with open_embedder(config) as opened:
        yield opened


async def streamed(config: MemoryConfig) -> tuple[str, ChatReply | None]:
    texts, reply = list[str](), None
    async with open_chat_model(config) as chat:
        async for item in chat.stream(HELLO):
            if isinstance(item, str):
                texts.append(item)
            else:
                reply = item
    return "".join(texts), reply


async def test_a_reply_of_just_the_most_characters_comes_whole(config: MemoryConfig, fake: FakeOpenAI) -> None:
    fake.script(WHOLE, WHOLE)
    async with open_chat_model(config.replace(chat_timeout_seconds=60.0)) as chat:
        assert (await chat.complete(HELLO)).text == WHOLE
    text, reply = await streamed(config.replace(chat_timeout_seconds=60.0))
    assert reply is not None
    assert text == reply.text == WHOLE


async def test_a_longer_reply_is_an_error(config: MemoryConfig, fake: FakeOpenAI) -> None:
    small = config.replace(max_reply_characters=1_000)
    fake.script("x" * 1_000, "x" * 1_001, "x" * 500 + " y" * 251, "x" * 1_001 + " " + "y" * 5_000)
    async with open_chat_model(small) as chat:
        assert len((await chat.complete(HELLO)).text) == 1_000
        for _ in range(2):
            with pytest.raises(AnswerTooLong) as caught:
                await chat.complete(HELLO)
            assert not caught.value.outage
            assert caught.value.code == "model_unavailable"
    with pytest.raises(AnswerTooLong):
        await streamed(small)


@pytest.mark.parametrize("packed", ["", "gzip"])
@pytest.mark.parametrize("provider", ["openai", *NATIVE])
async def test_an_answer_without_an_end_is_cut_off(provider: str, endless: Endless, packed: str) -> None:
    if provider != "openai":
        pytest.importorskip({"anthropic": "langchain_anthropic", "gemini": "langchain_google_genai"}[provider])
    endless.start = STARTS[provider]
    if packed:
        endless.packed, endless.start = packed, gzip.compress(endless.start + b"x" * 100_000_000)
    async with open_chat_model(endless.config(provider)) as chat:
        with pytest.raises(ModelUnavailable) as caught:
            await chat.complete(HELLO)
    assert not caught.value.outage
    assert endless.sent < 6 * MOST_BYTES, "buffers of both ends, and one more try"


@pytest.mark.parametrize(
    "piece",
    [
        b": " + b"x" * 60_000 + b"\n\n",
        b"x" * 60_000,
        b'data: {"choices": [{"index": 0, "delta": {}}]' + b" " * 5_000 + b"}\n\n",
    ],
)
async def test_a_stream_that_says_nothing_is_cut_off(endless: Endless, piece: bytes) -> None:
    endless.kind, endless.piece = "text/event-stream", piece
    with pytest.raises(AnswerTooLong):
        await streamed(endless.config("openai"))
    assert endless.sent < 4 * MOST_BYTES


async def test_a_stream_that_goes_on_and_on_is_cut_off(endless: Endless) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "some"}
    said = {**chunk, "choices": [{"index": 0, "delta": {"content": "word " * 1_000}}]}
    endless.kind, endless.piece = "text/event-stream", b"data: " + json.dumps(said).encode() + b"\n\n"
    with pytest.raises(AnswerTooLong):
        await streamed(endless.config("openai"))
    assert endless.sent < 4 * MOST_BYTES


async def test_an_embedding_without_an_end_is_cut_off(endless: Endless) -> None:
    endless.start, endless.piece = b'{"data": [{"index": 0, "embedding": [', b"0.1, " * 10_000
    async with open_embedder(endless.config("openai")) as opened:
        with pytest.raises(AnswerTooLong):
            await opened.embed_query("tea")
    assert endless.sent < 6 * MOST_BYTES


async def test_long_vectors_come_in_as_many_answers_as_they_need(embedder: Embedder, fake: FakeOpenAI) -> None:
    fake.dimensions, fake.floats_only = 8_192, True
    fake.on_embeddings = lambda body: {
        "data": [{"index": at, "embedding": [1 / 3] * 8_192} for at in range(len(body["input"]))]
    }
    vectors = await embedder.embed_documents([f"word{number}" for number in range(150)])
    assert {len(vector) for vector in vectors} == {8_192}
    assert len(vectors) == 150
    fake.requests.clear()
    await embedder.embed_documents([f"word{number}" for number in range(150)])
    assert len(fake.embeddings) == 4, "known vectors fit at the first try"


async def test_a_packed_answer_is_read(config: MemoryConfig, endless: Endless) -> None:
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Packed."}, "finish_reason": "stop"}]}
    endless.start = gzip.compress(json.dumps({"id": "c", "object": "chat.completion", "model": "m", **whole}).encode())
    endless.packed, endless.sent = "gzip", 200_000_000
    async with open_chat_model(endless.config("openai")) as chat:
        assert (await chat.complete(HELLO)).text == "Packed."
    endless.packed = "br"
    async with open_chat_model(endless.config("openai")) as chat:
        with pytest.raises(ModelUnavailable):
            await chat.complete(HELLO)
