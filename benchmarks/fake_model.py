"""A fake OpenAI-compatible server that answers on time and costs next to no CPU: `python -m benchmarks.fake_model`.

A chat call takes CHAT_SECONDS, an embedding call EMBEDDING_SECONDS. An extraction (a chat call with `tool_choice`) is
answered with one decision that quotes the user's message, where that tells a fact, so that updates have something to
do. `GET /calls` lists the calls since the last listing, of embeddings with their number of texts.
"""

import asyncio
import random
import re
import sys
from array import array
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, cast
from zlib import crc32

import httptools
import orjson
import uvloop
from typing_extensions import override

CHAT_SECONDS = 0.3
EMBEDDING_SECONDS = 0.05
DIMENSIONS = 1_536
CHARACTERS_PER_TOKEN = 4
REPLY = (
    "Thank you for telling me. I will keep that in mind for next time. If you would like, I can suggest a plan for the "
    "weekend that fits it, or we can go on with what we talked about before; just say which of the two you prefer."
)
MODELS = ("fake-chat", "fake-embed")

_SAID = re.compile(r'User\'s message: (".*")\s*$', re.DOTALL)
_TELLING = re.compile(r"My (favourite ([a-z]+)) is ([\w ]+)\.")
_DOING = re.compile(r"^I ([a-z]+ [\w ]+ House \d+)\.")


class FakeModel(asyncio.Protocol):
    """One connection. `calls` is shared by all: `{"kind", "arrived", "answered", "tokens"}`, times in seconds."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._calls = calls
        self._parser = httptools.HttpRequestParser(self)
        self._path = b""
        self._body = bytearray()
        self._transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to which answers are written."""
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        """Hand the bytes to the parser, which calls the methods below."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Begin a request."""
        self._path, self._body = url, bytearray()

    def on_body(self, body: bytes) -> None:
        """Add a piece of its body."""
        self._body += body

    def on_message_complete(self) -> None:
        """Schedule the answer of the complete request for its time."""
        if self._path == b"/calls":
            self._write(orjson.dumps(self._calls))
            self._calls.clear()
        elif self._path.endswith(b"/models"):
            self._write(orjson.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]}))
        else:
            self._answer(orjson.loads(self._body))

    def _answer(self, body: Mapping[str, Any]) -> None:
        kind, seconds, made = _kind(body)
        loop = asyncio.get_running_loop()
        tokens = len(_prompt(body)) // CHARACTERS_PER_TOKEN
        now = loop.time()
        texts = len(body["input"]) if isinstance(body.get("input"), list) else 1
        self._calls.append({"kind": kind, "arrived": now, "answered": now + seconds, "tokens": tokens, "texts": texts})
        loop.call_later(seconds, self._write, made(body, tokens))

    def _write(self, content: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content)
        self._transport.write(head + content)


def _kind(body: Mapping[str, Any]) -> tuple[str, float, Callable[[Mapping[str, Any], int], bytes]]:
    if "input" in body:
        return "embedding", EMBEDDING_SECONDS, _vectors
    if body.get("tool_choice"):
        return "extraction", CHAT_SECONDS, _decisions
    return "chat", CHAT_SECONDS, _reply


def _prompt(body: Mapping[str, Any]) -> bytes:
    """Return the text that the provider would count: the messages, and the offered tools."""
    if "input" in body:
        return orjson.dumps(body["input"])
    texts = b"\n".join(str(message.get("content") or "").encode() for message in body["messages"])
    return texts + (orjson.dumps(body["tools"]) if body.get("tools") else b"")


def _reply(body: Mapping[str, Any], tokens: int) -> bytes:
    return _completion(body, tokens, {"role": "assistant", "content": REPLY}, "stop")


def _decisions(body: Mapping[str, Any], tokens: int) -> bytes:
    function = {
        "name": body["tool_choice"]["function"]["name"],
        "arguments": orjson.dumps({"decisions": _told(body["messages"][-1]["content"])}).decode(),
    }
    call = {"id": "call_1", "type": "function", "function": function}
    return _completion(body, tokens, {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def _told(prompt: str) -> list[dict[str, Any]]:
    """Return the decision that a message of `benchmarks.talk` calls for; none for any other message."""
    said = _SAID.search(prompt)
    text: str = orjson.loads(said[1]) if said else ""
    decision = {"decision": "add", "fact": None, "scope": "user", "importance": 0.5}
    if told := _TELLING.search(text):
        key, value = told[1].replace(" ", "_"), told[3]
        statement = f"The user's {told[1]} is {value}."
        return [{**decision, "key": key, "value": value, "statement": statement, "evidence": told[0]}]
    if done := _DOING.search(text):
        return [{**decision, "key": None, "statement": f"The user {done[1]}.", "evidence": done[0]}]
    return []


def _completion(body: Mapping[str, Any], tokens: int, message: Mapping[str, Any], reason: str) -> bytes:
    choice = {"index": 0, "finish_reason": reason, "message": message}
    usage = {"prompt_tokens": tokens, "completion_tokens": 50, "total_tokens": tokens + 50}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
    return orjson.dumps({**whole, "usage": usage})


def _vectors(body: Mapping[str, Any], tokens: int) -> bytes:
    """Return prepared vectors, chosen by the text's checksum: all positive, so that any two are similar."""
    given = body["input"]
    texts: list[str] = [given] if isinstance(given, str) else given
    pool = _PACKED if body.get("encoding_format") == "base64" else _POOL
    items = (
        b'{"object":"embedding","index":%d,"embedding":%s}' % (at, pool[crc32(text.encode()) % len(pool)])
        for at, text in enumerate(texts)
    )
    return b'{"object":"list","model":%s,"data":[%s],"usage":{"prompt_tokens":%d,"total_tokens":%d}}' % (
        orjson.dumps(body["model"]),
        b",".join(items),
        tokens,
        tokens,
    )


def _pool() -> list[bytes]:
    source = random.Random(7)
    return [orjson.dumps([round(source.random() / 20, 9) for _ in range(DIMENSIONS)]) for _ in range(64)]


_POOL = _pool()
_PACKED = [b'"%s"' % b64encode(array("f", orjson.loads(vector)).tobytes()) for vector in _POOL]


async def serve() -> None:
    """Serve on a free loopback port, which is printed, until killed."""
    calls: list[dict[str, Any]] = []
    server = await asyncio.get_running_loop().create_server(lambda: FakeModel(calls), "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
