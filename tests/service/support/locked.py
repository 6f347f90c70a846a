"""Callers of a service with AUTH: the owner of its DATA_DIR, and holders of keys that the owner made."""

import json
from typing import Any

import httpx

from tests.service.support.running import Service


def owner_token(running: Service) -> str:
    """Return the token in the lock file."""
    token: str = json.loads((running.data_dir / "lock").read_text())["token"]
    return token


def bearer(token: str) -> dict[str, str]:
    """Return the header that shows a token."""
    return {"Authorization": f"Bearer {token}"}


def caller(running: Service, token: str) -> httpx.Client:
    """Return a client that shows this token; the test closes it."""
    return httpx.Client(base_url=running.url, headers=bearer(token), timeout=60)


def made_key(running: Service, role: str, *, name: str | None = None) -> dict[str, Any]:
    """Make a key and return it as the administration answers, its text under `key`."""
    body = {"role": role, "name": name}
    answer = running.http.post("/api/admin/keys", json=body, headers=bearer(owner_token(running)))
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def key_caller(running: Service, role: str) -> httpx.Client:
    """Return a client that shows a new key of this role."""
    return caller(running, made_key(running, role)["key"])


def said(client: httpx.Client, message: str, *, thread: str = "t1", **fields: Any) -> dict[str, Any]:
    """Run one turn that must succeed; return the answer's JSON."""
    answer = client.post("/api/agent", json={"thread_id": thread, "message": message, **fields})
    assert answer.status_code == 200, answer.text
    turn: dict[str, Any] = answer.json()
    return turn
