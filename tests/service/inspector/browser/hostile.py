"""A user whose every field that can hold text holds a hostile one, and the addresses of all pages that show it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.fakes.openai_answers import Answer, Body, array_property, call, extraction_tool
from tests.service.support.running import Service
from tests.service.support.scripts import message_of

MARKUP = (
    "<img src=x onerror=\"document.title='run'\">{{7*7}}{% raw %}</script></template></bdi></div>"
    "<script>document.title='run'</script>'\"`--><svg onload=alert(1)>javascript:alert(2) "
    "http://a.test [a](javascript:b)"
)
LONG = "W" * 300
MARKS = "Z" + "\u0301\u0338\u20dd\u0489" * 12
TEXT = f"{MARKUP} \u202egnal \u2067rtl {MARKS} {LONG}"
VERY_LONG = f"{TEXT} " + "word\u200b" * 500 + "the end."
SHORT = "<b onclick=alert(1)>{{7*7}}</b>\u202egnal\u0301\u0301\u0301"
USER, THREAD, TURN = (letter * 128 for letter in "uct")
"""The longest ids; of other characters than letters an id may hold few."""


def answering(body: Body) -> Answer | None:
    """Extract a message as a keyed fact, a note and a fact that waits (REVIEW=sensitive); reply with the long text."""
    function = extraction_tool(body)
    if function is None:
        return {"content": VERY_LONG}
    said = message_of(body)
    evidence = said.partition(LONG)[0].strip()  # whole words: a part of one proves nothing
    fact = {"decision": "add", "key": "motto", "value": TEXT[:900], "statement": TEXT[:1_000], "evidence": evidence}
    note, waiting = ({**fact, "value": f"{one} {TEXT[:900]}", "statement": f"{one} {TEXT[:1_000]}"} for one in "AB")
    note, waiting = {**note, "key": None}, {**waiting, "key": "ailment", "tags": ["health"]}
    return call(function["name"], **{array_property(function): [fact, note, waiting]})


@dataclass(frozen=True)
class Hostile:
    """The seeded user: ids of what was stored; `waiting` is a proposed fact, `taught` a turn that taught something."""

    fact: str
    waiting: str
    taught: str
    own: str = f"/users/{USER}"

    @property
    def pages(self) -> Iterator[str]:
        """Yield the address of each page, in each of its states that an address leads to."""
        thread, turn = f"{self.own}/threads/{THREAD}", f"{self.own}/turns/{TURN}"
        yield f"{self.own}/talk?thread={THREAD}"
        for query in (
            "",
            "?status=proposed",
            "?kind=thread",
            "?kind=global",
            "?tag=" + quote(SHORT[:60]),
            "?as_of=2100-01-01T00:00:00Z",
        ):
            yield f"{self.own}/facts{query}"
        yield f"{self.own}/facts?text={quote(SHORT)}"
        yield f"{self.own}/facts/new"
        for act in ("", "/edit", "/forget"):
            yield f"{self.own}/facts/{self.fact}{act}"
        yield f"{self.own}/facts/{self.waiting}"
        yield f"{self.own}/data/erase"
        yield f"{self.own}/threads"
        yield f"{self.own}/threads?text={quote(SHORT)}"
        yield thread
        yield f"{self.own}/threads/named"
        yield f"{thread}/delete"
        for act in ("", "/undo", "/learn", "/regenerate"):
            yield f"{turn}{act}"
        yield f"{self.own}/search?query={quote(SHORT)}"
        yield f"{self.own}/search?query={quote(TEXT)}&compare=1"
        yield f"{self.own}/search?query=a&top_k={quote(MARKUP)}"
        yield f"{self.own}/{quote(MARKUP)}"

    @property
    def refusals(self) -> Iterator[tuple[str, Mapping[str, str], int]]:
        """Yield path, fields and status of forms after which a page says what hinders, or shows a difference."""
        facts, turn = f"{self.own}/facts", f"{self.own}/turns/{TURN}"
        edit = {"value": TEXT, "statement": TEXT, "tags": TEXT, "version": "another"}
        yield f"{facts}/new", {**edit, "key": SHORT, "importance": MARKUP}, 422
        yield f"{facts}/new", {**edit, "key": "name", "tags": ""}, 412
        yield f"{facts}/{self.fact}/edit", {**edit, "tags": ""}, 412
        yield f"{facts}/{self.fact}/forget", {"seen": MARKUP[:200]}, 412
        yield f"{facts}/{self.waiting}/approve", {"version": "x", "seen": TEXT, "seen_replaced": VERY_LONG}, 412
        yield f"{self.own}/threads/{THREAD}/summary", {"version": "another", "summary": TEXT}, 412
        yield f"{self.own}/threads/{THREAD}/summary", {"version": "another", "summary": VERY_LONG}, 422
        yield f"{self.own}/data/erase", {"typed": MARKUP[:200]}, 422
        yield "/user", {"user_id": MARKUP}, 422
        yield f"{facts}/new", {"token": MARKUP, "value": VERY_LONG}, 403
        yield f"{turn}/learn/preview", {}, 200
        yield f"{turn}/learn", {"preview_id": SHORT}, 422
        yield f"{self.own}/turns/{self.taught}/undo", {}, 409


def seed(running: Service) -> Hostile:
    """Store the user's texts over the API."""
    metadata = {SHORT: TEXT, "nested": [{MARKUP: TEXT}]}
    said: dict[str, Any] = {"user": USER, "thread": THREAD, "metadata": metadata, "wait_for_memory": True}
    taught = running.turn(TEXT, **said)["turn_id"]
    fact = {"statement": TEXT, "tags": [SHORT[:60], LONG[:64]], "importance": 1.0}
    own = f"/api/users/{USER}/facts/by-key"
    _send(running, "PUT", "/api/global/facts/by-key/rule", {**fact, "value": TEXT})
    _send(running, "PUT", f"{own}/draft", {**fact, "value": TEXT, "scope": "thread", "thread_id": THREAD})
    _send(running, "PUT", f"{own}/name", {**fact, "value": TEXT})
    stored = _send(running, "PUT", f"{own}/name", {**fact, "value": f"B {TEXT}"})
    document = {"text": f"{VERY_LONG}", "source": TEXT, "title": TEXT[:200], "domain": SHORT[:60], "metadata": metadata}
    _send(running, "POST", "/api/documents", {"user_id": USER, **document})
    _send(running, "POST", "/api/memory", {"user_id": USER, "content": TEXT})
    running.turn(f"{VERY_LONG} Again: {SHORT}", turn_id=TURN, **said, memory={"scope": "user", "window": 1})
    line = {"user_id": USER, "thread_id": "named", "role": "user", "content": TEXT, "name": SHORT}
    imported = running.http.post("/api/import", content=json.dumps({**line, "timestamp": "2026-02-02T09:00:00Z"}))
    assert imported.json()["failed"] == [], imported.text
    thread = f"/api/threads/{THREAD}?user_id={USER}"
    _send(running, "PATCH", thread, {"title": TEXT[:200]})
    _send(running, "PUT", thread.replace("?", "/summary?"), {"summary": TEXT})
    waiting = running.get(f"/api/users/{USER}/facts", status="proposed")["items"]
    # A person has changed what that turn taught, so that undoing it asks first.
    _send(running, "PUT", f"{own}/motto", {**fact, "value": f"C {TEXT}"})
    return Hostile((stored.get("fact") or stored)["id"], waiting[0]["id"], taught)


def _send(running: Service, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = running.http.request(method, path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.is_success, answer.text
    shown: dict[str, Any] = answer.json()
    return shown
