from typing import Any, cast

import pytest

from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service
from tests.service.support.shapes import CHANGE, HIT, REFUSED, TURN, USAGE, check_turn
from tests.service.support.visitor import checked

FACTS = ("/api/users/{user_id}/facts", "/api/global/facts")
FACT_VERBS = (
    *(("get", ""), ("put", "/by-key/{key}"), ("get", "/{fact_id}"), ("patch", "/{fact_id}"), ("delete", "/{fact_id}")),
    *(("get", "/{fact_id}/history"), ("post", "/{fact_id}/approve"), ("post", "/{fact_id}/reject")),
)
PATHS = {
    ("post", "/api/agent"),
    ("post", "/api/context"),
    ("post", "/api/exchanges"),
    ("get", "/api/turns/{turn_id}"),
    *((method, "/api/threads/{thread_id}/messages") for method in ("get", "post")),
    ("post", "/api/turns/{turn_id}/undo"),
    ("post", "/api/turns/{turn_id}/learn"),
    ("post", "/api/turns/{turn_id}/regenerate"),
    *(("get", "/api/memory"), ("post", "/api/memory"), ("post", "/api/memory/add"), ("post", "/api/memory/search")),
    *((method, "/api/memory/{memory_id}") for method in ("get", "patch", "delete")),
    *((method, "/api/threads/{thread_id}") for method in ("get", "patch", "delete")),
    ("post", "/memory/clear/{session_id}"),
    ("get", "/memory-stats"),
    *((method, place + verb) for place in FACTS for method, verb in FACT_VERBS),
    ("get", "/health"),
    ("get", "/health/ready"),
    ("get", "/metrics"),
}
NO_JSON = {"/api/users/{user_id}/export", "/metrics"}
ELSEWHERE = {"{import_id}", "{document_id}", "{erasure_id}"}
"""The operations that have tests of their own."""


@pytest.fixture(scope="module")
def document(offline: Service) -> dict[str, Any]:
    return offline.get("/openapi.json")


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(method, path): item for path, methods in document["paths"].items() for method, item in methods.items()}


def test_every_route_of_the_contract_is_described(document: dict[str, Any]) -> None:
    found = operations(document)
    assert set(found) >= PATHS
    for operation in found.values():
        assert operation["summary"]
        assert operation["description"]
        assert operation["tags"]


def test_every_route_shows_its_answer_and_its_errors(document: dict[str, Any]) -> None:
    for (_, path), operation in operations(document).items():
        answers, is_openais = operation["responses"], path.startswith("/v1/")
        if "204" not in answers:
            good = next(answers[status] for status in ("200", "201") if status in answers)
            assert "application/json" in good["content"] or path in NO_JSON
            schema = good["content"].get("application/json", {"schema": {"$ref": ""}})["schema"]
            assert all("$ref" in one for one in schema.get("anyOf", [schema]))
        assert ("422" in answers) is not is_openais
        for status in ("4XX", "5XX") if is_openais else ("422", "4XX", "5XX"):
            assert answers[status]["content"]["application/json"]["schema"] == {
                "$ref": f"#/components/schemas/{'OpenAIErrorAnswer' if is_openais else 'ErrorAnswer'}"
            }
    assert "text/event-stream" in operations(document)["post", "/api/agent"]["responses"]["200"]["content"]


def test_parameters_and_the_request_are_described_with_their_bounds(document: dict[str, Any]) -> None:
    schemas = cast("dict[str, dict[str, Any]]", document["components"]["schemas"])
    request, options = schemas["AgentRequest"]["properties"], schemas["MemoryOptions"]["properties"]
    assert schemas["AgentRequest"]["additionalProperties"] is False
    assert schemas["MemoryOptions"]["additionalProperties"] is False
    assert set(schemas["AgentRequest"]["required"]) == {"thread_id", "message"}
    assert (request["message"]["minLength"], request["message"]["maxLength"]) == (1, 200_000)
    assert all(options[name].get("description") for name in options)
    for operation in operations(document).values():
        for parameter in operation.get("parameters", ()):
            said = parameter.get("description") or parameter["schema"].get("description")
            assert said, parameter["name"]


def test_a_route_declares_only_what_it_takes(document: dict[str, Any]) -> None:
    def taken(path: str) -> set[str]:
        return {parameter["name"] for parameter in document["paths"][path]["get"]["parameters"]}

    listed = taken("/api/users/{user_id}/facts")
    assert taken("/api/global/facts") == listed - {"user_id", "thread_id"}
    assert "thread_id" in listed
    assert list(document["paths"]["/metrics"]["get"]["responses"]["200"]["content"]) == ["text/plain"]


def test_answers_have_the_contracts_fields(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, shape in (("Hit", HIT), ("Change", CHANGE), ("Refused", REFUSED), ("Usage", USAGE)):
        assert set(schemas[f"{name}Answer"]["required"]) == set(shape)
    assert set(schemas["TurnAnswer"]["properties"]) == {*TURN, "state", "messages"}


def test_the_examples_are_true(document: dict[str, Any], offline: Service, user: str) -> None:
    post = operations(document)["post", "/api/agent"]
    check_turn(post["responses"]["200"]["content"]["application/json"]["example"])
    (example,) = document["components"]["schemas"]["AgentRequest"]["examples"]
    answer = offline.http.post("/api/agent", json={**example, "user_id": user})
    assert check_turn(answer.json())["reply"]


def test_every_documented_path_answers(document: dict[str, Any], offline: Service, user: str) -> None:
    turn = offline.turn("Hello.", user=user, thread="t1")
    ids = {"turn_id": turn["turn_id"], "thread_id": "t1", "user_id": user, "model_id": "offline"}
    ids |= {"response_id": f"resp_{turn['turn_id']}", "conversation_id": "t1", "item_id": f"in_{turn['turn_id']}"}
    own, shared = FactsOf(offline, user).put("name", value="Ada"), FactsOf(offline, None).put("motto", value="be kind")
    note = offline.http.post("/api/memory", json={"user_id": user, "content": "Likes tea."}).json()
    ids["memory_id"] = note["id"]
    for method, path in operations(document):
        if method == "get" and not ELSEWHERE & set(path.split("/")):
            fact_id = shared["id"] if "global" in path else own["id"]
            answer = offline.http.get(path.format(**ids, fact_id=fact_id), params={"user_id": user, "user": user})
            assert answer.status_code == 200, path
    assert FactsOf(offline, None).ask("DELETE", f"/{shared['id']}").status_code == 204


MOST_BYTES = 100_000
"""The most that a page may be over the wire."""


def test_the_pages_for_people_are_served(offline: Service) -> None:
    docs = checked(offline.http.get("/docs"))
    for path, methods in offline.http.get("/openapi.json").json()["paths"].items():
        assert docs.text.count(f"<code>{path}</code>") == len(methods), path
    for name, schema in offline.http.get("/openapi.json").json()["components"]["schemas"].items():
        assert f'id="{name}"' in docs.text
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in docs.text, (name, field)
    with offline.http.stream("GET", "/docs", headers={"Accept-Encoding": "gzip"}) as answer:
        assert sum(map(len, answer.iter_raw())) < MOST_BYTES
    old = offline.http.get("/redoc")
    assert (old.status_code, old.headers["location"]) == (308, "/docs")
