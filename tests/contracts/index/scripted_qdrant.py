"""A scripted HTTP server in Qdrant's place, for what is said to one and how its troubles are told."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit

from typing_extensions import override

from recollect.memory.ports.vector_index import collection_name
from recollect.memory.stores.qdrant.collection import QdrantServer
from tests.contracts.index.points import DIMENSION, MODEL

Answer = tuple[int, str]
NAME = collection_name("outage", model=MODEL, dimension=DIMENSION)


class Answers(BaseHTTPRequestHandler):
    """Says its version at the root; elsewhere `status`, or where that is 200 the path's next answer; the last stays.

    `heard` holds each request's method, path and JSON.
    """

    version = "1.19.0"
    status = 500
    answers: ClassVar[dict[str, list[Answer]]] = {}
    heard: ClassVar[list[tuple[str, str, Any]]] = []

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.heard.append((self.command, urlsplit(self.path).path, json.loads(body) if body else None))
        if self.path == "/":
            self.answer(200, f'{{"title": "qdrant", "version": "{self.version}"}}')
        elif self.status == 200:
            prepared = self.answers.get(urlsplit(self.path).path.removeprefix(f"/collections/{NAME}"), [DONE])
            self.answer(*(prepared.pop(0) if len(prepared) > 1 else prepared[0]))
        else:
            self.answer(self.status, '{"status": {"error": "the text of ada: secret"}}')

    do_PUT = do_POST = do_PATCH = do_GET  # noqa: N815  # the base class's names

    def answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


DONE: Answer = (200, '{"result": true}')
EXISTS: Answer = (200, '{"result": {"exists": true}}')
MISSING: Answer = (200, '{"result": {"exists": false}}')
INDEXED: Answer = (200, '{"result": {"operation_id": 1, "status": "completed"}}')
NO_ALIAS: Answer = (200, '{"result": {"aliases": []}}')
LEADS: Answer = (200, f'{{"result": {{"aliases": [{{"alias_name": "{NAME}.current", "collection_name": "{NAME}"}}]}}}}')
SEVEN: Answer = (200, '{"result": {"count": 7}}')


@contextmanager
def serving(**attributes: Any) -> Generator[tuple[QdrantServer, type[Answers]]]:
    handler = type("Handler", (Answers,), {"heard": [], **attributes})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield QdrantServer(f"http://127.0.0.1:{server.server_port}", prefer_grpc=False), handler
        finally:
            server.shutdown()
            thread.join()
