"""The key of an agent, and everything that another agent has of the same user: each door keeps the two apart."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.service.support.commands import recollect
from tests.service.support.locked import bearer, caller, key_caller, owner_token, said
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused
from tests.service.support.walk import CALLS, Ids, ids_of_nothing, steady

Json = dict[str, Any]
ADA = {"user_id": "ada"}
SECRETS = ("heliotrope", "quokka", "marzipan")
MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Memory-User": "ada"}
NOBODYS = ids_of_nothing("ada")
WHOLE = {("delete", "/api/users/{user_id}"), ("get", "/memory-stats")}
"""Operations about all that there is of a user, which the key of an agent must not do: 403."""
TAKEN = {
    ("put", "/api/users/{user_id}/facts/by-key/{key}"): 409,
    ("post", "/api/agent"): 409,
    ("post", "/api/exchanges"): 409,
    ("post", "/api/threads/{thread_id}/messages"): 409,
    ("post", "/api/documents"): 403,
}
"""Operations that would write over the other agent's thing of this name, and how they are refused."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {"DERIVE_THREADS": "true", "DEFAULT_USER": "me"}
    with service(tmp_path_factory.mktemp("walk"), AUTH="api_key", **settings) as running:
        yield running


def agents_key(locked: Service, agent_id: str, *role: str) -> httpx.Client:
    made = recollect(locked, "keys", "create", "--agent", agent_id, *role)
    assert made.returncode == 0, made.stderr
    return caller(locked, made.stdout.strip())


@pytest.fixture(scope="module")
def sales(locked: Service) -> Iterator[httpx.Client]:
    with agents_key(locked, "sales") as client:
        yield client


@pytest.fixture(scope="module")
def support(locked: Service) -> Iterator[httpx.Client]:
    with agents_key(locked, "support") as client:
        yield client


def made(answer: httpx.Response) -> Json:
    assert answer.status_code in {200, 201}, answer.text
    shown: Json = answer.json()
    return shown


@pytest.fixture(scope="module")
def others(sales: httpx.Client) -> Ids:
    """Everything that sales has of Ada; the erasure is of another user."""
    message = f"My codeword is {SECRETS[0]} and my totem is a {SECRETS[1]}."
    turn = said(sales, message, thread="sales-thread", wait_for_memory=True, turn_id="sales-turn", **ADA)
    fact = made(sales.put("/api/users/ada/facts/by-key/codeword", json={"value": SECRETS[0]}))
    note = made(sales.post("/api/memory", json={**ADA, "content": f"Ada likes {SECRETS[2]}."}))
    document = {**ADA, "text": f"All about {SECRETS[2]}.", "source": "secrets"}
    paper = made(sales.post("/api/documents", json=document))
    made(sales.put(f"/api/threads/sales-thread/documents/{paper['id']}", params=ADA))
    made(sales.put("/api/threads/sales-thread/summary", params=ADA, json={"summary": f"Of {SECRETS[1]}s."}))
    made(sales.patch("/api/threads/sales-thread", params=ADA, json={"title": f"On {SECRETS[2]}"}))
    return Ids(
        user_id="ada",
        thread_id="sales-thread",
        session_id="sales-thread",
        turn_id=turn["turn_id"],
        fact_id=fact["id"],
        memory_id=note["id"],
        document_id=paper["id"],
        erasure_id=uuid4().hex,
    )


@pytest.fixture
def kept(locked: Service, others: Ids) -> Iterator[None]:
    """Check that a test leaves all that sales has as it was."""
    asked = {"filter": json.dumps({"agent_id": "sales"})}
    owner = bearer(owner_token(locked))
    before = locked.http.get("/api/users/ada/export", params=asked, headers=owner).text
    assert all(secret in before for secret in SECRETS[:1])
    yield
    after = locked.http.get("/api/users/ada/export", params=asked, headers=owner).text
    assert after.splitlines() == before.splitlines()


