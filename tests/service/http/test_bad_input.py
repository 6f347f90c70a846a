import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.support.running import Service
from tests.service.support.shapes import check_turn, fields, refused

LIMIT = 2_500_000
MARK = "zebra-crossing"
BAD_IDS = ["", ".", "..", "a" * 129, "a b", "a/b", "a\n", "ä", "a\u0000", "a,b", "%20", 7, None, ["a"], True]
LONE_SURROGATE = b'"\\ud800"'


def body_of(user: str, **fields: Any) -> dict[str, Any]:
    return {"user_id": user, "thread_id": "t1", "message": MARK, **fields}


def post_raw(offline: Service, content: bytes | Iterator[bytes], kind: str = "application/json") -> httpx.Response:
    return offline.http.post("/api/agent", content=content, headers={"content-type": kind})


def with_raw(user: str, field: str, value: bytes) -> bytes:
    """Return a good body with one more field, as these bytes."""
    return json.dumps(body_of(user)).encode()[:-1] + b', "' + field.encode() + b'": ' + value + b"}"


def check_nothing_stored(offline: Service, user: str) -> None:
    assert offline.get("/api/threads/t1/messages", user_id=user)["items"] == []


@pytest.mark.parametrize("field", ["user_id", "thread_id", "turn_id"])
def test_bad_ids_are_refused_by_name(offline: Service, user: str, field: str) -> None:
    for value in BAD_IDS:
        if field == "turn_id" and value is None:
            continue  # None: one is generated
        answer = offline.http.post("/api/agent", json=body_of(user, **{field: value}))
        assert fields(answer) == [field], value
    check_nothing_stored(offline, user)


def test_the_longest_and_oddest_ids_are_taken(offline: Service) -> None:
    for value in ("a" * 128, "...", "A.z_0:9@-", "-", "__proto__"):
        answer = offline.http.post(
            "/api/agent", json={"user_id": value, "thread_id": value, "turn_id": value, "message": "Hello."}
        )
        assert check_turn(answer.json())["turn_id"] == value
        assert len(offline.get(f"/api/threads/{value}/messages", user_id=value)["items"]) == 2


@pytest.mark.parametrize("field", ["user_id", "thread_id", "message"])
def test_what_is_missing_is_named(offline: Service, user: str, field: str) -> None:
    body = body_of(user)
    del body[field]
    answer = offline.http.post("/api/agent", json=body)
    assert refused(answer, 422, "invalid_request")["details"] == [{"field": field, "problem": "is missing"}]


@pytest.mark.parametrize("message", ["", "a" * 200_001, "a\u0000b", 5, None, ["a"], {"text": "a"}, True])
def test_bad_messages_are_refused_and_never_echoed(offline: Service, user: str, message: Any) -> None:
    answer = offline.http.post("/api/agent", json=body_of(user, message=message))
    assert fields(answer) == ["message"]
    assert "aaaa" not in answer.text
    check_nothing_stored(offline, user)


def test_the_longest_message_is_taken_whole(offline: Service, user: str) -> None:
    message = "é" * 200_000
    offline.turn(message, user=user)
    assert offline.get("/api/threads/t1/messages", user_id=user)["items"][0]["content"] == message


