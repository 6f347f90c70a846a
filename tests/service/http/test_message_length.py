"""MAX_MESSAGE_CHARACTERS bounds a message at every door; what does not fit the prompt is cut there alone, visibly."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service
from tests.service.support.shapes import refused

MOST = 2_000
PROMPT_TOKENS = 100
JSON = {"Content-Type": "application/json"}
BODY = 12 * MOST + 100_000
CUT = " […]"


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory, fake: FakeOpenAI) -> Iterator[Service]:
    """Yield a service that takes short messages, and shows its model even less of them."""
    settings = model_settings(fake.url, EMBEDDING_MODEL="lexical", MAX_MESSAGE_CHARACTERS=str(MOST))
    with service(
        tmp_path_factory.mktemp("short"), **settings, MESSAGE_TOKENS=str(PROMPT_TOKENS), WINDOW_TOKENS="60"
    ) as running:
        yield running


def asked(path: str, user: str, text: str) -> tuple[dict[str, Any], str]:
    """Return what a request with this message is, and the field that has it."""
    match path:
        case "/api/agent":
            return {"user_id": user, "thread_id": "t1", "message": text}, "message"
        case "/api/memory/search":
            return {"user_id": user, "query": text}, "query"
        case _:
            return {"user_id": user, "content": text}, "content"


@pytest.mark.parametrize("path", ["/api/agent", "/api/memory/search", "/api/memory/add"])
def test_a_message_may_have_so_many_characters(short: Service, user: str, path: str) -> None:
    body, _ = asked(path, user, "\U0001f600" * MOST)
    assert short.http.post(path, json=body).status_code == 200
    body, field = asked(path, user, "a" * (MOST + 1))
    error = refused(short.http.post(path, json=body), 422, "invalid_request")
    assert error["details"] == [{"field": field, "problem": "must have 1 to 2,000 characters"}]


def test_nothing_is_stored_of_a_longer_one(short: Service, user: str) -> None:
    body, _ = asked("/api/agent", user, "a" * (MOST + 1))
    for stream in (False, True):
        refused(short.http.post("/api/agent", json={**body, "stream": stream}), 422, "invalid_request")
    assert short.get("/api/threads", user_id=user)["items"] == []


def test_openais_door_has_the_bound(short: Service, user: str) -> None:
    body = {"user": user, "messages": [{"role": "user", "content": "a" * (MOST + 1)}]}
    error = short.http.post("/v1/chat/completions", json=body).json()["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "messages[0].content")
    body["messages"] = [{"role": "user", "content": "a" * MOST}]
    assert short.http.post("/v1/chat/completions", json=body).status_code == 200


def test_mcp_has_the_bound(short: Service, user: str) -> None:
    def searched(query: str) -> dict[str, Any]:
        call = {"name": "search_memory", "arguments": {"query": query}}
        headers = {"Accept": "application/json, text/event-stream", "X-Memory-User": user}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answer: dict[str, Any] = short.http.post("/mcp", json=body, headers=headers).json()
        return answer

    assert "query must have 1 to 2,000 characters" in json.dumps(searched("a" * (MOST + 1)))
    assert "characters" not in json.dumps(searched("a" * MOST))


def test_imports_have_the_bound(short: Service, user: str) -> None:
    def line(text: str) -> str:
        said = {"user_id": user, "thread_id": "t1", "role": "user", "content": text, "timestamp": 1_700_000_000}
        return json.dumps(said) + "\n"

    answer = short.http.post("/api/import", content=line("a" * MOST) + line("b" * (MOST + 1))).json()
    assert (answer["imported"], [failed["error"] for failed in answer["failed"]]) == (
        1,
        ["content must have 1 to 2,000 characters."],
    )
    whole = next(json.loads(one) for one in short.http.get(f"/api/users/{user}/export").text.splitlines())
    exported = {**whole, "content": "a" * (MOST + 1), "turn_id": "another", "message_id": None}
    answer = short.http.post("/api/import", content=json.dumps(exported)).json()
    assert [failed["error"] for failed in answer["failed"]] == ["content must have 1 to 2,000 characters."]


@pytest.mark.parametrize("told", [True, False])
def test_a_body_may_have_twelve_bytes_a_character_and_some_more(short: Service, user: str, told: bool) -> None:
    body, _ = asked("/api/agent", user, "Hello.")
    raw = json.dumps(body).encode()

    def posted(size: int) -> int:
        padded = raw + b" " * (size - len(raw))
        return short.http.post("/api/agent", content=padded if told else iter([padded]), headers=JSON).status_code

    assert [posted(BODY), posted(BODY + 1)] == [200, 413]


def test_the_bound_is_described(short: Service) -> None:
    schemas = short.get("/openapi.json")["components"]["schemas"]
    assert schemas["AgentRequest"]["properties"]["message"]["maxLength"] == MOST
    assert schemas["SearchRequest"]["properties"]["query"]["maxLength"] == MOST
    assert schemas["LessonRequest"]["properties"]["content"]["maxLength"] == MOST


def test_what_does_not_fit_is_cut_in_the_prompt_alone(short: Service, fake: FakeOpenAI, user: str) -> None:
    message = f"{user} likes tea. " + "word " * 300
    turn = short.turn(message, user=user, wait_for_memory=True)
    (chat,) = [body for body in fake.chats if user in str(body["messages"][-1]["content"])]
    shown = chat["messages"][-1]["content"]
    assert len(shown) == 4 * PROMPT_TOKENS
    assert message.startswith(shown.removesuffix(CUT))
    (extraction,) = [body for body in fake.extractions if user in str(body)]
    assert CUT in str(extraction["messages"][-1]["content"])
    assert message not in str(extraction["messages"][-1]["content"])
    stored = short.get("/api/threads/t1/messages", user_id=user)["items"]
    assert stored[0]["content"] == message

    short.turn("And now?", user=user)
    window = fake.chats[-1]["messages"][1]["content"]
    assert window.endswith(CUT)
    assert message.startswith(window.removesuffix(CUT))
    assert turn["reply"]
