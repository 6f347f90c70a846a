"""Adds and searches documents over HTTP, and checks what holds for every document."""

import time
from typing import Any

import httpx

from tests.service.support.running import Service

FIELDS = {
    *("id", "user_id", "scope", "title", "domain", "source", "kind", "metadata", "status", "progress", "error"),
    *("characters", "pages", "passages", "created_at", "updated_at"),
}


def add(running: Service, user: str, text: str, **fields: Any) -> dict[str, Any]:
    """Add a text that must be findable at once."""
    answer = running.http.post("/api/documents", json={"user_id": user, "text": text, **fields})
    assert answer.status_code == 201, answer.text
    return checked(answer)


def upload(running: Service, user: str, name: str, data: bytes, *, media: str = "", **fields: str) -> httpx.Response:
    """Send a file as a form."""
    file = (name, data, media) if media else (name, data)
    return running.http.post("/api/documents", data={"user_id": user, **fields}, files={"file": file})


def checked(answer: httpx.Response) -> dict[str, Any]:
    document: dict[str, Any] = answer.json()
    assert set(document) == FIELDS
    assert document["status"] == ("processing" if answer.status_code == 202 else "done")
    return document


def refusal(answer: httpx.Response, status: int, code: str) -> str:
    """Return the problem of a document that was refused; its field is `file`."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]
    ((field, problem),) = [(each["field"], each["problem"]) for each in error["details"]]
    assert field == "file"
    return str(problem)


def ended(running: Service, user: str, document_id: str, *, seconds: float = 30) -> dict[str, Any]:
    """Wait until the document is no longer processing; return it."""
    deadline = time.monotonic() + seconds
    while True:
        document = running.get(f"/api/documents/{document_id}", user_id=user)
        if document["status"] != "processing":
            return document
        assert time.monotonic() < deadline, f"still processing: {document}\n{running.log}"
        time.sleep(0.05)


def search(running: Service, user: str, query: str, **more: Any) -> list[dict[str, Any]]:
    """Return the hits of a search in documents alone."""
    body = {"user_id": user, "query": query, "kinds": ["document"], **more}
    answer = running.http.post("/api/memory/search", json=body)
    assert answer.status_code == 200, answer.text
    hits: list[dict[str, Any]] = answer.json()["hits"]
    return hits


def attach(running: Service, user: str, thread: str, document_id: str) -> dict[str, Any]:
    """Attach a document that must exist."""
    answer = running.http.put(f"/api/threads/{thread}/documents/{document_id}", params={"user_id": user})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown
