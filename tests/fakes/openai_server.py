"""A scripted OpenAI-compatible server over real HTTP, for every test that needs a model.

    with FakeOpenAI() as fake:              # listens on a free loopback port, in a thread of its own
        config = MemoryConfig(base_url=fake.url, chat_model="fake-chat", embedding_model="fake-embed")

It answers `/v1/chat/completions` (plain and streamed), `/v1/embeddings` and `/v1/models`. What it does by default:

* Chat: "All right." with usage 10 + 2 tokens. A request that offers a function other than the agent's own
  (`search_memory`, `remember_fact`) and a chat client's (`CLIENT_TOOLS`) is an extraction: it is answered by calling
  that function with an empty array under the schema's single array property. In JSON mode the text is
  `{"decisions": []}`.
* Embeddings: words hashed into `dimensions` numbers, so that texts with words in common are alike. Lists of floats;
  base64 where the request asks for it. `floats_only = True` ignores that wish, as some servers do.
* Models: `models` ("fake-chat", "fake-embed"); `None` makes the route a 404.

Scripting (attributes may be changed while it runs):

* `fake.script(answer, …)`: the next agent answers, one each. An answer is a text, a status (int), a message (a dict
  with `content`, `tool_calls`), a full body (a dict with `choices`; `status` sets its status), or bytes sent as they
  are. `call(name, **args)` makes a message that calls a tool.
* `fake.decide([decision, …], …)`: what the next extractions answer, one list each.
* `fake.on_chat = f`, `fake.on_embeddings = f`: `f(body)` returns an answer, or None for the default. Embedding answers
  are a status, a full body (dict) or bytes. `fake.on_other`: the same for paths it does not know, else 404.
* `fake.chat_seconds`, `fake.embedding_seconds`, `fake.models_seconds`: how long answers take; `fake.piece_seconds`: the
  pause between the pieces of a stream.
* `fake.fail(status, times=1, path="")`: the next `times` requests whose path contains `path` get this status (-1: for
  ever). `fake.drop(times)`: the connection closes without an answer. `fake.garbage(times)`: 200 with HTML.
  `fake.recover()` ends all of these.
* `fake.cut()`: all open connections break off now, in the middle of what they send.
* `fake.hang()`: answers wait until `fake.release()`.

`fake.requests` records them (`path`, `headers`, `body`, `abandoned`: the client left before the end); `fake.chats`,
`fake.summaries`, `fake.extractions` and `fake.embeddings` are the bodies by kind. `await fake.until(lambda: …)` waits
for a condition.
"""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.fakes.openai_answers import (
    Answer,
    Body,
    array_property,
    call,
    completion,
    embedding,
    extraction_tool,
    pieces,
    response,
)

__all__ = ["Answer", "FakeOpenAI", "Recorded", "call"]

_DROP = -1


@dataclass
class Recorded:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Body
    abandoned: bool = False


