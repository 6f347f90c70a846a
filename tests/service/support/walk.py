"""Calls each operation of the API as a user who must not reach another's data: the requests of the two-user walk.

An operation without an entry here fails the walk: name its user's place, and the answer in one's own name with
another's ids (`own`), which must equal the answer to ids that do not exist.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, cast
from uuid import uuid4

Json = dict[str, Any]
GLOBAL_FACTS = "/api/global/facts"
USER_FACTS = "/api/users/{user_id}/facts"


@dataclass(frozen=True)
class Ids:
    """The ids of one user's data."""

    user_id: str
    thread_id: str
    session_id: str
    turn_id: str
    fact_id: str
    memory_id: str
    document_id: str
    erasure_id: str
    import_id: str = "import-no-such"
    key: str = "codeword"
    key_id: str = "0" * 16
    model_id: str = "no-such-model"

    def in_path(self, path: str) -> str:
        """Return the path with these ids in it."""
        ids = {item.name: getattr(self, item.name) for item in fields(self)}
        return path.format(
            **ids, response_id=f"resp_{self.turn_id}", conversation_id=self.thread_id, item_id=f"in_{self.turn_id}"
        )


def ids_of_nothing(user_id: str) -> Ids:
    """Return ids of the kinds that exist, of which nothing of this user has one."""
    return Ids(
        user_id=user_id,
        thread_id="no-such-thread",
        session_id="no-such-thread",
        turn_id="no-such-turn",
        fact_id=str(uuid4()),
        memory_id=str(uuid4()),
        document_id=str(uuid4()),
        erasure_id=uuid4().hex,
        key="no_such_key",
    )


HELLO: Json = {"role": "user", "content": "Hello."}


@dataclass(frozen=True)
class Call:
    """One operation. `whose`: where its user is named, None: nowhere. `own` None: it is about the user alone.

    `makes`: in one's own name it makes something new under these ids, so that its answers differ from call to call.
    `query` and `body` leave the user out.
    """

    whose: Literal["path", "query", "body"] | None = "query"
    own: int | None = 404
    named: int = 404
    makes: bool = False
    query: Callable[[Ids], Json] | None = None
    body: Callable[[Ids], Json] | None = None

    def request(self, ids: Ids, *, user_id: str | None) -> Json:
        """Return httpx's arguments; `user_id` None leaves the user out, or for a path is never given."""
        query = self.query(ids) if self.query else {}
        body = self.body(ids) if self.body else None
        if user_id is not None and self.whose == "query":
            query["user_id"] = user_id
        if user_id is not None and self.whose == "body":
            body = {**(body or {}), "user_id": user_id}
        return {"params": query, **({"json": body} if body is not None else {})}


ADMINS = Call(whose=None, own=403)
OF_A_FACT = Call(whose="path")
FACT = {"value": "mine"}


def _turn(ids: Ids) -> Json:
    return {"thread_id": ids.thread_id, "turn_id": ids.turn_id, "message": "What is my codeword?"}


def _chat(ids: Ids) -> Json:
    return {
        "messages": [{"role": "user", "content": "What is my codeword?"}],
        "user": ids.user_id,
        "memory_id": ids.thread_id,
        "memory_scope": "user",
    }


def _response(ids: Ids) -> Json:
    return {"input": "What is my codeword?", "user": ids.user_id, "conversation": ids.thread_id}


