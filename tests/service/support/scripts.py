"""The scripted model's answers in these tests, and helpers that wait."""

import json
import re
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx

from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import call
from tests.service.support.running import Service

_SAID = re.compile(r"\b[Mm]y (\w+) is ([\w-]+)")
_posting = ThreadPoolExecutor(64, thread_name_prefix="posting")


def message_of(extraction: Body) -> str:
    """Return the user's message of an extraction request."""
    line = str(extraction["messages"][-1]["content"]).splitlines()[-1]
    text: str = json.loads(line.partition("User's message: ")[2])
    return text


def learning(body: Body) -> Answer | None:
    """Extract each "my KEY is VALUE" as a fact; answer all else as by default."""
    function = extraction_tool(body)
    if function is None:
        return None
    found = _SAID.finditer(message_of(body))
    return call(
        function["name"],
        decisions=[
            {
                "decision": "add",
                "key": said[1],
                "value": said[2],
                "statement": f"The user's {said[1]} is {said[2]}.",
                "evidence": said[0],
            }
            for said in found
        ],
    )


def prompt(body: Body) -> list[str]:
    """Return the texts of a chat request behind its system message."""
    return [str(message["content"]) for message in body["messages"] if message["role"] != "system"]


def post(running: Service, message: str, *, user: str = "ada", thread: str = "t1", **fields: Any) -> httpx.Response:
    """Send one turn on a connection of its own; return its answer, errors too."""
    body = {"user_id": user, "thread_id": thread, "message": message, **fields}
    return httpx.post(f"{running.url}/api/agent", json=body, timeout=60)


def posting(
    running: Service, message: str, *, user: str = "ada", thread: str = "t1", **fields: Any
) -> "Future[httpx.Response]":
    """Run `post` in a thread of its own."""
    return _posting.submit(post, running, message, user=user, thread=thread, **fields)


def events(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream: names and data."""
    blocks = [block.split("\n") for block in text.split("\n\n") if block and not block.startswith(":")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def texts(running: Service, *, user: str = "ada", thread: str = "t1") -> list[tuple[str, str]]:
    """Return the thread's messages: (role, content)."""
    found = running.get(f"/api/threads/{thread}/messages", user_id=user, limit=200)["items"]
    return [(message["role"], message["content"]) for message in found]


def facts(running: Service, *, user: str = "ada") -> dict[str, str]:
    """Return the user-fact dict; check that no key has two living facts."""
    found = running.get(f"/api/users/{user}/facts", limit=200)
    keys = [fact["key"] for fact in found["items"]]
    assert len(keys) == len(set(keys)), found
    known: dict[str, str] = found["facts"]
    return known


def hits(
    running: Service, text: str, *, user: str = "ada", thread: str = "t1", scope: str = "user"
) -> list[dict[str, Any]]:
    """Return a search's hits. The search is a turn too, but leaves nothing behind in the index."""
    shown = running.turn(text, user=user, thread=thread, memory={"window": 0, "top_k": 50, "scope": scope})
    assert shown["memory"]["degraded"] == []
    found: list[dict[str, Any]] = shown["memory"]["hits"]
    assert len({hit["id"] for hit in found}) == len(found)
    return found
