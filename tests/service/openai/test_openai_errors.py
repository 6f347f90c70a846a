"""Errors under /v1, in OpenAI's form: those of the framework and the guards too."""

from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.chats import Chats, error_of, user
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import texts
from tests.service.support.stopped_start import stopped_start

Json = dict[str, Any]


def shown(answer: httpx.Response, status: int) -> Json:
    assert answer.status_code == status, answer.text
    whole: Json = answer.json()
    assert set(whole) == {"error"}
    error: Json = whole["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"].endswith(".")
    return error


def post(running: Service, **body: Any) -> httpx.Response:
    return running.http.post("/v1/chat/completions", json=body)


HI = [{"role": "user", "content": "Hi."}]
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
INVALID: list[tuple[Json, str]] = [
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "Hi."}, "messages"),
    ({"messages": ["Hi."]}, "messages[0]"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
    ({"messages": [*HI, {"role": "king", "content": "x"}]}, "messages[1].role"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "messages[0].content[0].text"),
    ({"messages": [{"role": "user", "content": "x" * 200_001}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": "\x00"}]}, "messages[0].content"),
    ({"messages": [*HI, {"role": "assistant", "tool_calls": [CALL]}]}, "messages[1].tool_calls"),
    ({"user": None}, "user"),
    ({"user": "a b"}, "user"),
    ({"user": 7}, "user"),
    ({"user": ""}, "user"),
    ({"memory_id": "a/b"}, "memory_id"),
    ({"memory_id": ".."}, "memory_id"),
    ({"memory_top_k": 51}, "memory_top_k"),
    ({"memory_top_k": "5"}, "memory_top_k"),
    ({"memory_scope": "world"}, "memory_scope"),
    ({"memory_recency_weight": 2}, "memory_recency_weight"),
    ({"memory_score_threshold": -2}, "memory_score_threshold"),
    ({"memory_domains": "x"}, "memory_domains"),
    ({"n": 2}, "n"),
    ({"n": 0}, "n"),
    ({"stream": "yes"}, "stream"),
    ({"temperature": "hot"}, "temperature"),
    ({"stop": 5}, "stop"),
    ({"tool_choice": "any"}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [{"type": "function", "function": {"name": "search_memory"}}]}, "tools[0].function.name"),
    ({"tools": "x"}, "tools"),
    ({"model": 5}, "model"),
]


@pytest.mark.parametrize(("wrong", "param"), INVALID)
def test_what_is_invalid_names_its_param(offline: Service, user: str, wrong: Json, param: str) -> None:
    error = shown(post(offline, **{"messages": HI, "user": user, **wrong}), 400)
    assert (error["param"], error["type"], error["code"]) == (param, "invalid_request_error", "invalid_request")


@pytest.mark.parametrize(
    ("headers", "param"),
    [
        ({"X-Memory-User": "a b"}, "X-Memory-User"),
        ({"X-Memory-User": "ada", "X-Memory-Id": "a/b"}, "X-Memory-Id"),
        ({"X-Memory-User": "ada", "X-Memory-Top-K": "many"}, "X-Memory-Top-K"),
        ({"X-Memory-User": "ada", "X-Memory-Scope": "all"}, "X-Memory-Scope"),
        ({"X-Memory-User": "ada", "X-Memory-Score-Threshold": "nan"}, "X-Memory-Score-Threshold"),
        ({"X-Memory-User": "ada", "Idempotency-Key": "a b"}, "Idempotency-Key"),
    ],
)
def test_what_is_invalid_in_a_header_names_the_header(offline: Service, headers: dict[str, str], param: str) -> None:
    answer = offline.http.post("/v1/chat/completions", json={"messages": HI}, headers=headers)
    assert shown(answer, 400)["param"] == param


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": NaN}', b"\xff\xfe", b'"text"', b"[" * 100_000])
def test_what_is_no_request_at_all_is_400(offline: Service, body: bytes) -> None:
    answer = offline.http.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert shown(answer, 400)["type"] == "invalid_request_error"


@pytest.mark.parametrize("text", ['"\\ud800"', '[{"role": "user", "content": "\\ud800"}]'])
def test_lone_surrogates_are_refused(offline: Service, text: str) -> None:
    body = f'{{"messages": {text}, "user": "ada"}}'.encode()
    answer = offline.http.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert shown(answer, 400)["param"] == "messages"


def test_the_frameworks_and_the_guards_errors_have_the_same_form(offline: Service) -> None:
    http = offline.http
    assert shown(http.get("/v1/nothing"), 404)["code"] == "not_found"
    assert shown(http.get("/v1"), 404)["code"] == "not_found"
    assert shown(http.get("/v1/chat/completions"), 405)["code"] == "method_not_allowed"
    assert shown(http.post("/v1/chat/completions", content=b"x" * 2_500_001), 413)["code"] == "too_large"
    assert shown(http.get("/v1/models", headers={"Host": "evil.example"}), 421)["code"] == "foreign_host"
    assert shown(http.get("/v1/models", headers={"Origin": "https://evil.example"}), 403)["code"] == "foreign_origin"
    assert set(http.get("/api/nothing").json()["error"]) == {"code", "message", "details", "turn_id"}
    assert set(http.get("/v1x").json()["error"]) == {"code", "message", "details", "turn_id"}


@pytest.mark.parametrize(
    ("status", "expected", "kind"), [(500, 502, openai.InternalServerError), (401, 502, openai.InternalServerError)]
)
def test_a_provider_that_fails_is_502(
    model: FakeOpenAI, chats: Chats, status: int, expected: int, kind: type[openai.APIStatusError]
) -> None:
    model.fail(status, times=-1, path="/chat/completions")
    with pytest.raises(kind) as raised:
        chats.ask(user("Hello."))
    assert (raised.value.status_code, error_of(raised.value)["type"]) == (expected, "server_error")


def test_what_the_provider_refuses_of_the_request_is_400(model: FakeOpenAI, chats: Chats) -> None:
    model.fail(400, times=-1, path="/chat/completions")
    with pytest.raises(openai.BadRequestError) as raised:
        chats.ask(user("Hello."), temperature=99.0)
    assert error_of(raised.value)["code"] == "invalid_request"


def test_a_busy_thread_is_409(tmp_path: Path, fake: FakeOpenAI) -> None:
    with (
        service(tmp_path, **model_settings(fake.url, THREAD_WAIT_SECONDS="0.2")) as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0, timeout=20) as client,
    ):
        chats = Chats(client, "ada")
        fake.script("A long story.")
        fake.piece_seconds = 0.5
        with chats.stream(user("Tell.")) as chunks:
            next(iter(chunks))
            with pytest.raises(openai.ConflictError) as raised:
                chats.ask(user("Now."))
        assert error_of(raised.value)["code"] == "thread_busy"
        fake.piece_seconds = 0.0


def test_a_retry_of_an_unanswered_request_is_the_same_turn(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    chats.ask(user("Before."))
    model.fail(500, times=-1, path="/chat/completions")
    for _ in range(3):
        with pytest.raises(openai.InternalServerError):
            chats.ask(user("Before."), {"role": "assistant", "content": "All right."}, user("Hello."))
    model.recover()
    chats.ask(user("Before."), {"role": "assistant", "content": "All right."}, user("Hello."))
    assert [text for _, text in texts(served, user=chats.user)] == ["Before.", "All right.", "Hello.", "All right."]


@pytest.mark.parametrize("other", [{"AUTH": "api_key"}, {"PROVIDER": "anthropic", "ANTHROPIC_API_KEY": "x"}])
def test_keys_are_forwarded_only_where_that_is_possible(tmp_path: Path, other: dict[str, str]) -> None:
    assert "FORWARD_API_KEY" in stopped_start(tmp_path, FORWARD_API_KEY="true", **other)


def test_the_callers_key_is_the_chat_models(tmp_path: Path, fake: FakeOpenAI) -> None:
    with (
        service(tmp_path, **model_settings(fake.url, FORWARD_API_KEY="true", EMBEDDING_MODEL="fake-embed")) as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="sk-callers-own", max_retries=0) as client,
    ):
        fake.requests.clear()
        chats = Chats(client, "ada")
        answer = chats.ask(user("my pet is cat"), model="fake-embed")
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chats.stream(user("Hm?"))) == "All right."
        running.settled(answer.id.removeprefix("chatcmpl-"))
        for request in fake.requests:
            is_own = request.path.endswith("/embeddings") or request.body.get("tool_choice")
            key = "test-key" if is_own else "sk-callers-own"
            assert request.headers["authorization"] == f"Bearer {key}", request.path
        assert {request.path for request in fake.requests} >= {"/v1/models", "/v1/chat/completions", "/v1/embeddings"}
        for status, kind in ((401, openai.AuthenticationError), (403, openai.PermissionDeniedError)):
            fake.fail(status, times=1, path="/chat/completions")
            with pytest.raises(kind) as raised:
                chats.ask(user("Refused."), thread="t2")
            assert error_of(raised.value)["type"] in {"authentication_error", "permission_error"}
        fake.fail(401, times=1, path="/chat/completions")
        with pytest.raises(openai.AuthenticationError):
            chats.stream(user("Refused."), thread="t2")
        files = [path for path in running.data_dir.rglob("*") if path.is_file()]
        assert not [path for path in files if b"sk-callers-own" in path.read_bytes()]
        assert "sk-callers-own" not in running.log