class FakeOpenAI:
    """Serves on `port`; 0 takes a free one."""

    def __init__(self, *, port: int = 0, dimensions: int = 64) -> None:
        self.port = port
        self.dimensions = dimensions
        self.models: Sequence[str] | None = ("fake-chat", "fake-embed")
        self.floats_only = False
        self.chat_seconds = self.embedding_seconds = self.models_seconds = self.piece_seconds = 0.0
        self.on_chat: Callable[[Body], Answer | None] | None = None
        self.on_embeddings: Callable[[Body], Answer | None] | None = None
        self.on_other: Callable[[Body], Answer | None] | None = None
        self.requests: list[Recorded] = []
        self._answers: deque[Answer] = deque()
        self._decisions: deque[Sequence[Mapping[str, Any]]] = deque()
        self._failures: list[tuple[Answer, str, int]] = []
        self._loop = asyncio.new_event_loop()
        self._free = asyncio.Event()
        self._free.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-openai", daemon=True)
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def chats(self) -> list[Body]:
        asked = [item.body for item in self.requests if _is_chat(item) and extraction_tool(item.body) is None]
        return [body for body in asked if not is_summary(body)]

    @property
    def summaries(self) -> list[Body]:
        return [item.body for item in self.requests if _is_chat(item) and is_summary(item.body)]

    @property
    def extractions(self) -> list[Body]:
        return [item.body for item in self.requests if _is_chat(item) and extraction_tool(item.body) is not None]

    @property
    def embeddings(self) -> list[Body]:
        return [item.body for item in self.requests if _route(item.path).endswith("/embeddings")]

    def script(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    def decide(self, *decisions: Sequence[Mapping[str, Any]]) -> None:
        self._decisions.extend(decisions)

    def fail(self, status: int, times: int = 1, path: str = "") -> None:
        self._failures.append((status, path, times))

    def drop(self, times: int = 1, path: str = "") -> None:
        self._failures.append((_DROP, path, times))

    def garbage(self, times: int = 1, path: str = "") -> None:
        self._failures.append((b"<html>It works!</html>", path, times))

    def recover(self) -> None:
        self._failures = []
        self.release()

    def hang(self) -> None:
        self._loop.call_soon_threadsafe(self._free.clear)

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._free.set)

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(lambda: [writer.transport.abort() for writer in self._writers])

    async def until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - the condition is another thread's, and any
                await asyncio.sleep(0.005)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while (recorded := await _read(reader)) is not None:
                self.requests.append(recorded)
                if not await self._answer(recorded, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client is gone; `abandoned` says so where it matters.
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, recorded: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        answer, seconds = self._failure(recorded.path), self._seconds(recorded.path)
        if not await self._wait(seconds, reader):
            recorded.abandoned = True
            return False
        if answer is None:
            answer = self._scripted(recorded)
        if answer == _DROP:
            return False
        if isinstance(answer, str) or (isinstance(answer, Mapping) and _is_chat(recorded) and "choices" not in answer):
            message = {"content": answer} if isinstance(answer, str) else answer
            if recorded.body.get("stream"):
                return await self._stream(recorded, message, reader, writer)
            answer = completion(recorded.body, message)
        writer.write(response(answer))
        await writer.drain()
        return True

    def _seconds(self, path: str) -> float:
        by_path = {"models": self.models_seconds, "embeddings": self.embedding_seconds}
        return by_path.get(path.rsplit("/", 1)[-1], self.chat_seconds)

    def _failure(self, path: str) -> Answer | None:
        for number, (answer, part, times) in enumerate(self._failures):
            if part in path and times:
                self._failures[number] = (answer, part, times - 1)
                return answer
        return None

    async def _wait(self, seconds: float, reader: asyncio.StreamReader) -> bool:
        """Wait, also for `release()`; tell whether the client is still connected then."""
        if not seconds and self._free.is_set():
            return not reader.at_eof()
        gone = asyncio.ensure_future(reader.read(1))
        ready = asyncio.ensure_future(asyncio.gather(asyncio.sleep(seconds), self._free.wait()))
        await asyncio.wait({gone, ready}, return_when=asyncio.FIRST_COMPLETED)
        left = gone.done()
        for waiter in (gone, ready):
            waiter.cancel()
        await asyncio.gather(gone, ready, return_exceptions=True)
        return not left

    def _scripted(self, recorded: Recorded) -> Answer:
        path, body = _route(recorded.path), recorded.body
        if path.endswith("/models"):
            listed = [{"id": name, "object": "model"} for name in self.models or ()]
            return 404 if self.models is None else {"object": "list", "data": listed}
        if path.endswith("/embeddings"):
            own = self.on_embeddings(body) if self.on_embeddings else None
            return embedding(body, dimensions=self.dimensions, floats_only=self.floats_only) if own is None else own
        if not _is_chat(recorded):
            own = self.on_other(body) if self.on_other else None
            return 404 if own is None else own
        own = self.on_chat(body) if self.on_chat else None
        return self._chat(body) if own is None else own

    def _chat(self, body: Body) -> Answer:
        tool = extraction_tool(body)
        if tool is not None:
            decisions: Sequence[Mapping[str, Any]] = self._decisions.popleft() if self._decisions else []
            return call(tool["name"], **{array_property(tool): decisions})
        if self._answers:
            return self._answers.popleft()
        if body.get("response_format"):
            return json.dumps({"decisions": self._decisions.popleft() if self._decisions else []})
        return "All right."

    async def _stream(
        self, recorded: Recorded, message: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces(recorded.body, message):
            if not await self._wait(self.piece_seconds, reader):
                recorded.abandoned = True
                return False
            data = b"data: " + piece + b"\n\n"
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True


def is_summary(body: Body) -> bool:
    """Tell whether a chat is asked to write a thread's summary."""
    return str(body["messages"][0]["content"]).startswith("You keep the summary of one conversation.")


def _is_chat(recorded: Recorded) -> bool:
    return _route(recorded.path).endswith("/chat/completions")


def _route(path: str) -> str:
    """Return the path without its query, which Azure's clients send."""
    return path.partition("?")[0]


async def _read(reader: asyncio.StreamReader) -> Recorded | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Recorded(path=first.split()[1], headers=headers, body=_body(content))


def _body(content: bytes) -> Body:
    """Return the JSON that was sent; {} for anything else, such as the form that asks Google for a token."""
    try:
        return json.loads(content)
    except ValueError:
        return {}
