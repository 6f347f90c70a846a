"""Clients with nothing but a base URL: DEFAULT_USER, the headers of front ends, and their own chores."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.support.running import Service, service
from tests.service.support.scripts import texts

Json = dict[str, Any]


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service that trusts its front end, with a user for those who name none."""
    with service(tmp_path_factory.mktemp("front"), DEFAULT_USER="ada", TRUST_FRONTEND_HEADERS="true") as running:
        yield running


def fate(running: Service, text: str, path: str = "chat/completions", **headers: str) -> Json:
    said: Json = {"messages": [{"role": "user", "content": text}]} if path != "responses" else {"input": text}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = running.http.post(f"/v1/{path}", json=said, headers=named)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()["memory"]
    return found


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_the_default_user_is_whoever_names_nobody(front: Service, path: str) -> None:
    assert fate(front, "Hello.", path)["user_id"] == "ada"
    assert fate(front, "Hello.", path, X_Memory_User="bob")["user_id"] == "bob"
    assert front.http.get("/v1/conversations/none").status_code == 404


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_a_trusted_front_end_names_user_and_chat(front: Service, path: str) -> None:
    chat = path.replace("/", "-")
    headers = {"X_OpenWebUI_User_Id": "eve", "X_OpenWebUI_Chat_Id": chat}
    said = fate(front, "I live in Oslo.", path, **headers)
    assert (said["user_id"], said["thread_id"], said["stored"]) == ("eve", chat, True)
    own = fate(front, "Hello.", path, **headers, X_Memory_User="bob", X_Memory_Id="t9")
    assert (own["user_id"], own["thread_id"]) == ("bob", "t9")


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_a_front_ends_chore_is_answered_and_not_kept(front: Service, path: str) -> None:
    headers = {"X_OpenWebUI_User_Id": "eve", "X_OpenWebUI_Chat_Id": f"chores-{path.replace('/', '-')}"}
    said = fate(front, "### Task:\nMake a title for: I live in Rome.", path, **headers)
    assert said == {"stored": False, "user_id": "eve", "thread_id": None, "turn_id": None, "reason": "chore"}
    assert texts(front, user="eve", thread=headers["X_OpenWebUI_Chat_Id"]) == []
    assert fate(front, "### Task: mine.", path, X_Memory_Id="t2")["stored"] is True


def test_an_empty_header_counts_as_none(front: Service) -> None:
    said = fate(front, "Hello.", X_Memory_User="", X_Memory_Id="", X_OpenWebUI_User_Id="", X_OpenWebUI_Chat_Id="")
    assert (said["user_id"], said["stored"]) == ("ada", True)


def test_untrusted_headers_are_not_read(offline: Service, user: str) -> None:
    said = fate(offline, "Hello.", X_Memory_User=user, X_OpenWebUI_User_Id="eve", X_OpenWebUI_Chat_Id="c1")
    assert (said["user_id"], said["reason"]) == (user, "no_thread")
    headers = {"X-OpenWebUI-User-Id": "eve"}
    body = {"messages": [{"role": "user", "content": "Hello."}]}
    assert offline.http.post("/v1/chat/completions", json=body, headers=headers).status_code == 400
