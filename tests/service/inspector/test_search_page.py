"""The playground of searches, without JavaScript."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.service.support.running import Service
from tests.service.support.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>{{ 7 * 7 }}'


@pytest.fixture
def visitor(offline: Service, user: str) -> Iterator[Visitor]:
    for number in range(4):
        offline.turn(f"Pizza number {number} had figs on it.", user=user, thread=f"t{number}", wait_for_memory=True)
    with Visitor(offline) as visitor:
        yield visitor


def found(visitor: Visitor, user: str, **query: Any) -> str:
    return visitor.page(f"/users/{user}/search?{urlencode(query, doseq=True)}")


def test_a_search_shows_its_hits_and_how_it_came_to_them(offline: Service, visitor: Visitor, user: str) -> None:
    assert "Nothing was looked for yet." in visitor.page(f"/users/{user}/search")
    page = found(visitor, user, query="pizza with figs", top_k=2)
    assert "2 hits in" in page
    assert "2 others score higher" in page
    asked = {"user_id": user, "query": "pizza with figs", "top_k": 2}
    for hit in offline.http.post("/api/memory/search", json=asked).json()["hits"]:
        assert hit["content"] in page
        assert f"/users/{user}/turns/{hit['turn_id']}" in page
    assert "Left out at <strong>rank</strong>" in page
    for label in ("all channels", "by the user"):
        assert f'<span class="bar-label">{label}</span>' in page
    assert "&#34;top_k&#34;: 2" in page


def test_all_options_are_kept_in_the_address_and_obeyed(visitor: Visitor, user: str) -> None:
    options = {
        "thread_id": "t1",
        "top_k": "3",
        "kinds": ["episode", "summary"],
        "score_threshold": "-1",
        "recency_weight": "0.5",
        "mmr_lambda": "1",
        "token_budget": "500",
        "domains": "food, home",
        "now": "2026-01-31T09:30:00Z",
        "timezone": "Europe/Berlin",
        "time": "ignore",
        "fallback_recent": "1",
    }
    page = found(visitor, user, query="figs", **options)
    assert "Pizza number 1" in page
    assert "Pizza number 2" not in page
    for name in ("thread_id", "top_k", "score_threshold", "token_budget", "domains", "now", "timezone"):
        assert f'name="{name}" type=' in page
        assert f'value="{options[name]}"' in page
    assert page.count(" checked>") == 2
    assert '<option value="ignore" selected>' in page
    assert "with recency" in page
    for option in ('"mmr_lambda": 1.0', '"kinds": [', '"fallback_recent": true', '"domains": ['):
        assert option.replace('"', "&#34;") in page


def test_two_settings_stand_side_by_side(visitor: Visitor, user: str) -> None:
    alone = found(visitor, user, query="figs", top_k=3)
    assert "Second settings" not in alone
    same = found(visitor, user, query="figs", top_k=3, compare=1)
    assert same.count("3 hits in") == 2, "the second settings begin as the first"
    two = found(visitor, user, query="figs", top_k=3, compare=1, second_top_k=1, second_kinds="episode")
    assert "3 hits in" in two
    assert "1 hit in" in two


def test_what_is_wrong_is_said_beside_the_form(visitor: Visitor, user: str) -> None:
    wrong = {"query": "figs", "top_k": "51", "timezone": "Nowhere", "score_threshold": "much", "thread_id": "a b"}
    answer = visitor.get(f"/users/{user}/search?{urlencode(wrong)}")
    assert answer.status_code == 422
    assert "The request is not valid: see thread_id, top_k, score_threshold, timezone." in answer.text
    assert 'value="Nowhere"' in answer.text
    one = visitor.get(f"/users/{user}/search?{urlencode({'query': 'figs', 'compare': 1, 'second_top_k': 'x'})}")
    assert one.status_code == 422
    assert "hits in" in one.text, "the first setting is valid"
    assert visitor.get(f"/users/{user}/search?{urlencode({'query': 'x' * 2_001})}").status_code == 422


def test_hostile_text_is_text(offline: Service, visitor: Visitor, user: str) -> None:
    offline.turn(HOSTILE, user=user, wait_for_memory=True)
    page = found(visitor, user, query=HOSTILE, tags=HOSTILE, compare=1, second_top_k=3)
    assert "<script>alert" not in page
    assert "{{ 7 * 7 }}" in page


def test_nothing_is_found_where_nothing_is_relevant(visitor: Visitor, user: str) -> None:
    page = found(visitor, user, query="quantum chromodynamics", score_threshold="0.99")
    assert "Nothing was found." in page
    assert "Not relevant enough" in page
    assert "0 hits in" in page
