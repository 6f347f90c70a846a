"""Working memory: what matters in one thread alone, kept within bounds, and gone with its thread."""

from tests.fakes.openai_server import FakeOpenAI
from tests.service.search.test_search import search
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service, until
from tests.service.threads.test_retention import evicted


def of_thread(running: Service, user: str, thread: str) -> dict[str, str]:
    found = running.get(f"/api/users/{user}/facts", scope="thread", thread_id=thread, limit=200)["items"]
    return {fact["key"]: fact["value"] for fact in found}


def test_a_threads_facts_are_known_in_that_thread_alone(served: Service, model: FakeOpenAI, user: str) -> None:
    message = "Project Falcon, deadline Friday."
    lessons = [
        add("Falcon", key="project", scope="thread", importance=0.9),
        add("Friday", key="deadline", scope="thread", importance=0.1),
    ]
    teach(model, {message: lessons})
    served.turn(message, user=user, thread="work", wait_for_memory=True)
    assert of_thread(served, user, "work") == {"project": "Falcon", "deadline": "Friday"}
    assert of_thread(served, user, "home") == {}
    inside = served.turn("What now?", user=user, thread="work")
    assert inside["memory"]["facts"] == {"project": "Falcon", "deadline": "Friday"}
    assert "project" not in served.turn("What now?", user=user, thread="home")["memory"]["facts"]
    hits = search(served, user, "The user's project", kinds=["fact"], thread_id="work", score_threshold=-1.0)
    assert {hit["thread_id"] for hit in hits} == {"work"}
    assert search(served, user, "The user's project", kinds=["fact"], thread_id="home", score_threshold=-1.0) == []


def test_a_pinned_note_of_a_thread_is_given_there_whatever_its_importance(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    message = "Short sentences, please."
    teach(model, {message: [add("Short sentences.", key=None, evidence=message, scope="thread", importance=0.1)]})
    served.turn(message, user=user, thread="work", wait_for_memory=True)
    (note,) = served.get(f"/api/users/{user}/facts", scope="thread", thread_id="work")["items"]
    pinned = served.http.patch(f"/api/users/{user}/facts/{note['id']}", json={"pinned": True})
    assert (pinned.status_code, pinned.json()["importance"]) == (200, 0.1)
    ask = {"user_id": user, "message": "What now?"}
    inside = served.http.post("/api/context", json={**ask, "thread_id": "work"}).json()
    assert inside["notes"] == [note["statement"]]
    assert note["statement"] in inside["block"]
    assert served.http.post("/api/context", json={**ask, "thread_id": "home"}).json()["notes"] == []


def test_a_threads_facts_reach_its_agent_before_weightier_ones_of_the_user(offline: Service, user: str) -> None:
    path = f"/api/users/{user}/facts/by-key"
    for number in range(40):
        fact = {"value": f"{number} " + "long value " * 10, "importance": 0.9}
        offline.http.put(f"{path}/key_{number}", json=fact).raise_for_status()
    own = {"value": "gloomy", "scope": "thread", "thread_id": "work", "importance": 0.1}
    offline.http.put(f"{path}/mood", json=own).raise_for_status()
    note = offline.http.post("/api/memory", json={"user_id": user, "content": "No frills. " * 20}).json()
    changes = {"pinned": True, "scope": "thread", "thread_id": "work"}
    offline.http.patch(f"/api/users/{user}/facts/{note['id']}", json=changes).raise_for_status()
    ask = {"user_id": user, "message": "What now?"}
    inside = offline.http.post("/api/context", json={**ask, "thread_id": "work"}).json()
    assert '- "mood": "gloomy"' in inside["block"]
    assert "No frills." in inside["block"]
    assert "key_39" in inside["facts"]
    assert inside["block"].count("long value") < 400, "the budget leaves some of the user's facts out"
    assert "gloomy" not in offline.http.post("/api/context", json={**ask, "thread_id": "home"}).json()["block"]


def test_they_go_with_their_thread(served: Service, model: FakeOpenAI, user: str) -> None:
    message = "Project Falcon in Oslo."
    teach(model, {message: [add("Falcon", key="project", scope="thread"), add("Oslo", key="city")]})
    served.turn(message, user=user, thread="work", wait_for_memory=True)
    assert served.http.delete("/api/threads/work", params={"user_id": user}).status_code == 204
    assert of_thread(served, user, "work") == {}
    assert served.get(f"/api/users/{user}/facts")["facts"] == {"city": "Oslo"}
    hits = search(served, user, "The user's project", kinds=["fact"], score_threshold=-1.0)
    assert [hit["content"] for hit in hits] == ["The user's city is Oslo."]


def test_a_thread_keeps_the_hundred_that_matter_most(served: Service, model: FakeOpenAI, user: str) -> None:
    names = [f"word{number}x" for number in range(105)]
    messages = [" ".join(names[start : start + 15]) for start in range(0, len(names), 15)]
    before = evicted(served)["working_memory"]
    teach(
        model,
        {
            message: [
                add(name, key=name, scope="thread", importance=0.1 if name in {"word0x", "word20x"} else 0.9)
                for name in message.split()
            ]
            for message in messages
        },
    )
    for message in messages:
        served.turn(message, user=user, thread="long", wait_for_memory=True)
    until(lambda: evicted(served)["working_memory"] == before + 5)
    kept = of_thread(served, user, "long")
    assert len(kept) == 100
    gone = set(names) - set(kept)
    assert {"word0x", "word20x"} < gone
    assert gone <= {*messages[0].split(), "word20x"}
