"""One user's key, and everything of another's: each door answers as if there were no such thing."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.service.support.locked import bearer, key_caller, owner_token, said
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused
from tests.service.support.walk import CALLS, Ids, ids_of_nothing, steady

SECRETS = ("heliotrope", "quokka", "marzipan")
OF_A_THREAD = ("{thread_id}", "{session_id}", "/archive", "/summary", "/messages", "{conversation_id}", "/items")
"""Ends of paths that are about a thread alone."""
NOBODYS = ids_of_nothing("nobody-such")
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("two"), AUTH="api_key") as running:
        yield running


@pytest.fixture(scope="module")
def bobs(locked: Service) -> Ids:
    """Bob's things of every kind; the erasure is a third user's own."""
    with key_caller(locked, "user:bob") as bob, key_caller(locked, "user:carl") as carl:
        turn = said(
            bob,
            f"My codeword is {SECRETS[0]} and my pet is a {SECRETS[1]}.",
            thread="bobs-thread",
            wait_for_memory=True,
        )
        fact = _made(bob.put("/api/users/bob/facts/by-key/codeword", json={"value": SECRETS[0]}))
        note = _made(bob.post("/api/memory", json={"content": f"Bob likes {SECRETS[2]}."}))
        document = _made(bob.post("/api/documents", json={"text": f"All about {SECRETS[2]}.", "source": "secrets"}))
        _made(bob.put(f"/api/threads/bobs-thread/documents/{document['id']}"))
        _made(bob.put("/api/threads/bobs-thread/summary", json={"summary": f"Of {SECRETS[1]}s."}))
        said(carl, "Hello.")
        erased = _made(carl.delete("/api/users/carl"))
    return Ids(
        user_id="bob",
        thread_id="bobs-thread",
        session_id="bobs-thread",
        turn_id=turn["turn_id"],
        fact_id=fact["id"],
        memory_id=note["id"],
        document_id=document["id"],
        erasure_id=erased["erasure_id"],
    )


@pytest.fixture
def ada(locked: Service) -> Iterator[tuple[str, httpx.Client]]:
    """Yield a user of the test's own who has a thread, with a key of their own."""
    name = f"ada-{uuid4().hex[:8]}"
    with key_caller(locked, f"user:{name}") as client:
        said(client, "Hello.", thread="adas-thread")
        yield name, client


