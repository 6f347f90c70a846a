"""Bulk work has threads and bounds of its own: it freezes nobody, outlives no client, and holds up no stop."""

import io
import json
import os
import signal
import socket
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.support.running import Service, service, until
from tests.service.support.scripts import texts
from tests.service.support.shapes import refused

PLACES = 2 + 16
LINE = {"user_id": "ada", "thread_id": "t1", "role": "user", "content": "Hi.", "timestamp": 1_700_000_000}
PAGE = b"---\ntype: fact\nkey:\n" + b"- 1\n" * 99_000 + b"---\n"
"""It takes a thread some 0.2 s."""


def begun(running: Service, content: bytes, *, length: int | None = None, path: str = "/api/import") -> socket.socket:
    """Return a connection that has sent its head and this much of its body."""
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=60)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: {length or len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def answered(connection: socket.socket) -> str:
    """Return the whole answer to a request whose body was not sent whole: the connection ends with it."""
    return b"".join(iter(lambda: connection.recv(100_000), b"")).decode()


def post(running: Service, content: bytes = b"") -> httpx.Response:
    return running.http.post("/api/import", content=content)


def line(**changes: Any) -> bytes:
    return json.dumps({**LINE, **changes}).encode() + b"\n"


def long_archive(pages: int = 200) -> bytes:
    """Return a small archive that keeps a thread busy for long."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(pages):
            archive.writestr(f"ada/facts/{number}.md", PAGE)
    return made.getvalue()


def cpu_seconds(running: Service) -> float:
    assert running.process is not None
    user, system = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("bulk"), BULK_WORKERS="2", SHUTDOWN_SECONDS="1") as running:
        yield running


def test_more_than_the_queue_holds_is_refused_at_once(bounded: Service) -> None:
    with ExitStack() as connections:
        for _ in range(PLACES):
            connections.enter_context(begun(bounded, line(), length=10_000))

        def is_full() -> bool:
            if post(bounded).status_code == 503:
                return True
            # This call may have had the place that one of those came for, which was refused then: one more comes.
            connections.enter_context(begun(bounded, line(), length=10_000))
            return False

        until(is_full)
        answer = post(bounded)
        refused(answer, 503, "busy")
        assert int(answer.headers["retry-after"]) > 0
        upload = {"user_id": "ada"}, {"file": ("a.txt", b"Tea.", "text/plain")}
        refused(bounded.http.post("/api/documents", data=upload[0], files=upload[1]), 503, "busy")
        refused(bounded.http.get("/api/users/ada/export", params={"format": "markdown"}), 503, "busy")
        assert bounded.turn("Hello.", user="eve")["reply"]
    until(lambda: post(bounded).status_code == 200)
    assert bounded.http.post("/api/documents", data=upload[0], files=upload[1]).status_code == 201


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="CPU time of another process is read from /proc")
def test_a_client_that_hangs_up_leaves_no_work_running_and_nobody_waits(bounded: Service) -> None:
    content, before = long_archive(), cpu_seconds(bounded)
    connections = [begun(bounded, content) for _ in range(8)]
    until(lambda: cpu_seconds(bounded) - before > 1)
    for _ in range(3):
        started = time.monotonic()
        bounded.turn("Hello.", user="eve")
        assert time.monotonic() - started < 5
    for connection in connections:
        connection.close()
    until(lambda: bounded.log.count("action=import_broken_off") >= 8)

    def is_idle() -> bool:
        used = cpu_seconds(bounded)
        bounded.get("/health")
        started = time.monotonic()
        until(lambda: time.monotonic() - started > 0.3)
        return cpu_seconds(bounded) - used < 0.1

    closed = cpu_seconds(bounded)
    until(is_idle)
    assert cpu_seconds(bounded) - closed < 3, "200 pages of one archive take some 40 s"


def test_a_stop_does_not_wait_for_bulk_work(tmp_path: Path) -> None:
    with service(tmp_path, SHUTDOWN_SECONDS="10") as running:
        with begun(running, long_archive()) as reading, begun(running, line(), length=10_000) as waiting:
            running.turn("Hello.")
            assert running.process is not None
            stopped = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            answers = [answered(connection) for connection in (reading, waiting)]
            assert running.process.wait(60) == 0
        assert time.monotonic() - stopped < 9
        for answer in answers:
            assert answer.startswith("HTTP/1.1 503")
            assert '"code":"stopping"' in answer
        assert "Traceback" not in running.log


def test_an_import_that_takes_too_long_ends_and_what_came_stays(tmp_path: Path) -> None:
    with service(tmp_path, IMPORT_SECONDS="0.5") as running:
        come = line(content="A") + line(role="assistant", content="B") + line(content="C")
        with begun(running, come + b'{"user', length=10_000) as connection:
            answer = answered(connection)
        assert answer.startswith("HTTP/1.1 503")
        assert "retry-after: " in answer.lower()
        assert json.loads(answer.partition("\r\n\r\n")[2])["error"]["code"] == "import_unfinished"
        assert texts(running) == [("user", "A"), ("assistant", "B"), ("user", "C")]
        assert post(running, come).json() == {"imported": 0, "known": 3, "failed": []}