def ask(client: httpx.Client, operation: tuple[str, str], ids: Ids) -> httpx.Response:
    method, path = operation
    request = CALLS[operation].request(ids, user_id="ada")
    answer = client.request(method, ids.in_path(path), headers={"X-Memory-User": "ada"}, **request)
    assert not any(secret in answer.text for secret in SECRETS), (operation, answer.text)
    return answer


def test_another_agents_things_are_things_of_nothing(
    locked: Service, support: httpx.Client, others: Ids, kept: None
) -> None:
    paths = locked.get("/openapi.json")["paths"]
    assert {(method, path) for path, methods in paths.items() for method in methods} == set(CALLS)
    for operation, call in sorted(CALLS.items(), key=lambda entry: entry[1].makes):
        if operation == ("post", "/api/import"):
            continue
        answers = [ask(support, operation, ids) for ids in (others, NOBODYS)]
        codes = [answer.status_code for answer in answers]
        if operation in WHOLE:
            assert codes == [403, 403], operation
            assert "agent" in answers[0].json()["error"]["message"]
        elif operation in TAKEN:
            assert codes[0] == TAKEN[operation], (operation, answers[0].text)
        elif not call.makes:
            assert codes == [200 if call.own is None else call.own] * 2, (operation, answers[0].text)
            shown = [steady(answer.text) for answer in answers]
            assert shown[0] == shown[1], operation
        else:
            assert all(answer.is_success for answer in answers), (operation, [one.text for one in answers])


def test_a_shared_thread_is_read_in_part_and_changed_by_nobodys_agent(
    support: httpx.Client, sales: httpx.Client, kept: None
) -> None:
    user = {"user_id": "bea"}
    said(sales, f"I keep a {SECRETS[1]}.", thread="both", **user)
    said(support, "I like tea.", thread="both", **user)
    owned = made(sales.get("/api/threads/both", params=user))
    assert (owned["turns"], owned["messages"]) == (1, 2)
    for method, path, body in (
        ("PATCH", "/api/threads/both", {"title": "Mine"}),
        ("DELETE", "/api/threads/both", None),
        ("POST", "/api/threads/both/archive", None),
        ("PUT", "/api/threads/both/summary", {"summary": "Mine."}),
        ("POST", "/memory/clear/both", None),
    ):
        refused(support.request(method, path, params=user, json=body), 403, "forbidden")
    whole = {"X-Memory-User": "bea"}
    assert support.delete("/v1/conversations/both", headers=whole).status_code == 403
    items = made(support.get("/v1/conversations/both/items", headers=whole))["data"]
    assert SECRETS[1] not in json.dumps(items)
    assert len(items) == 2
    context = made(support.post("/api/context", json={**user, "thread_id": "both", "message": "What do I keep?"}))
    assert SECRETS[1] not in json.dumps(context)
    assert len(context["window"]) == 2
    said(support, "I like rain.", thread="own", **user)
    assert made(support.patch("/api/threads/own", params=user, json={"title": "Mine"}))["title"] == "Mine"
    assert support.delete("/api/threads/own", params=user).status_code == 204


def test_the_turns_of_others_take_no_place_in_an_agents_window(support: httpx.Client, sales: httpx.Client) -> None:
    user = {"user_id": "hal"}
    said(support, "I like tea.", thread="both", **user)
    others = [{**user, "thread_id": "both", "user": {"content": f"Line {n}."}, "learn": False} for n in range(55)]
    made(sales.post("/api/exchanges", json=others))
    context = made(support.post("/api/context", json={**user, "thread_id": "both", "message": "Hello"}))
    assert [message["content"] for message in context["window"]][:1] == ["I like tea."]
    turn = said(support, "And rain.", thread="both", **user)
    assert turn["memory"]["window"] == 1
    explained = made(support.get(f"/api/turns/{turn['turn_id']}", params={**user, "explain": True}))["explained"]
    assert explained["window"]["gone"] == 0
    assert explained["window"]["messages"][0]["content"] == "I like tea."