def test_characters_count_and_not_bytes(offline: Service, user: str) -> None:
    offline.turn("😀" * 200_000, user=user)
    assert fields(offline.http.post("/api/agent", json=body_of(user, message="😀" * 200_001))) == ["message"]


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("message", LONE_SURROGATE, "message"),
        ("user_id", LONE_SURROGATE, "user_id"),
        ("metadata", b'{"a": ' + LONE_SURROGATE + b"}", "metadata"),
        ("metadata", b"{" + LONE_SURROGATE + b": 1}", "metadata"),
        ("metadata", b'{"a": ["\\u0000"]}', "metadata"),
        ("metadata", b'{"\\u0000": 1}', "metadata"),
        ("metadata", b'{"a": NaN}', "metadata"),
        ("metadata", b'{"a": [-Infinity]}', "metadata"),
        ("metadata", b'{"a": 1e999}', "metadata"),
        ("metadata", b'{"a":' * 25 + b"1" + b"}" * 25, "metadata"),
        ("memory", b'{"score_threshold": NaN}', "memory.score_threshold"),
        ("memory", b'{"recency_weight": Infinity}', "memory.recency_weight"),
        ("memory", b'{"window": 1e3}', "memory.window"),
    ],
)
def test_what_no_store_can_hold_is_refused(offline: Service, user: str, field: str, value: bytes, named: str) -> None:
    answer = post_raw(offline, with_raw(user, field, value))
    details = refused(answer, 422, "invalid_request")["details"]
    assert {detail["field"].partition(".{")[0][: len(named)] for detail in details} == {named}
    assert MARK not in answer.text
    check_nothing_stored(offline, user)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", "yes"),
        ("stream", 1),
        ("stream", None),
        ("wait_for_memory", "true"),
        ("wait_for_memory", 0),
        ("metadata", "x"),
        ("metadata", []),
        ("metadata", None),
        ("memory", "off"),
        ("memory", []),
        ("memory", None),
        ("model", "gpt"),
        ("Message", "x"),
        ("filter", {"user_id": "bob"}),
        ("body", 1),
        ("path", 1),
    ],
)
def test_wrong_types_and_unknown_fields_are_named(offline: Service, user: str, field: str, value: Any) -> None:
    answer = offline.http.post("/api/agent", json=body_of(user, **{field: value}))
    assert fields(answer) == [field]
    assert MARK not in answer.text
    check_nothing_stored(offline, user)


BAD_OPTIONS: list[tuple[str, list[Any]]] = [
    ("enabled", ["yes", 1, None, "true"]),
    ("scope", ["all", "", "USER", None, 1]),
    ("window", [-1, 51, "10", True, 1.5, 10.0, [1]]),
    ("top_k", [-1, 51, "5", False, 2.5, {}]),
    ("score_threshold", [-1.01, 1.01, "0.5", True, []]),
    ("recency_weight", [-0.01, 1.01, "0.5", True]),
    ("mmr_lambda", [-0.01, 2, "0.5", False]),
    ("filter", [{}, [], "x", 1]),
    ("query", ["x"]),
]


@pytest.mark.parametrize(("option", "values"), BAD_OPTIONS)
def test_memory_options_out_of_bounds_are_named(offline: Service, user: str, option: str, values: list[Any]) -> None:
    for value in values:
        answer = offline.http.post("/api/agent", json=body_of(user, memory={option: value}))
        assert fields(answer) == [f"memory.{option}"], value
    check_nothing_stored(offline, user)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 0, "top_k": 0, "score_threshold": -1, "recency_weight": 0, "mmr_lambda": 0},
        {"window": 50, "top_k": 50, "score_threshold": 1, "recency_weight": 1, "mmr_lambda": 1},
        {"score_threshold": 0.25, "recency_weight": 0.5, "mmr_lambda": 0.75, "scope": "user"},
        {"window": None, "top_k": None, "score_threshold": None, "recency_weight": None, "mmr_lambda": None},
        {},
    ],
)
def test_options_within_bounds_are_taken(offline: Service, user: str, options: dict[str, Any]) -> None:
    offline.turn("I like jazz.", user=user, wait_for_memory=True)
    assert check_turn(offline.turn("Do I like jazz?", user=user, memory=options))["memory"]["degraded"] == []


def test_all_that_is_wrong_is_named_at_once(offline: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "a b", "message": "", "memory": {"window": 99, "x": 1}, "y": 2}
    named = fields(offline.http.post("/api/agent", json=body))
    assert sorted(named) == ["memory.window", "memory.x", "message", "thread_id", "y"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"user_id": "ada",}',
        b"{'user_id': 'ada'}",
        b"[]",
        b'"text"',
        b"null",
        b"7",
        b"NaN",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b'{"message": "\xff"}',
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b"9" * 5_000,
    ],
    ids=lambda content: repr(content[:12]),
)
def test_bodies_that_are_no_object_are_refused(offline: Service, content: bytes) -> None:
    assert fields(post_raw(offline, content)) == ["body"]


def test_metadata_nested_too_deep_is_refused(offline: Service, user: str) -> None:
    deep = post_raw(offline, with_raw(user, "metadata", b'{"a":' * 100_000 + b"1" + b"}" * 100_000))
    assert fields(deep) in (["body"], ["metadata"])
    check_nothing_stored(offline, user)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"])
