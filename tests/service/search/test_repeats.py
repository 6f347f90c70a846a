"""Equal texts of one speaker are one hit."""

from collections.abc import Sequence
from typing import Any

from tests.service.search.test_recall import lines, search, take_in
from tests.service.support.running import Service
from tests.service.support.shapes import TRACED, check

Talk = Sequence[tuple[str, str, str, str]]
TEA = ("I drink green tea.", "i drink  GREEN tea!")
COFFEE = ("2026-01-01T08:00:00Z", "coffee", "user", "With milk I drink my tea and coffee.")


def said(count: int, texts: Sequence[str], role: str = "user") -> Talk:
    """Say the texts by turns, each in a thread of its own, a minute apart."""
    return [
        (f"2026-02-0{1 + place // 60}T09:{place % 60:02}:00Z", f"t{place}", role, texts[place % len(texts)])
        for place in range(count)
    ]


def test_what_one_speaker_says_in_seven_threads_is_one_hit(offline: Service, user: str) -> None:
    take_in(offline, lines(user, [COFFEE, *said(7, TEA)]))
    shown = search(offline, user, "green tea", top_k=2, kinds=["episode"], explain=True)
    newest, other = shown["hits"]
    assert (newest["thread_id"], newest["content"]) == ("t6", TEA[0])
    assert (other["content"], other["repeats"]) == (COFFEE[3], None)
    repeats = newest["repeats"]
    assert (repeats["count"], repeats["ids"][0], len(set(repeats["ids"]))) == (7, newest["id"], 7)
    assert (repeats["first"], repeats["last"]) == ("2026-02-01T09:00:00.000Z", "2026-02-01T09:06:00.000Z")
    merged = [check(TRACED, one) for one in shown["trace"] if one["stage"] == "repeat"]
    assert {one["id"] for one in merged} == set(repeats["ids"][1:])
    assert all(newest["id"] in one["reason"] for one in merged)


def test_another_speaker_or_kind_is_no_repeat_and_a_thread_has_its_own(offline: Service, user: str) -> None:
    take_in(offline, lines(user, [*said(1, TEA), ("2026-02-01T09:00:05Z", "t0", "assistant", TEA[0])]))
    offline.http.post("/api/memory", json={"user_id": user, "content": TEA[0]}).raise_for_status()
    assert len(search(offline, user, "green tea")["hits"]) >= 2
    assert all(hit["repeats"] is None for hit in search(offline, user, "green tea")["hits"])
    take_in(offline, lines(f"{user}-2", said(3, TEA)))
    (only,) = search(offline, f"{user}-2", "green tea", thread_id="t1")["hits"]
    assert (only["thread_id"], only["repeats"]) == ("t1", None)


def test_a_text_that_is_said_all_the_time_leaves_room_for_others(offline: Service, user: str) -> None:
    take_in(offline, lines(user, [COFFEE, *said(200, TEA[:1])]))
    found: list[dict[str, Any]] = search(offline, user, "I drink green tea", kinds=["episode"])["hits"]
    assert [hit["content"] for hit in found] == [TEA[0], COFFEE[3]]
    assert (found[0]["repeats"]["count"], len(found[0]["repeats"]["ids"])) == (200, 50)


def test_for_want_of_a_hit_the_newest_are_given_without_their_repeats(offline: Service, user: str) -> None:
    take_in(offline, lines(user, [COFFEE, *said(7, TEA)]))
    far = {"score_threshold": 1.0, "fallback_recent": True}
    newest, other = search(offline, user, "zebra quux", **far)["hits"]
    assert (newest["thread_id"], newest["repeats"]["count"]) == ("t6", 7)
    assert (other["content"], other["repeats"]) == (COFFEE[3], None)


def test_the_trace_of_a_period_shows_what_was_merged(offline: Service, user: str) -> None:
    take_in(offline, lines(user, said(7, TEA)))
    for coverage in ("auto", "on", "off"):
        query = "What did I say on 1 February 2026?"
        shown = search(offline, user, query, top_k=10, coverage=coverage, explain=True)
        (only,) = shown["hits"]
        merged = {one["id"]: one["reason"] for one in shown["trace"] if one["stage"] == "repeat"}
        assert merged.keys() == set(only["repeats"]["ids"][1:])
        assert set(merged.values()) == {f"{only['id']} says the same, and is newer"}


def test_a_near_repeat_makes_room_and_the_trace_says_so(offline: Service, user: str) -> None:
    ran = ("I ran five miles in the park on day one.", "I ran five miles in the park on day two.")
    other = ("2026-02-03T09:00:00Z", "t3", "user", "The park where I ran has five gates, miles from here.")
    take_in(offline, lines(user, [*said(2, ran), other]))
    shown = search(offline, user, "ran five miles in the park", top_k=3, kinds=["episode"], explain=True)
    losses = {one["id"]: one["scores"].get("near_repeat", 0.0) for one in shown["trace"]}
    by_text = {hit["content"]: hit for hit in shown["hits"]}
    best, worse = sorted((by_text[text] for text in ran), key=lambda hit: -hit["score"])
    assert losses[best["id"]] == 0.0
    assert -0.1 < losses[worse["id"]] <= -0.05
    assert [best["repeats"], worse["repeats"]] == [None, None]
    (traced,) = (check(TRACED, one) for one in shown["trace"] if one["id"] == worse["id"])
    raw = {"dense", "context", "bm25", "fact"}
    assert abs(sum(part for name, part in traced["scores"].items() if name not in raw) - worse["score"]) < 1e-4