def test_a_search_for_threads_by_text_tells_nothing_of_what_others_said(
    locked: Service, support: httpx.Client, sales: httpx.Client
) -> None:
    user = {"user_id": "gus"}
    said(sales, f"I keep a {SECRETS[1]}.", thread="both", **user)
    said(support, "I like tea.", thread="both", **user)
    said(support, "I like rain.", thread="own", **user)
    made(support.patch("/api/threads/own", params=user, json={"title": "On weather"}))
    owner = bearer(owner_token(locked))
    titled = locked.http.patch("/api/threads/both", params=user, json={"title": f"On {SECRETS[2]}"}, headers=owner)
    assert titled.status_code == 200

    def found(client: httpx.Client, text: str) -> list[str]:
        shown = made(client.get("/api/threads", params={**user, "text": text}))
        return [thread["thread_id"] for thread in shown["items"]]

    for secret in (SECRETS[1], SECRETS[2]):
        assert found(support, secret) == []
    assert found(sales, SECRETS[1].upper()) == ["both"]
    assert found(support, "LIKE TEA") == ["both"]
    assert found(support, "weather") == ["own"]
    assert found(support, "i like") == ["own", "both"]
    assert found(support, "bot") == ["both"]


def test_a_repeat_of_another_agents_turn_is_a_conflict(support: httpx.Client, others: Ids, kept: None) -> None:
    message = f"My codeword is {SECRETS[0]} and my totem is a {SECRETS[1]}."
    turn = {**ADA, "thread_id": others.thread_id, "turn_id": others.turn_id, "message": message}
    refused(support.post("/api/agent", json=turn), 409, "turn_conflict")
    exchange = {**ADA, "thread_id": others.thread_id, "turn_id": others.turn_id, "user": {"content": message}}
    refused(support.post("/api/exchanges", json=exchange), 409, "turn_conflict")
    begun = {"role": "user", "content": message, "turn_id": others.turn_id, **ADA}
    refused(support.post(f"/api/threads/{others.thread_id}/messages", json=begun), 409, "turn_conflict")
    answered = {"role": "assistant", "content": "Noted.", **ADA}
    refused(support.post(f"/api/threads/{others.thread_id}/messages", json=answered), 422, "invalid_request")
    follows = {"input": "And?", "user": "ada", "previous_response_id": f"resp_{others.turn_id}"}
    answer = support.post("/v1/responses", json=follows)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "previous_response_id")


def test_the_same_chat_with_two_agents_has_two_threads(support: httpx.Client, sales: httpx.Client) -> None:
    chat = {"messages": [{"role": "user", "content": "I like fog."}], "user": "dee"}
    begun = [made(client.post("/v1/chat/completions", json=chat)) for client in (sales, support, support)]
    threads = [answer["memory"]["thread_id"] for answer in begun]
    assert threads[0] != threads[1] == threads[2]
    reply = {"role": "assistant", "content": begun[0]["choices"][0]["message"]["content"]}
    longer = {**chat, "messages": [*chat["messages"], reply, {"role": "user", "content": "And you?"}]}
    goes_on = [made(client.post("/v1/chat/completions", json=longer)) for client in (support, sales)]
    assert [answer["memory"]["thread_id"] for answer in goes_on] == [threads[1], threads[0]]


def test_what_a_turn_replaces_of_another_agents_is_not_quoted(support: httpx.Client, sales: httpx.Client) -> None:
    user = {"user_id": "cyd"}
    said(sales, "I live in Heliotrope.", wait_for_memory=True, **user)
    turn = said(support, "I live in Oslo now.", thread="t2", wait_for_memory=True, **user)
    learned = turn["memory"]["update"]["changes"]
    assert [(change["before"], change["after"]) for change in learned] == [(None, "Oslo")]
    (fact,) = made(support.get("/api/users/cyd/facts"))["items"]
    history = made(support.get(f"/api/users/cyd/facts/{fact['id']}/history"))
    undone = made(support.post(f"/api/turns/{turn['turn_id']}/undo", params=user))
    for shown in (turn, fact, history, undone):
        assert "Heliotrope" not in json.dumps(shown)
    assert made(sales.get("/api/users/cyd/facts"))["facts"] == {"location": "Heliotrope"}


