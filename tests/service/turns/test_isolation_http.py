"""Two users with the same thread id and the same turn id never see each other's words."""

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service
from tests.service.support.scripts import facts, hits, learning, posting, texts

SECRETS = {"one": "aardvark", "two": "buzzard"}


@pytest.fixture
def users(user: str) -> dict[str, str]:
    return {name: f"{user}-{name}" for name in SECRETS}


def test_two_users_with_the_same_ids_are_apart(served: Service, model: FakeOpenAI, users: dict[str, str]) -> None:
    model.on_chat = learning
    for round_number in range(3):
        asked = {
            name: posting(
                served,
                f"my animal is {SECRETS[name]} in round {round_number}",
                user=user,
                thread="same",
                turn_id=f"turn{round_number}",
                wait_for_memory=True,
            )
            for name, user in users.items()
        }
        assert [answer.result(60).status_code for answer in asked.values()] == [200, 200]
    for body in (*model.chats, *model.extractions):
        assert sum(secret in str(body["messages"]) for secret in SECRETS.values()) <= 1, "a prompt names both"
    for name, user in users.items():
        own, foreign = SECRETS[name], SECRETS["two" if name == "one" else "one"]
        said = texts(served, user=user, thread="same")
        assert [content for role, content in said if role == "user"] == [
            f"my animal is {own} in round {number}" for number in range(3)
        ]
        assert facts(served, user=user) == {"animal": own}
        for number in range(3):
            turn = served.get(f"/api/turns/turn{number}", user_id=user)
            assert turn["user_id"] == user
            assert foreign not in str(turn)
            assert own in str(turn["memory"]["update"]["changes"])
        for thread in ("same", "other"):
            found = hits(served, f"animal {foreign} {own} round", user=user, thread=thread)
            assert len(found) >= 3
            assert all(foreign not in hit["content"] or own in hit["content"] for hit in found)
            assert {hit["thread_id"] for hit in found} <= {"same", "other"}


def test_a_turn_of_another_user_is_not_found(served: Service, model: FakeOpenAI, users: dict[str, str]) -> None:
    served.turn("Mine alone.", user=users["one"], thread="same", turn_id="only")
    answer = served.http.get("/api/turns/only", params={"user_id": users["two"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert texts(served, user=users["two"], thread="same") == []
    assert "Mine alone." not in answer.text


def test_threads_of_one_user_share_facts_but_no_windows(served: Service, model: FakeOpenAI, user: str) -> None:
    model.on_chat = learning
    first = served.turn("my animal is aardvark", user=user, thread="one", wait_for_memory=True)
    assert first["memory"]["update"]["status"] == "done"
    other = served.turn("Hello there.", user=user, thread="two")
    assert other["memory"]["window"] == 0
    assert other["memory"]["facts"] == {"animal": "aardvark"}
    narrow = served.turn(
        "Which animal is it, my aardvark?", user=user, thread="two", memory={"window": 0, "scope": "thread"}
    )
    assert {hit["thread_id"] for hit in narrow["memory"]["hits"]} <= {"two"}
    assert "my animal is aardvark" in {
        hit["content"] for hit in hits(served, "animal is aardvark", user=user, thread="two")
    }
