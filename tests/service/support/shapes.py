"""The contract's values by their exact keys and types, as code."""

import re
from collections.abc import Mapping
from typing import Any

import httpx

Json = dict[str, Any]
Shape = Mapping[str, tuple[type | None, ...]]

TEXT, MAYBE = (str,), (str, None)
NUMBER = (float, int)
TURN: Shape = {
    "turn_id": TEXT,
    "user_id": TEXT,
    "thread_id": TEXT,
    "reply": MAYBE,
    "model": MAYBE,
    "memory": (dict,),
    "tools": (list,),
    "usage": (dict,),
    "timings_ms": (dict,),
}
TOOL_USE: Shape = {
    "id": TEXT,
    "name": TEXT,
    "args": (dict,),
    "content": TEXT,
    "ms": (float, None),
    "error": MAYBE,
}
RECALLED: Shape = {"window": (int,), "facts": (dict,), "summary": MAYBE, "hits": (list,), "degraded": (list,)}
UPDATE: Shape = {"status": TEXT, "reason": MAYBE, "model": MAYBE, "changes": (list,), "refused": (list,)}
STEP: Shape = {"status": TEXT, "tries": (int,), "reason": MAYBE, "next_try_at": MAYBE}
USAGE: Shape = {"input_tokens": (int,), "output_tokens": (int,)}
TIMINGS: Shape = {"recall": (float,), "agent": (float,), "total": (float,)}
HIT: Shape = {
    "id": TEXT,
    "kind": TEXT,
    "role": MAYBE,
    "name": MAYBE,
    "content": TEXT,
    "score": NUMBER,
    "similarity": NUMBER,
    "recency": NUMBER,
    "created_at": TEXT,
    "thread_id": MAYBE,
    "turn_id": MAYBE,
    "message_id": MAYBE,
    "repeats": (dict, None),
}
TRACED: Shape = {"id": TEXT, "scores": (dict,), "stage": TEXT, "reason": MAYBE}
CHANGE: Shape = {
    "decision": TEXT,
    "fact_id": TEXT,
    "key": MAYBE,
    "before": MAYBE,
    "after": MAYBE,
    "evidence": TEXT,
    "reason": MAYBE,
}
REFUSED: Shape = {
    "decision": TEXT,
    "fact_id": MAYBE,
    "key": MAYBE,
    "value": MAYBE,
    "evidence": TEXT,
    "reason": TEXT,
}
MESSAGE: Shape = {
    "id": TEXT,
    "turn_id": TEXT,
    "role": TEXT,
    "name": MAYBE,
    "content": TEXT,
    "metadata": (dict,),
    "created_at": TEXT,
}
ERROR: Shape = {"code": TEXT, "message": TEXT, "details": (list, None), "turn_id": MAYBE}
DETAIL: Shape = {"field": TEXT, "problem": TEXT}
LEFT: Shape = {"fact_id": TEXT, "key": MAYBE, "reason": TEXT}
FACT: Shape = {
    **dict.fromkeys(("id", "value", "statement", "scope", "source", "status"), TEXT),
    **dict.fromkeys(("key", "thread_id", "turn_id", "evidence", "replaces", "proposes", "valid_to"), MAYBE),
    **dict.fromkeys(("created_at", "updated_at", "confirmed_at", "valid_from"), TEXT),
    "tags": (list,),
    "metadata": (dict,),
    "importance": NUMBER,
    "pinned": (bool,),
}
VERSION: Shape = {**FACT, "ended": (dict, None)}

ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def check(shape: Shape, value: object) -> Json:
    """Check that `value` has exactly the shape's keys, each of one of its types (a bool is no number); return it."""
    assert isinstance(value, dict), value
    shown: Json = value  # pyright: ignore[reportUnknownVariableType]  # any JSON
    assert set(shown) == set(shape)
    for name, types in shape.items():
        allowed = tuple(type(None) if kind is None else kind for kind in types)
        assert isinstance(shown[name], allowed), (name, shown[name])
        assert bool in types or not isinstance(shown[name], bool), name
    return shown


def check_update(update: object) -> None:
    """Check an update; a stored turn's update shows its steps while it is not done."""
    assert isinstance(update, dict)
    given = dict[str, Any](update)  # pyright: ignore[reportUnknownArgumentType]  # any JSON
    for name, step in given.pop("steps", {}).items():
        assert name in {"facts", "index", "summary"}
        check(STEP, step)
    shown = check(UPDATE, given)
    assert shown["status"] in {"pending", "done", "skipped", "failed"}
    for change in shown["changes"]:
        status = {"status": TEXT} if "status" in change else {}
        assert change.get("status", "proposed") == "proposed"
        assert check({**CHANGE, **status}, change)["decision"] in {"add", "update", "delete", "keep"}
    for refused in shown["refused"]:
        check(REFUSED, refused)


def check_recalled(memory: object) -> None:
    """Check `memory` as the stream's event shows it: without its update; a stored turn that searched has a trace."""
    assert isinstance(memory, dict)
    shown = dict[str, Any](memory)  # pyright: ignore[reportUnknownArgumentType]  # any JSON
    for traced in shown.pop("trace", []):
        assert all(isinstance(score, float) for score in check(TRACED, traced)["scores"].values())
    check(RECALLED, shown)
    assert all(isinstance(part, str) for pair in shown["facts"].items() for part in pair)
    assert all(isinstance(name, str) for name in shown["degraded"])
    for hit in shown["hits"]:
        checked = check(HIT, hit)
        assert checked["kind"] in {"episode", "fact", "summary", "document"}
        assert -1 <= checked["similarity"] <= 1
        assert 0 <= checked["recency"] <= 1
        assert ISO_TIME.fullmatch(checked["created_at"])


def check_turn(turn: object, *, unfinished: bool = False) -> Json:
    """Check a turn as `POST /api/agent` and `GET /api/turns/{turn_id}` show it."""
    shown = check({**TURN, "state": TEXT} if unfinished else TURN, turn)
    memory = dict(shown["memory"])
    check_update(memory.pop("update"))
    check_recalled(memory)
    for use in shown["tools"]:
        check(TOOL_USE, use)
    check(USAGE, shown["usage"])
    check(TIMINGS, shown["timings_ms"])
    if unfinished:
        assert (shown["state"], shown["reply"], shown["model"]) == ("unfinished", None, None)
    else:
        assert shown["reply"]
        assert shown["model"]
    return shown


def as_answered(stored: Json) -> Json:
    """Return a stored turn as its request was answered: without the trace."""
    memory = {name: part for name, part in stored["memory"].items() if name != "trace"}
    return {**stored, "memory": memory}


def check_message(message: object) -> Json:
    shown = check(MESSAGE, message)
    assert shown["role"] in {"user", "assistant"}
    assert ISO_TIME.fullmatch(shown["created_at"])
    return shown


def refused(answer: httpx.Response, status: int, code: str) -> Json:
    """Check that the answer is this error in the contract's form, a sentence with details where invalid; return it."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json"), answer.text
    whole: Json = answer.json()
    assert set(whole) == {"error"}
    error = check(ERROR, whole["error"])
    assert error["code"] == code, error
    assert error["message"].endswith(".")
    shape = {"invalid_request": DETAIL, "facts_changed": LEFT}.get(code)
    assert bool(error["details"]) == (shape is not None)
    for detail in error["details"] or ():
        check(shape or {}, detail)
    return error


def fields(answer: httpx.Response) -> list[str]:
    """Return the fields that a 422 names."""
    return [detail["field"] for detail in refused(answer, 422, "invalid_request")["details"]]