def test_an_agents_import_has_no_lines_of_whole_threads(sales: httpx.Client, others: Ids, kept: None) -> None:
    with_record = {"type": "client_record", **ADA, "thread_id": "t9", "id": "conversation/t9", "kind": "conversation"}
    lines = [
        {"type": "summary", **ADA, "thread_id": others.thread_id, "content": "Mine."},
        {"type": "thread", **ADA, "thread_id": others.thread_id, "title": "Mine"},
        with_record,
    ]
    answer = made(sales.post("/api/import", content="\n".join(map(json.dumps, lines))))
    assert [failed["line"] for failed in answer["failed"]] == [1, 2, 3]


def rpc(client: httpx.Client, method: str, **params: Any) -> Json:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post("/mcp", json=body, headers=MCP)
    assert not any(secret in answer.text for secret in SECRETS), answer.text
    shown: Json = answer.json()["result"]
    return shown


def test_mcp_shows_the_agents_own_things_alone(support: httpx.Client, others: Ids, kept: None) -> None:
    calls = {
        "search_memory": [{"query": "codeword"}, {"query": "totem", "thread_id": others.thread_id}],
        "list_facts": [{}, {"after": others.fact_id}, {"filter": {"agent_id": "sales"}}],
        "forget": [{"id": others.fact_id}, {"id": others.memory_id}, {"key": "codeword"}],
        "add_memory": [{"content": f"Ada likes {SECRETS[2].upper()[:3]}."}],
    }
    assert {tool["name"] for tool in rpc(support, "tools/list")["tools"]} == set(calls)
    for name, arguments in calls.items():
        for given in arguments:
            result = rpc(support, "tools/call", name=name, arguments=given)
            assert bool(result.get("isError")) is (name == "forget"), (name, given, result)
    for resource in rpc(support, "resources/list")["resources"]:
        rpc(support, "resources/read", uri=resource["uri"])


def test_a_fact_that_another_agent_has_is_noted_anew(support: httpx.Client, others: Ids, kept: None) -> None:
    note = {**ADA, "content": f"Ada likes {SECRETS[2]}."}
    written = support.post("/api/memory", json=note)
    assert (written.status_code, written.json()["agent_id"]) == (201, "support")
    assert written.json()["id"] != others.memory_id


def test_an_agents_key_administers_nothing(locked: Service) -> None:
    refused_key = recollect(locked, "keys", "create", "--agent", "support", "--role", "admin")
    assert refused_key.returncode != 0
    assert "agent_id" in refused_key.stderr


def test_a_tenant_reaches_its_own_users_at_every_door(locked: Service, sales: httpx.Client, others: Ids) -> None:
    with key_caller(locked, "user:acme:*") as acme:
        for operation, call in CALLS.items():
            method, path = operation
            answers = [
                acme.request(
                    method, ids.in_path(path), headers={"X-Memory-User": "ada"}, **call.request(ids, user_id="ada")
                )
                for ids in (others, NOBODYS)
            ]
            expected = call.named if call.whose is not None else 404 if path.startswith("/v1/") else call.own
            if path.startswith("/v1/models") or operation == ("post", "/api/import"):
                expected = answers[1].status_code
            assert [answer.status_code for answer in answers] == [expected] * 2, (operation, answers[0].text)
            assert not any(secret in answer.text for answer in answers for secret in SECRETS), operation
            if call.whose in ("query", "body") and call.named == 404:
                unnamed = acme.request(method, replace(others).in_path(path), **call.request(others, user_id=None))
                assert unnamed.status_code == 422, (operation, unnamed.text)
                assert [one["field"] for one in unnamed.json()["error"]["details"]] == ["user_id"], operation
        body: Json = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "list_facts", "arguments": {}},
        }
        assert "error" in acme.post("/mcp", json=body, headers=MCP).json()