def test_another_content_type_is_refused(offline: Service, user: str, kind: str) -> None:
    answer = post_raw(offline, json.dumps(body_of(user)).encode(), kind)
    assert fields(answer) == ["body"]
    assert MARK not in answer.text


def padded(user: str, size: int) -> bytes:
    """Return a good body of exactly so many bytes."""
    empty = json.dumps(body_of(user, metadata={"pad": ""})).encode()
    return empty[:-3] + b"x" * (size - len(empty)) + empty[-3:]


def chunks(content: bytes) -> Iterator[bytes]:
    """Yield the content in pieces, which go out without a length."""
    for start in range(0, len(content), 65_536):
        yield content[start : start + 65_536]


def test_a_body_at_the_limit_is_taken(offline: Service, user: str) -> None:
    assert len(padded(user, LIMIT)) == LIMIT
    for content in (padded(user, LIMIT), chunks(padded(user, LIMIT))):
        assert check_turn(post_raw(offline, content).json())["reply"]


@pytest.mark.parametrize("size", [LIMIT + 1, 2 * LIMIT])
def test_a_body_over_the_limit_is_too_large(offline: Service, user: str, size: int) -> None:
    for content in (padded(user, size), chunks(padded(user, size))):
        refused(post_raw(offline, content), 413, "too_large")
    check_nothing_stored(offline, user)


@pytest.mark.parametrize(
    ("path", "query", "named"),
    [
        ("/api/turns/x", {}, "user_id"),
        ("/api/turns/x", {"user_id": ".."}, "user_id"),
        ("/api/turns/x", {"user_id": "a\x00"}, "user_id"),
        ("/api/turns/a%20b", {"user_id": "ada"}, "turn_id"),
        ("/api/turns/a%00", {"user_id": "ada"}, "turn_id"),
        ("/api/turns/%ED%A0%80", {"user_id": "ada"}, "turn_id"),
        ("/api/threads/t1/messages", {}, "user_id"),
        ("/api/threads/a,b/messages", {"user_id": "ada"}, "thread_id"),
        ("/api/threads/t1/messages", {"user_id": "ada", "limit": "0"}, "limit"),
        ("/api/threads/t1/messages", {"user_id": "ada", "limit": "201"}, "limit"),
        ("/api/threads/t1/messages", {"user_id": "ada", "limit": "many"}, "limit"),
        ("/api/threads/t1/messages", {"user_id": "ada", "limit": ""}, "limit"),
        ("/api/threads/t1/messages", {"user_id": "ada", "format": "xml"}, "format"),
        ("/api/threads/t1/messages", {"user_id": "ada", "cursor": "!!!"}, "cursor"),
        ("/api/threads/t1/messages", {"user_id": "ada", "cursor": "eHh4"}, "cursor"),
        ("/api/threads/t1/messages", {"user_id": "ada", "cursor": "LTE"}, "cursor"),
        ("/api/threads/t1/messages", {"user_id": "ada", "cursor": "é"}, "cursor"),
        ("/api/threads/t1/messages", {"user_id": "ada", "cursor": "A" * 501}, "cursor"),
        ("/api/users/a%20b/facts", {}, "user_id"),
        ("/api/users/ada/facts", {"limit": "0"}, "limit"),
        ("/api/users/ada/facts", {"limit": "201"}, "limit"),
        ("/api/users/ada/facts", {"cursor": "!!!"}, "cursor"),
        ("/api/users/ada/facts", {"cursor": "AAAA"}, "cursor"),
        ("/api/users/ada/facts", {"cursor": "eHh4"}, "cursor"),
    ],
)
def test_reads_with_bad_input_name_the_field(offline: Service, path: str, query: dict[str, str], named: str) -> None:
    assert fields(offline.http.get(path, params=query)) == [named]


@pytest.mark.parametrize("path", ["/api", "/api/nothing", "/api/turns/", "/api/agents", "/%00", "/v2"])
def test_unknown_routes_answer_in_the_form(offline: Service, path: str) -> None:
    refused(offline.http.get(path, params={"user_id": "ada"}), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/agent"),
        ("DELETE", "/api/agent"),
        ("POST", "/health"),
        ("PUT", "/api/turns/x"),
        ("PATCH", "/health"),
    ],
)
def test_other_methods_answer_in_the_form(offline: Service, method: str, path: str) -> None:
    answer = offline.http.request(method, path, json={})
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"]