CALLS: Mapping[tuple[str, str], Call] = {
    ("post", "/api/exchanges"): Call(
        "body",
        200,
        makes=True,
        body=lambda ids: {
            "thread_id": ids.thread_id,
            "turn_id": ids.turn_id,
            "user": {"content": "What is my codeword?"},
            "assistant": {"content": "I do not know."},
        },
    ),
    ("post", "/api/context"): Call(
        "body", 200, makes=True, body=lambda ids: {"thread_id": ids.thread_id, "message": "codeword"}
    ),
    ("post", "/api/agent"): Call("body", 200, makes=True, body=_turn),
    ("get", "/api/turns/{turn_id}"): Call(),
    ("post", "/api/turns/{turn_id}/undo"): Call(),
    ("post", "/api/turns/{turn_id}/learn"): Call(),
    ("post", "/api/turns/{turn_id}/regenerate"): Call(),
    ("get", "/api/threads"): Call(own=None),
    ("get", "/api/threads/{thread_id}"): Call(),
    ("patch", "/api/threads/{thread_id}"): Call(body=lambda _: {"title": "mine"}),
    ("delete", "/api/threads/{thread_id}"): Call(),
    ("post", "/api/threads/{thread_id}/archive"): Call(),
    ("get", "/api/threads/{thread_id}/summary"): Call(),
    ("put", "/api/threads/{thread_id}/summary"): Call(body=lambda _: {"summary": "mine"}),
    ("get", "/api/threads/{thread_id}/messages"): Call(own=200),
    ("post", "/api/threads/{thread_id}/messages"): Call(
        "body",
        200,
        makes=True,
        body=lambda ids: {"role": "user", "content": "What is my codeword?", "turn_id": ids.turn_id},
    ),
    ("get", "/api/threads/{thread_id}/documents"): Call(own=200),
    ("put", "/api/threads/{thread_id}/documents/{document_id}"): Call(),
    ("delete", "/api/threads/{thread_id}/documents/{document_id}"): Call(),
    ("post", "/memory/clear/{session_id}"): Call(),
    ("get", USER_FACTS): Call("path", 200, query=lambda ids: {"thread_id": ids.thread_id}),
    ("put", f"{USER_FACTS}/by-key/{{key}}"): Call("path", 200, makes=True, body=lambda _: FACT),
    ("get", f"{USER_FACTS}/{{fact_id}}"): OF_A_FACT,
    ("patch", f"{USER_FACTS}/{{fact_id}}"): Call("path", body=lambda _: FACT),
    ("delete", f"{USER_FACTS}/{{fact_id}}"): OF_A_FACT,
    ("get", f"{USER_FACTS}/{{fact_id}}/history"): OF_A_FACT,
    ("post", f"{USER_FACTS}/{{fact_id}}/approve"): OF_A_FACT,
    ("post", f"{USER_FACTS}/{{fact_id}}/reject"): OF_A_FACT,
    ("get", GLOBAL_FACTS): Call(None, 200),
    ("put", f"{GLOBAL_FACTS}/by-key/{{key}}"): Call(None, 403, body=lambda _: FACT),
    ("get", f"{GLOBAL_FACTS}/{{fact_id}}"): Call(None),
    ("patch", f"{GLOBAL_FACTS}/{{fact_id}}"): Call(None, 403, body=lambda _: FACT),
    ("delete", f"{GLOBAL_FACTS}/{{fact_id}}"): ADMINS,
    ("get", f"{GLOBAL_FACTS}/{{fact_id}}/history"): Call(None),
    ("post", f"{GLOBAL_FACTS}/{{fact_id}}/approve"): ADMINS,
    ("post", f"{GLOBAL_FACTS}/{{fact_id}}/reject"): ADMINS,
    ("post", "/api/memory/search"): Call(
        "body", 200, body=lambda ids: {"thread_id": ids.thread_id, "query": "codeword heliotrope"}
    ),
    ("get", "/api/memory"): Call(own=None),
    ("post", "/api/memory"): Call("body", 201, makes=True, body=lambda _: {"content": f"Mine: {uuid4()}."}),
    ("post", "/api/memory/add"): Call(
        "body", 200, makes=True, body=lambda ids: {"thread_id": ids.thread_id, "content": "My pet is a cat."}
    ),
    ("get", "/api/memory/{memory_id}"): Call(),
    ("patch", "/api/memory/{memory_id}"): Call(body=lambda _: {"content": "Mine."}),
    ("delete", "/api/memory/{memory_id}"): Call(),
    ("get", "/memory-stats"): Call(own=200, query=lambda ids: {"session_id": ids.thread_id}),
    ("post", "/api/import"): Call(None, 200, makes=True),  # its lines name users: a test of its own
    ("get", "/api/import/{import_id}"): Call(None),  # kept by its caller: tested with the imports
    ("get", "/api/documents"): Call(own=None),
    ("post", "/api/documents"): Call("body", 201, makes=True, body=lambda _: {"text": "Mine.", "source": "secrets"}),
    ("get", "/api/documents/{document_id}"): Call(),
    ("delete", "/api/documents/{document_id}"): Call(),
    ("get", "/api/users/{user_id}/export"): Call("path", None),
    ("delete", "/api/users/{user_id}"): Call("path", None),
    ("get", "/api/erasures/{erasure_id}"): Call(None),
    # A client names its own end user there; a key bound to one user overrides it, so no other user is reached.
    ("post", "/v1/chat/completions"): Call(None, 200, makes=True, body=_chat),
    ("post", "/v1/responses"): Call(None, 200, makes=True, body=_response),
    ("get", "/v1/responses/{response_id}"): Call(None),
    ("delete", "/v1/responses/{response_id}"): Call(None),
    ("get", "/v1/responses/{response_id}/input_items"): Call(None),
    ("post", "/v1/conversations"): Call(None, 200, makes=True, body=lambda _: {}),
    ("get", "/v1/conversations/{conversation_id}"): Call(None),
    ("delete", "/v1/conversations/{conversation_id}"): Call(None),
    ("get", "/v1/conversations/{conversation_id}/items"): Call(None),
    ("post", "/v1/conversations/{conversation_id}/items"): Call(None, body=lambda _: {"items": [HELLO]}),
    ("get", "/v1/conversations/{conversation_id}/items/{item_id}"): Call(None),
    ("get", "/v1/models"): Call(None, 200),
    ("get", "/v1/models/{model_id}"): Call(None),
    ("get", "/metrics"): ADMINS,
    ("get", "/api/admin/turns/{turn_id}/prompt"): ADMINS,
    ("get", "/health"): Call(None, 200),
    ("get", "/health/ready"): Call(None, 200),
    ("get", "/api/admin/doctor"): ADMINS,
    ("post", "/api/admin/reindex"): Call("body", 403, named=403, body=lambda _: {}),
    ("post", "/api/admin/learn"): Call(None, 403, body=lambda _: {"failed": True}),
    ("post", "/api/admin/eval"): Call(
        None, 403, body=lambda ids: {"cases": [{"user_id": ids.user_id, "query": "codeword", "expect": ["x"]}]}
    ),
    ("get", "/api/admin/eval/cases"): Call("query", 403, named=403),
    ("get", "/api/admin/embedder"): ADMINS,
    ("post", "/api/admin/embedder/prepare"): Call(None, 403, body=lambda _: {"model": "lexical"}),
    ("post", "/api/admin/embedder/switch"): ADMINS,
    ("post", "/api/admin/embedder/back"): ADMINS,
    ("post", "/api/admin/embedder/drop"): ADMINS,
    ("get", "/api/admin/keys"): ADMINS,
    ("post", "/api/admin/keys"): Call(None, 403, body=lambda ids: {"role": f"user:{ids.user_id}"}),
    ("delete", "/api/admin/keys/{key_id}"): ADMINS,
}

VOLATILE = frozenset({"took_ms", "created"})


def steady(text: str) -> Any:
    """Return an answer's JSON without the values that differ from call to call anyway."""
    try:
        return _steady(json.loads(text))
    except ValueError:
        return text


def _steady(said: Any) -> Any:
    if isinstance(said, dict):
        known = cast("Json", said)
        return {name: _steady(value) for name, value in known.items() if name not in VOLATILE}
    return said
