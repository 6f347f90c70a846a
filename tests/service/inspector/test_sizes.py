"""Pages stay small whatever they show: many long texts are cut, and forms that come back are packed."""

import json
import random

import httpx
import pytest

from tests.service.support.running import Service
from tests.service.support.visitor import Visitor

MOST_BYTES = 75_000
"""What a page may weigh packed, so that it has 100 kB with its style sheet and scripts."""
LONG = 20_000
Chance = random.Random(15)


def words(characters: int) -> str:
    """Return a text that packs about as well as a language does."""
    text = ""
    while len(text) < characters:
        text += "".join(Chance.choice("aeiounrstlkmd") for _ in range(Chance.randint(2, 9))) + " "
    return text[:characters].strip()


@pytest.fixture
def talkative(offline: Service, user: str) -> str:
    """Import a thread of 40 long messages; return the user."""
    lines = [
        {
            "user_id": user,
            "thread_id": "long",
            "role": "assistant" if number % 2 else "user",
            "content": f"Number {number}: {words(LONG)}",
            "timestamp": 1_700_000_000 + number,
        }
        for number in range(40)
    ]
    answer = offline.http.post("/api/import", content="\n".join(map(json.dumps, lines)))
    assert answer.json()["imported"] == len(lines), answer.text
    return user


def weight(running: Service, path: str) -> tuple[int, str]:
    """Return how many bytes of a page come over the wire, and the page."""
    with httpx.stream("GET", f"{running.url}{path}", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.status_code == 200
        page = answer.read().decode()
        return answer.num_bytes_downloaded, page


def test_pages_of_many_long_texts_stay_small_and_lead_to_the_whole_ones(offline: Service, talkative: str) -> None:
    own = f"/users/{talkative}"
    for path in (f"{own}/threads/long", f"{own}/talk?thread=long", f"{own}/search?query=number&top_k=40&compare=1"):
        size, page = weight(offline, path)
        assert size < MOST_BYTES, path
        assert "Read all of it" in page, path
    (turn,) = {
        message["turn_id"] for message in offline.get("/api/threads/long/messages", user_id=talkative, limit=1)["items"]
    }
    assert "Read all of it" not in weight(offline, f"{own}/turns/{turn}")[1]


def test_a_few_long_texts_are_there_whole(offline: Service, user: str) -> None:
    offline.turn(f"{words(LONG)} the very end", user=user)
    for path in ("threads/t1", "talk?thread=t1"):
        assert "the very end</div>" in weight(offline, f"/users/{user}/{path}")[1]


def test_a_form_that_comes_back_is_packed(offline: Service, user: str) -> None:
    text = words(90_000)
    with Visitor(offline) as visitor:
        refused = visitor.post(f"/users/{user}/facts/new", token="stale", value=text)
    assert (refused.status_code, refused.headers["content-encoding"]) == (403, "gzip")
    assert text in refused.text
    assert refused.num_bytes_downloaded < MOST_BYTES