def _made(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code in {200, 201}, answer.text
    made: dict[str, Any] = answer.json()
    return made


def all_of(locked: Service, user_id: str) -> str:
    """Return the user's whole export."""
    exported = locked.http.get(f"/api/users/{user_id}/export", headers=bearer(owner_token(locked)))
    assert exported.status_code == 200
    return exported.text


@pytest.fixture
def bobs_export(locked: Service, bobs: Ids) -> Iterator[str]:
    """Yield all that there is of Bob; a test must leave it as it was."""
    before = all_of(locked, "bob")
    assert all(secret in before for secret in SECRETS)
    yield before
    assert all_of(locked, "bob") == before


def operations(locked: Service) -> list[tuple[str, str]]:
    paths = locked.get("/openapi.json")["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


def ask(client: httpx.Client, operation: tuple[str, str], ids: Ids, *, user_id: str | None) -> httpx.Response:
    method, path = operation
    answer = client.request(method, ids.in_path(path), **CALLS[operation].request(ids, user_id=user_id))
    assert not any(secret in answer.text for secret in SECRETS), (operation, answer.text)
    return answer


def test_every_operation_is_walked(locked: Service) -> None:
    assert set(operations(locked)) == set(CALLS)


def test_whoever_names_another_user_is_told_that_there_is_none(
    locked: Service, bobs: Ids, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    _, client = ada
    for operation, call in CALLS.items():
        if call.whose is None:
            continue
        answers = [ask(client, operation, ids, user_id=ids.user_id) for ids in (bobs, NOBODYS)]
        assert [answer.status_code for answer in answers] == [call.named] * 2, (operation, answers[0].text)
        assert answers[0].text == answers[1].text
        assert answers[0].json()["error"]["code"] == {404: "not_found", 403: "forbidden"}[call.named], operation


def test_in_ones_own_name_anothers_ids_are_ids_of_nothing(
    locked: Service, bobs: Ids, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    name, client = ada
    in_order = sorted(CALLS.items(), key=lambda entry: entry[1].makes)  # what is made must not be found afterwards
    for operation, call in in_order:
        if call.own is None or operation == ("post", "/api/import"):
            continue
        for thread in ({}, {"thread_id": "adas-thread", "session_id": "adas-thread"}):
            if call.makes and thread:
                continue
            if operation[1].endswith(OF_A_THREAD) and thread:
                continue  # about the thread alone, which is the caller's own
            check_own(client, operation, (replace(bobs, **thread), replace(NOBODYS, **thread)), name)


def check_own(client: httpx.Client, operation: tuple[str, str], pair: tuple[Ids, Ids], name: str) -> None:
    """With and without the user's own name, another's ids and those of nothing get the same answer."""
    call = CALLS[operation]
    for user_id in (None, name):
        given = [replace(ids, user_id=name) if call.whose == "path" else ids for ids in pair]
        answers = [ask(client, operation, ids, user_id=user_id) for ids in given]
        assert [answer.status_code for answer in answers] == [call.own] * 2, (operation, answers[0].text)
        if not call.makes:
            assert steady(answers[0].text) == steady(answers[1].text), operation


def test_lines_that_name_another_user_fail_like_those_of_nobody(
    locked: Service, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    bobs_lines = bobs_export.splitlines()
    assert len(bobs_lines) > 5
    for text in (bobs_export, bobs_export.replace('"bob"', '"nobody-such"')):
        answer = ada[1].post("/api/import", content=text.encode()).json()
        assert (answer["imported"], answer["known"], len(answer["failed"])) == (0, 0, len(bobs_lines))
        assert len({one["error"] for one in answer["failed"]}) == 1
        assert not any(secret in str(answer) for secret in SECRETS)


def ids_found(client: httpx.Client) -> list[str]:
    """Return the ids of all that a search of the client's user finds."""
    asked = {"query": " ".join(SECRETS), "top_k": 50, "score_threshold": -1}
    answer = client.post("/api/memory/search", json=asked)
    assert answer.status_code == 200, answer.text
    return sorted(hit["id"] for hit in answer.json()["hits"])


def test_facts_that_are_given_anothers_ids_hide_nothing_of_theirs(
    locked: Service, bobs: Ids, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    name, client = ada
    with key_caller(locked, "user:bob") as bob:
        before = ids_found(bob)
        assert len(before) > 3
        _made(client.post("/api/memory", json={"content": "Ada likes fog."}))
        (own,) = [
            line
            for line in map(json.loads, client.get(f"/api/users/{name}/export").text.splitlines())
            if line["type"] == "fact"
        ]
        ids = sorted({*UUIDS.findall(bobs_export), *before})
        planted = [{**own, "id": each, "statement": f"Planted {number}."} for number, each in enumerate(ids)]
        lines = "\n".join(json.dumps(line) for line in planted)
        answer = client.post("/api/import", content=lines.encode()).json()
        assert (answer["imported"], answer["failed"]) == (len(ids), [])
        assert ids_found(bob) == before
        for each in ids:
            assert client.delete(f"/api/users/{name}/facts/{each}").is_success
        assert ids_found(bob) == before
    doctored = locked.http.get("/api/admin/doctor", headers=bearer(owner_token(locked))).json()
    assert doctored["healthy"], doctored


def test_a_form_that_names_another_user_is_refused_as_json_is(
    locked: Service, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    for user_id in ("bob", "nobody-such"):
        answer = ada[1].post(
            "/api/documents",
            data={"user_id": user_id, "source": "secrets"},
            files={"file": ("mine.txt", b"Mine.", "text/plain")},
        )
        refused(answer, 404, "not_found")


def rpc(client: httpx.Client, method: str, **params: Any) -> dict[str, Any]:
    """Return one call of MCP, in every place naming Bob."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post("/mcp", json=body, headers={**MCP, "X-Memory-User": "bob"}, params={"user_id": "bob"})
    assert not any(secret in answer.text for secret in SECRETS), answer.text
    said_own = client.post("/mcp", json=body, headers=MCP)
    assert not any(secret in said_own.text for secret in SECRETS), said_own.text
    shown: dict[str, Any] = said_own.json()
    return shown


def test_mcp_knows_the_keys_own_user_alone(
    locked: Service, bobs: Ids, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    _, client = ada
    arguments = {
        "search_memory": [{"query": "codeword heliotrope"}, {"query": "quokka", "thread_id": bobs.thread_id}],
        "list_facts": [{}, {"after": bobs.fact_id}],
        "forget": [{"id": bobs.fact_id}, {"id": bobs.memory_id}, {"key": "codeword"}],
        "add_memory": [{"content": "Mine."}],
    }
    tools = rpc(client, "tools/list")["result"]["tools"]
    assert {tool["name"] for tool in tools} == set(arguments)
    assert not any("user" in name for tool in tools for name in tool["inputSchema"]["properties"])
    for name, calls in arguments.items():
        for given in calls:
            rpc(client, "tools/call", name=name, arguments=given)
    gone = [rpc(client, "tools/call", name="forget", arguments={"id": ids.fact_id}) for ids in (bobs, NOBODYS)]
    assert gone[0] == gone[1]
    assert gone[0]["result"]["isError"] is True
    for resource in rpc(client, "resources/list")["result"]["resources"]:
        assert rpc(client, "resources/read", uri=resource["uri"])["result"]["contents"]


def test_a_chat_client_cannot_choose_another_end_user_than_its_keys(
    locked: Service, bobs: Ids, bobs_export: str, ada: tuple[str, httpx.Client]
) -> None:
    name, client = ada
    body = {"messages": [{"role": "user", "content": "What is my codeword, and my pet?"}], "user": "bob"}
    for more in ({}, {"memory_id": bobs.thread_id}, {"memory_scope": "user", "memory_top_k": 50}):
        for stream in (False, True):
            answer = client.post(
                "/v1/chat/completions", json={**body, **more, "stream": stream}, headers={"X-Memory-User": "bob"}
            )
            assert answer.status_code == 200, answer.text
            assert not any(secret in answer.text for secret in SECRETS)
    assert f'"{bobs.thread_id}"' in all_of(locked, name), "a thread of the same name, of the key's own user"
