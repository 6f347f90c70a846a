"""Reads `text/event-stream` as a client does."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import httpx

from tests.service.support.running import Service

Event = tuple[str, dict[str, Any]]


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events in the lines, without keep-alive comments."""
    name, data = "", ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data += line.removeprefix("data: ")
        elif not line and name:
            yield name, json.loads(data)
            name, data = "", ""


def stream(running: Service, message: str, *, user: str, thread: str = "t1", **fields: Any) -> list[Event]:
    """Return all events of one streamed turn, which must begin as a stream."""
    body = {"user_id": user, "thread_id": thread, "message": message, "stream": True, **fields}
    with running.http.stream("POST", "/api/agent", json=body) as answer:
        check_stream(answer)
        return list(read_events(answer.iter_lines()))


def check_stream(answer: httpx.Response) -> None:
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"


def names(events: Iterable[Event]) -> list[str]:
    return [name for name, _ in events]


def data_of(events: Iterable[Event], wanted: str) -> dict[str, Any]:
    """Return the data of the one event of this name."""
    (data,) = [data for name, data in events if name == wanted]
    return data
