"""Calls the service's routes that the terminal needs."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from recollect.api.cli.owner import CONNECT_SECONDS, OwnerRefused, check, read_answer

SECONDS = 120.0
"""The longest silence of a service; streams send a keep-alive every 15 s."""
PAGE = 200

Json = dict[str, Any]
Answer = TypeVar("Answer", bound=BaseModel)


class Unreachable(OwnerRefused):
    """The service cannot be reached; see whether it runs."""


class Event(NamedTuple):
    """One server-sent event of a turn, such as `token` or `message`; see `POST /api/agent`."""

    name: str
    data: Json


class TerminalClient:
    """Calls a service over `http`, whose base URL is the service's; `place` names it in errors.

    Raises:
        Refused: from any call: the service refused it, answered nonsense, or (Unreachable) is not there.
    """

    def __init__(self, http: httpx.Client, *, place: str) -> None:
        self.http = http
        self._place = place
        self._timeout = httpx.Timeout(SECONDS, connect=CONNECT_SECONDS)

    def check(self) -> None:
        """Check that the service answers."""
        self._call("GET", "/health")

    def facts(self, user_id: str, *, thread_id: str | None = None, matching: Json | None = None) -> Json:
        """Return the facts of the user, and of the thread, that fulfil `matching`: {"items", "facts", …}."""
        asked = None if matching is None else json.dumps(matching)
        return self._pages(f"/api/users/{_part(user_id)}/facts", {"thread_id": thread_id, "filter": asked})

    def forget(self, user_id: str, fact_id: str) -> None:
        """Remove a fact's text everywhere."""
        self._call("DELETE", f"/api/users/{_part(user_id)}/facts/{_part(fact_id)}")

    def search(
        self, user_id: str, query: str, *, thread_id: str | None = None, top_k: int, matching: Json | None = None
    ) -> Json:
        """Search the user's memory for what fulfils the filter `matching`: {"hits", "took_ms"}, best first."""
        body = {"user_id": user_id, "query": query, "thread_id": thread_id, "top_k": top_k, "filter": matching}
        return self._call("POST", "/api/memory/search", body=body)

    def threads(self, user_id: str) -> Json:
        """Return the user's threads, most recently written first: {"items", "next_cursor": null}."""
        return self._pages("/api/threads", {"user_id": user_id})

    def last_turn_id(self, user_id: str, thread_id: str) -> str | None:
        """Return the id of the turn of the thread's last message."""
        messages = self._pages(f"/api/threads/{_part(thread_id)}/messages", {"user_id": user_id})["items"]
        return messages[-1].get("turn_id") if messages else None

    def turn(self, user_id: str, turn_id: str) -> Json:
        """Return a turn with what it recalled and taught."""
        return self._call("GET", f"/api/turns/{_part(turn_id)}", {"user_id": user_id})

    def undo(self, user_id: str, turn_id: str, *, force: bool) -> Json:
        """Undo what a turn taught: {"turn_id", "undone", "left"}."""
        query = {"user_id": user_id, "force": "true" if force else "false"}
        return self._call("POST", f"/api/turns/{_part(turn_id)}/undo", query)

    def clear(self, user_id: str, thread_id: str) -> None:
        """Remove a thread's data; the user's facts stay."""
        self._call("POST", f"/memory/clear/{_part(thread_id)}", {"user_id": user_id})

    def erase(self, user_id: str) -> Json:
        """Remove every trace of the user; return the receipt."""
        return self._call("DELETE", f"/api/users/{_part(user_id)}")

    def stats(self, user_id: str | None, *, thread_id: str | None = None) -> Json:
        """Return counts of what is stored: the user's, the thread's, or the whole service's."""
        return self._call("GET", "/memory-stats", {"user_id": user_id, "session_id": thread_id})

    def export(self, user_id: str, query: Mapping[str, str | list[str]]) -> Iterator[bytes]:
        """Stream all data of the user, or the part that the query names."""
        path = f"/api/users/{_part(user_id)}/export"
        with self._reached(), self.http.stream("GET", path, params=query, timeout=self._timeout) as response:
            if not response.is_success:
                response.read()
                self._checked(response)
            yield from response.iter_bytes()

    def put_fact(self, user_id: str, key: str, fields: Json) -> Json:
        """Write the fact under a key."""
        return self._call("PUT", f"/api/users/{_part(user_id)}/facts/by-key/{_part(key)}", body=fields)

    def change_fact(self, user_id: str, fact_id: str, fields: Json) -> Json:
        """Change fields of a fact."""
        return self._call("PATCH", f"/api/users/{_part(user_id)}/facts/{_part(fact_id)}", body=fields)

    def write_note(self, user_id: str, content: str) -> Json:
        """Write a note."""
        return self._call("POST", "/api/memory", body={"user_id": user_id, "content": content})

    def set_summary(self, user_id: str, thread_id: str, summary: str | None) -> Json:
        """Write a thread's summary, or remove it."""
        path = f"/api/threads/{_part(thread_id)}/summary"
        return self._call("PUT", path, {"user_id": user_id}, body={"summary": summary})

    def say(self, turn: Mapping[str, Any]) -> Generator[Event]:
        """Run a turn (the body of `POST /api/agent`) and yield its events. A caller that leaves stops nothing."""
        with self._reached():
            stream = self.http.stream("POST", "/api/agent", json={**turn, "stream": True}, timeout=self._timeout)
            with stream as response:
                if not response.is_success:
                    response.read()
                    self._checked(response)
                yield from _events(_lines(response.iter_bytes()))

    def settled(self, turn: Mapping[str, Any]) -> Json:
        """Return the same turn, stored already or running, once it was learned from or the service's wait is over."""
        return self._call("POST", "/api/agent", body={**turn, "wait_for_memory": True})

    def _pages(self, path: str, query: Mapping[str, str | None]) -> Json:
        """Return all pages of a list as one."""
        items, cursor = list[Any](), None
        while True:
            page = self._call("GET", path, {**query, "limit": str(PAGE), "cursor": cursor})
            items += page.get("items") or []
            cursor = page.get("next_cursor")
            if not cursor:
                return {**page, "items": items, "next_cursor": None}

    def _call(
        self, method: str, path: str, query: Mapping[str, str | None] | None = None, *, body: Json | None = None
    ) -> Json:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        with self._reached():
            response = self.http.request(method, path, params=given, json=body, timeout=self._timeout)
        return self._checked(response)

    def _checked(self, response: httpx.Response) -> Json:
        """Return the answer's JSON; an empty object where it has no body."""
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            raise OwnerRefused(f"The service at {self._place} wants a key that it knows; set RECOLLECT_API_KEY.")
        if response.is_success and not response.content:
            return {}
        return read_answer(response)

    @contextmanager
    def _reached(self) -> Generator[None]:
        if self.http.is_closed:
            raise Unreachable(f"The connection to {self._place} has ended; try again.")
        try:
            yield
        except httpx.ReadTimeout as error:
            raise OwnerRefused(
                f"The service at {self._place} has said nothing for {SECONDS:.0f} s; try again."
            ) from error
        except httpx.RequestError as error:
            raise Unreachable(
                f"The service at {self._place} does not answer ({type(error).__name__}); see whether it runs."
            ) from error


def parsed(kind: type[Answer], said: Json) -> Answer:
    """Parse an answer with the service's own model of it.

    Raises:
        Refused: it is none.
    """
    try:
        return kind.model_validate(said)
    except ValidationError as error:
        raise OwnerRefused(
            "The service answered something else than was asked for; it may be none of Recollect's."
        ) from error


def _part(text: str) -> str:
    return quote(text, safe="")


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Split server-sent events into lines: at line feeds alone, because texts may hold other line ends."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for one in whole:
            yield one.decode(errors="replace").removesuffix("\r")


def _events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events, until `done`.

    Raises:
        Refused: the turn ended with an error.
        httpx.RemoteProtocolError: the stream ended early.
    """
    name = ""
    for text in lines:
        field, _, value = text.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            event = Event(name, _object(value))
            if event.name == "error":
                check(event.data)
            if event.name == "done":
                return
            yield event
    raise httpx.RemoteProtocolError("the stream ended early")


def _object(text: str) -> Json:
    try:
        said: Json = json.loads(text)
    except ValueError as error:
        raise httpx.RemoteProtocolError("an event holds no JSON") from error
    if not isinstance(said, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - what another process says
        raise httpx.RemoteProtocolError("an event holds no object")
    return said
