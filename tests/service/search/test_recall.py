"""Recall as a client sees it: imported conversations, searched over HTTP."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cross_encoder import write_cross_encoder
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service, service
from tests.service.support.shapes import HIT, check, fields

SUNDAY = "2026-03-15T12:00:00Z"
TALK = (
    ("2026-02-02T09:00:00Z", "food", "user", "I burnt the pizza at Mario's party."),
    ("2026-02-02T09:00:05Z", "food", "assistant", "What a pity about the pizza."),
    ("2026-03-04T18:00:00Z", "trips", "user", "We want to see Lisbon in spring."),
    ("2026-03-04T18:00:05Z", "trips", "assistant", "Lisbon is lovely in spring."),
    ("2026-03-05T18:00:00Z", "trips", "user", "The flight leaves from Hamburg."),
    ("2026-03-05T18:00:05Z", "trips", "assistant", "Then take the early train to Hamburg."),
    ("2026-03-14T10:00:00Z", "week", "user", "My sister baked a pizza with figs."),
    ("2026-03-14T10:00:05Z", "week", "assistant", "Figs go well with cheese."),
    ("2026-03-14T23:30:00Z", "week", "user", "Which stove is the best?"),
    ("2026-03-14T23:30:05Z", "week", "assistant", "An induction one, most cooks say."),
)


def lines(user: str, talk: Sequence[tuple[str, str, str, str]] = TALK, **more: Any) -> str:
    return "\n".join(
        json.dumps(
            {"user_id": user, "thread_id": thread, "role": role, "content": content, "timestamp": at, **more}
            | {"message_id": f"m{number}"}
        )
        for number, (at, thread, role, content) in enumerate(talk)
    )


def take_in(running: Service, body: str) -> None:
    answer = running.http.post("/api/import", content=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["failed"] == []


def search(running: Service, user: str, query: str, **more: Any) -> dict[str, Any]:
    body = {"user_id": user, "query": query, "now": SUNDAY, "top_k": 10, **more}
    answer = running.http.post("/api/memory/search", json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    for hit in shown["hits"]:
        check({**HIT, "excerpt": (bool,)} if "excerpt" in hit else HIT, hit)
    return shown


def ids(shown: dict[str, Any]) -> list[str]:
    return [hit["message_id"] for hit in shown["hits"]]


@pytest.fixture
def talked(offline: Service, user: str) -> Service:
    take_in(offline, lines(user))
    return offline


# Time.


@pytest.mark.parametrize(
    ("query", "timezone", "expected"),
    [
        ("What did we discuss yesterday?", None, ["m6", "m7", "m8", "m9"]),
        ("What did we discuss yesterday?", "America/New_York", ["m6", "m7", "m8", "m9"]),
        ("What did we discuss yesterday?", "Asia/Tokyo", ["m6", "m7"]),
        ("What did we talk about last week?", None, ["m2", "m3", "m4", "m5"]),
        ("Worüber haben wir gestern gesprochen?", "Europe/Berlin", ["m6", "m7"]),
        ("Worüber haben wir letzte Woche gesprochen?", None, ["m2", "m3", "m4", "m5"]),
        ("What did we discuss two years ago?", None, []),
    ],
)
def test_a_time_alone_lists_what_was_said_then_in_order(
    talked: Service, user: str, query: str, timezone: str | None, expected: list[str]
) -> None:
    now = "2026-03-15T12:00:00Z" if "week" not in query and "Woche" not in query else "2026-03-10T12:00:00Z"
    assert ids(search(talked, user, query, timezone=timezone, now=now)) == expected


def test_a_list_of_a_time_keeps_to_top_k_and_scope(talked: Service, user: str) -> None:
    asked = "What did we discuss yesterday?"
    assert ids(search(talked, user, asked, top_k=3)) == ["m6", "m7", "m8"]
    assert ids(search(talked, user, asked, thread_id="food")) == []
    assert ids(search(talked, f"{user}-other", asked)) == []
    assert {one["stage"] for one in search(talked, user, asked, explain=True)["trace"]} == {"period"}


def test_a_named_time_raises_what_was_said_then(talked: Service, user: str) -> None:
    found = search(talked, user, "the pizza in February", explain=True)
    assert set(ids(found)[:2]) == {"m0", "m1"}
    assert next(one for one in found["trace"] if one["id"] == found["hits"][0]["id"])["scores"]["date"] > 0
    assert ids(search(talked, user, "the pizza yesterday"))[0] == "m6"
    assert "m0" in ids(search(talked, user, "the pizza yesterday"))


def test_a_named_time_can_filter_or_do_nothing(talked: Service, user: str) -> None:
    assert set(ids(search(talked, user, "the pizza yesterday", time="filter"))) <= {"m6", "m7", "m8", "m9"}
    assert ids(search(talked, user, "the pizza yesterday", time="filter"))[0] == "m6"
    ignored = search(talked, user, "the pizza yesterday", time="ignore", explain=True)
    assert all("date" not in one["scores"] for one in ignored["trace"])
    assert ids(search(talked, user, "What did we discuss yesterday?", time="ignore")) != ["m6", "m7", "m8", "m9"]


# Small and failing cases.


def test_a_small_memory_is_given_whole(offline: Service, user: str) -> None:
    take_in(offline, lines(user, TALK[:5]))
    found = search(offline, user, "quantum chromodynamics")
    assert sorted(ids(found)) == ["m0", "m1", "m2", "m3", "m4"]
    assert ids(search(offline, user, "quantum chromodynamics", score_threshold=0.1)) == []
    assert len(search(offline, user, "quantum chromodynamics", top_k=2)["hits"]) == 2


def test_nothing_relevant_is_an_empty_answer(talked: Service, user: str) -> None:
    found = search(talked, user, "quantum chromodynamics", explain=True)
    assert found["hits"] == []
    assert found["trace"]
    assert {one["stage"] for one in found["trace"]} == {"threshold"}
    assert all("below 0.1" in one["reason"] for one in found["trace"])
    strict = search(talked, user, "pizza", score_threshold=0.99, explain=True)
    assert strict["hits"] == []
    assert {one["reason"] for one in strict["trace"]} == {"its similarity is below 0.99"}


def test_the_recent_few_come_only_where_they_are_asked_for(talked: Service, user: str) -> None:
    recent = search(talked, user, "quantum chromodynamics", fallback_recent=True)
    assert ids(recent) == ["m9", "m8", "m7", "m6", "m5"]
    assert ids(search(talked, user, "quantum chromodynamics", fallback_recent=True, top_k=2)) == ["m9", "m8"]
    assert ids(search(talked, user, "figs", fallback_recent=True))[0] == "m6"


@pytest.mark.parametrize("query", ["figs", "?", "Lisbon", "👍", "a"])
def test_a_short_query_works_like_any_other(talked: Service, user: str, query: str) -> None:
    found = ids(search(talked, user, query))
    assert (found[:1] or [None])[0] == {"figs": "m6", "Lisbon": "m2"}.get(query, (found[:1] or [None])[0])


# Sessions, budgets, excerpts.


def test_a_hit_is_expanded_to_its_session(talked: Service, user: str) -> None:
    found = search(talked, user, "Lisbon", top_k=1, expand="thread", explain=True)
    assert ids(found) == ["m2", "m3", "m4", "m5"]
    stages = {one["id"]: one["stage"] for one in found["trace"]}
    assert sorted(stages[hit["id"]] for hit in found["hits"]) == ["selected", "session", "session", "session"]


def cost(hit: dict[str, Any]) -> int:
    return -(-len(f"[{hit['created_at'][:10]}] {hit['name'] or hit['role'] or hit['kind']}: {hit['content']}") // 4)


def test_a_budget_is_kept_and_brings_the_neighbours_that_a_hit_needs(talked: Service, user: str) -> None:
    assert len(ids(search(talked, user, "stove", top_k=1))) == 1
    found = search(talked, user, "stove", top_k=1, token_budget=200, explain=True)
    assert ids(found) == ["m8", "m9"]
    assert [one["stage"] for one in found["trace"][:2]] == ["selected", "neighbour"]
    assert sum(map(cost, found["hits"])) <= 200
    small = search(talked, user, "pizza figs Lisbon Hamburg", token_budget=30, explain=True)
    assert sum(map(cost, small["hits"])) <= 30
    assert any(one["stage"] == "budget" for one in small["trace"])


def test_a_long_message_is_given_by_its_best_passages(offline: Service, user: str) -> None:
    padding = " ".join(f"Paragraph {number} is about the weather." for number in range(150))
    text = f"{padding} The password of the cellar is swordfish. {padding}"
    take_in(offline, lines(user, [("2026-03-01T09:00:00Z", "notes", "user", text)]))
    (hit,) = search(offline, user, "cellar password", token_budget=120)["hits"]
    assert hit["excerpt"] is True
    assert "The password of the cellar is swordfish." in hit["content"]
    assert cost(hit) <= 120
    (whole,) = search(offline, user, "cellar password")["hits"]
    assert whole["content"] == text
    assert "excerpt" not in whole


# Explain.


def test_a_trace_tells_each_candidate_s_way(talked: Service, user: str) -> None:
    found = search(talked, user, "the pizza with figs", top_k=1, explain=True)
    trace = {one["id"]: one for one in found["trace"]}
    assert len(trace) == len(found["trace"]) == 10
    (hit,) = found["hits"]
    selected = trace[hit["id"]]
    assert (selected["stage"], selected["reason"]) == ("selected", None)
    assert set(selected) == {"id", "scores", "stage", "reason"}
    assert {"dense", "bm25", "fused", "thread"} <= set(selected["scores"])
    assert selected["scores"]["dense"] == hit["similarity"]
    left_out = [one for one in found["trace"] if one["stage"] != "selected"]
    assert {one["stage"] for one in left_out} == {"rank", "threshold"}
    assert all(one["reason"] for one in left_out)
    assert "trace" not in search(talked, user, "figs")


def test_a_turn_keeps_its_trace(talked: Service, user: str) -> None:
    answered = talked.turn("What about the pizza with figs?", user=user, thread="new", memory={"scope": "user"})
    assert "trace" not in answered["memory"]
    hits = [hit["id"] for hit in answered["memory"]["hits"]]
    stored = talked.get(f"/api/turns/{answered['turn_id']}", user_id=user)
    trace = stored["memory"]["trace"]
    assert [one["id"] for one in trace if one["stage"] == "selected"] == hits
    assert 1 <= len(trace) <= 20
    assert all(set(one) == {"id", "scores", "stage", "reason"} for one in trace)
    assert stored["memory"]["hits"] == answered["memory"]["hits"]


def test_what_the_window_shows_is_not_recalled(offline: Service, user: str) -> None:
    for number in range(6):
        offline.turn(f"Pizza number {number}.", user=user, wait_for_memory=True)
    turn = offline.turn("Pizza number 9.", user=user, memory={"window": 3, "top_k": 50})
    recalled = {hit["content"] for hit in turn["memory"]["hits"] if hit["role"] == "user"}
    assert recalled == {"Pizza number 0.", "Pizza number 1.", "Pizza number 2."}


# Speakers, facts, users.


def test_the_one_who_is_asked_about_comes_first(offline: Service, user: str) -> None:
    said = [
        ("Caroline", "I went hiking in the mountains on Saturday."),
        ("Melanie", "I went hiking by the lake on Saturday."),
        ("Caroline", "We should cook something."),
        ("Melanie", "Yes, soup."),
        ("Caroline", "The weather turns cold."),
        ("Melanie", "Bring a coat then."),
    ]
    body = [
        {"user_id": user, "thread_id": "s1", "role": "user", "name": name, "content": content}
        | {"timestamp": f"2026-03-01T09:00:0{number}Z", "message_id": f"D1:{number}"}
        for number, (name, content) in enumerate(said)
    ]
    take_in(offline, "\n".join(map(json.dumps, body)))
    for name, expected in (("Caroline", "D1:0"), ("Melanie", "D1:1")):
        found = search(offline, user, f"Where did {name} go hiking?")
        assert ids(found)[0] == expected
        assert found["hits"][0]["name"] == name


def test_a_fact_leads_to_the_message_that_taught_it(served: Service, model: FakeOpenAI, user: str) -> None:
    told = "They finally gave me the white coat and the pager."
    teach(
        model, {told: [{**add("surgeon", key="occupation", evidence="white coat"), "statement": "Works as surgeon."}]}
    )
    served.turn(told, user=user, wait_for_memory=True)
    for text in ("Rain again.", "Trains are late.", "Tea is out.", "Cats sleep."):
        served.turn(text, user=user, wait_for_memory=True)
    found = search(served, user, "works as surgeon", kinds=["episode"], score_threshold=-1.0, explain=True)
    assert found["hits"][0]["content"] == told
    assert found["trace"][0]["scores"]["fact"] > 0.5
    facts = search(served, user, "works as surgeon", kinds=["fact"], now=None)
    assert facts["hits"][0]["turn_id"] == found["hits"][0]["turn_id"]


def test_a_fact_is_found_only_while_it_holds(offline: Service, user: str) -> None:
    offline.http.put(f"/api/users/{user}/facts/by-key/drink", json={"value": "tea"})
    assert len(search(offline, user, "drink tea", kinds=["fact"], now=None)["hits"]) == 1
    earlier = search(offline, user, "drink tea", kinds=["fact"], explain=True)
    assert earlier["hits"] == []
    assert [(one["stage"], one["reason"]) for one in earlier["trace"]] == [("gone", "the fact does not hold now")]


def test_tags_choose_facts(offline: Service, user: str) -> None:
    for key, value, tags in (("drink", "tea", ["food", "daily"]), ("meal", "soup", ["food"]), ("pet", "cat", ["home"])):
        path = f"/api/users/{user}/facts/by-key/{key}"
        assert offline.http.put(path, json={"value": value, "tags": tags}).status_code in {200, 201}
    take_in(offline, lines(user))

    def tagged(*tags: str) -> set[str]:
        found = search(offline, user, "tea or soup", tags=tags, score_threshold=-1.0, now=None)
        return {hit["content"] for hit in found["hits"]}

    assert len(tagged("food")) == 2
    assert len(tagged("daily")) == 1
    assert len(tagged("daily", "home")) == 2
    assert tagged("none") == set()


def test_a_reranker_has_the_last_word(tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="the extra `local` is not installed")
    write_cross_encoder(tmp_path / "model", words="what about the pizza with figs my sister baked lisbon")
    with service(tmp_path, RERANKER_PATH=str(tmp_path / "model")) as running:
        take_in(running, lines("ada"))
        found = search(running, "ada", "my sister baked a pizza with figs", top_k=3, explain=True)
        assert ids(found)[0] == "m6"
        for hit, traced in zip(found["hits"], found["trace"], strict=False):
            assert 0 < hit["score"] < 1
            assert (traced["id"], traced["scores"]["relevance"]) == (hit["id"], hit["score"])
        scores = [hit["score"] for hit in found["hits"]]
        assert scores == sorted(scores, reverse=True)


def test_other_users_move_nothing(offline: Service, user: str) -> None:
    take_in(offline, lines(user))
    before = search(offline, user, "the pizza with figs in Lisbon", explain=True)
    foreign = [("2026-03-01T09:00:00Z", "t", "user", f"Pizza with figs, number {number}.") for number in range(500)]
    take_in(offline, lines(f"{user}-b", foreign))
    after = search(offline, user, "the pizza with figs in Lisbon", explain=True)
    assert {**after, "took_ms": 0} == {**before, "took_ms": 0}


def test_hits_come_best_first(talked: Service, user: str) -> None:
    scores = [hit["score"] for hit in search(talked, user, "pizza figs Lisbon", recency_weight=0.05)["hits"]]
    assert len(scores) > 1
    assert all(one >= other for one, other in pairwise(scores))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"timezone": 1}, "timezone"),
        ({"token_budget": 0}, "token_budget"),
        ({"token_budget": "many"}, "token_budget"),
        ({"expand": "user"}, "expand"),
        ({"time": "always"}, "time"),
        ({"now": "yesterday"}, "now"),
        ({"tags": [""]}, "tags.0"),
        ({"tags": ["x"] * 11}, "tags"),
        ({"explain": "yes"}, "explain"),
        ({"fallback_recent": 1}, "fallback_recent"),
        ({"kinds": ["dream"]}, "kinds.0"),
    ],
)
def test_what_is_wrong_is_named(offline: Service, user: str, changes: dict[str, Any], field: str) -> None:
    answer = offline.http.post("/api/memory/search", json={"user_id": user, "query": "tea", **changes})
    assert fields(answer) == [field]


# Why.


def explained(running: Service, user: str, turn_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = running.get(f"/api/turns/{turn_id}", user_id=user, explain="true")
    return shown["explained"]


def test_a_turn_is_explained_with_what_its_search_left_out(talked: Service, user: str) -> None:
    turn_id = talked.turn("the pizza with figs", user=user, memory={"scope": "user", "top_k": 1})["turn_id"]
    stored = talked.get(f"/api/turns/{turn_id}", user_id=user)
    assert "explained" not in stored
    why = explained(talked, user, turn_id)
    assert why["recorded"] is True
    assert [hit["id"] for hit in why["hits"]] == [hit["id"] for hit in stored["memory"]["hits"]]
    assert all(hit["parts"]["fused"] for hit in why["hits"])
    assert why["left_out"]["count"] == len(why["left_out"]["items"]) == 9
    assert all(one["content"] and one["reason"] and one["state"] == "shown" for one in why["left_out"]["items"])
    (entry,) = why["block"]["entries"]
    assert entry["id"] == why["hits"][0]["id"]
    assert entry["line"] in why["block"]["text"]
    assert why["block"]["tokens"] == -(-len(why["block"]["text"]) // 4)


def test_what_was_forgotten_since_is_missing_in_an_explained_turn(talked: Service, user: str) -> None:
    facts = f"/api/users/{user}/facts"
    made = talked.http.put(f"{facts}/by-key/codeword", json={"value": "swordfish"}).json()
    turn_id = talked.turn("What is my codeword?", user=user)["turn_id"]
    (entry,) = [one for one in explained(talked, user, turn_id)["block"]["entries"] if one["kind"] == "fact"]
    assert (entry["id"], entry["line"]) == (made["id"], '- "codeword": "swordfish"')
    assert talked.http.delete(f"{facts}/{made['id']}").status_code == 204
    shown = explained(talked, user, turn_id)
    (entry,) = [one for one in shown["block"]["entries"] if one["kind"] == "fact"]
    assert (entry["state"], entry["line"]) == ("forgotten", "- (forgotten since)")
    assert "swordfish" not in json.dumps(shown["block"])


def test_an_export_carries_what_explains_a_turn(talked: Service, user: str) -> None:
    turn_id = talked.turn("the pizza with figs", user=user, memory={"scope": "user"})["turn_id"]
    before = explained(talked, user, turn_id)
    lines_of = talked.http.get(f"/api/users/{user}/export").text
    assert talked.http.delete(f"/api/users/{user}").status_code == 200
    take_in(talked, lines_of)
    assert explained(talked, user, turn_id) == before
