"""Fact edit: checks what a person writes, and makes a new fact or the next revision of a known one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypedDict

from recollect.memory.facts.fact_history import with_version
from recollect.memory.values.decision import FactScope
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.fact import Ended, Fact, is_key
from recollect.memory.values.fact_limits import (
    MOST_STATEMENT_CHARACTERS,
    MOST_TAG_CHARACTERS,
    MOST_TAGS,
    MOST_VALUE_CHARACTERS,
)
from recollect.memory.values.json_values import metadata_problem
from recollect.memory.values.scope import GLOBAL_USER, ID_RULE, Scope, check_id, is_id
from recollect.memory.values.text import text_problem


class FactEdit(TypedDict, total=False):
    """Gives fields of a fact; the others stay as they are, or take a new fact's defaults.

    `value` has 1-1,000 characters, `statement` at most 2,000 (None: made from key and value); at most 10 `tags` of
    1-64 characters; `importance` is in [0, 1]. A `scope` "thread" needs a `thread_id`. It holds from `valid_from`
    (None: from now on, or as before) until just before `valid_to` (None: without end). `metadata` is a JSON object of
    at most 20 levels and 100,000 characters; `agent_id` labels the fact.
    """

    value: str
    statement: str | None
    tags: Sequence[str]
    importance: float
    pinned: bool
    scope: FactScope
    thread_id: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    metadata: Mapping[str, Any]
    agent_id: str | None


def check_key(key: str) -> str:
    """Return `key` if it has the form of one.

    Raises:
        InvalidRequest: it is no key.
    """
    if not is_key(key):
        raise _invalid([Problem("key", "must be of the form [a-z][a-z0-9_]{0,63}")])
    return key


def home_of(user_id: str, edit: FactEdit, known: Fact | None = None) -> tuple[FactScope, Scope]:
    """Return the edited fact's scope, and the user and thread that it lives in.

    Raises:
        InvalidRequest: scope and thread do not fit each other, or the user cannot have such a scope.
    """
    was: FactScope = "global" if user_id == GLOBAL_USER else "user"
    scope = edit.get("scope", known.scope if known is not None else was)
    if (scope == "global") != (user_id == GLOBAL_USER):
        raise _invalid([Problem("scope", "must be global for global facts, and user or thread for a user's")])
    thread_id = edit.get("thread_id")
    if scope != "thread":
        if thread_id is not None:
            raise _invalid([Problem("thread_id", "is for facts of scope thread alone")])
        return scope, Scope(user_id)
    if thread_id is None and known is not None and known.scope == "thread" and "thread_id" not in edit:
        thread_id = known.thread_id
    if thread_id is None:
        raise _invalid([Problem("thread_id", "is missing: a fact of scope thread lives in one")])
    return scope, Scope(user_id, check_id("thread_id", thread_id))


def written(user_id: str, key: str | None, edit: FactEdit, *, now: datetime) -> Fact:
    """Make a new fact that a person wrote, under a key or as a note. Its id is still empty.

    Raises:
        InvalidRequest: names each field that is missing or wrong.
    """
    text = "value" if key is not None else "statement"
    if edit.get(text) is None:
        raise _invalid([*_problems(edit), Problem(text, "is missing")])
    scope, home = home_of(user_id, edit)
    blank = Fact(
        id="",
        user_id=user_id,
        key=key,
        value="",
        statement="",
        created_at=now,
        updated_at=now,
        confirmed_at=now,
        valid_from=now,
        scope=scope,
        thread_id=home.thread_id,
        source="manual",
    )
    return replace(blank, **_values(blank, edit))


def edited(fact: Fact, edit: FactEdit, *, now: datetime) -> Fact | None:
    """Make the fact's next revision, with its current version in the history; return None if nothing changes.

    New texts make it a fact that a person wrote. Its validity keeps its beginning, unless the edit gives another.

    Raises:
        InvalidRequest: names each field that is wrong.
    """
    values = _values(fact, edit)
    scope, home = home_of(fact.user_id, edit, fact)
    values["scope"] = scope
    is_rewritten = "value" in edit or "statement" in edit
    if is_rewritten:
        values |= {"source": "manual", "evidence": None, "turn_id": None}
    if scope == "thread" or is_rewritten:
        values["thread_id"] = home.thread_id
    changed = replace(fact, **values)
    if changed == fact:
        return None
    says_other = (changed.value, changed.statement) != (fact.value, fact.statement)
    until = (edit.get("valid_from") or now) if says_other else None
    history = with_version(fact, Ended("person", now), until=until)
    return fact.revised(at=now, **values, confirmed_at=now, history=history)


def _values(fact: Fact, edit: FactEdit) -> dict[str, Any]:
    """Return the plain fields that the edit gives, and the texts that follow from them. Raise InvalidRequest."""
    problems = _problems(edit)
    if problems:
        raise _invalid(problems)
    given: dict[str, Any] = {**edit}
    values: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    if "tags" in edit:
        values["tags"] = tuple(dict.fromkeys(tag.strip() for tag in edit["tags"]))
    if given.get("valid_from") is not None:
        values["valid_from"] = given["valid_from"]
    if "value" in edit or "statement" in edit:
        values |= _texts(fact, edit)
    begins, ends = values.get("valid_from", fact.valid_from), values.get("valid_to", fact.valid_to)
    if ends is not None and ends <= begins:
        raise _invalid([Problem("valid_to", "must be after valid_from")])
    return values


_PLAIN = ("importance", "pinned", "valid_to", "metadata", "agent_id")


def _texts(fact: Fact, edit: FactEdit) -> dict[str, str]:
    """Return value and statement. Without a key the given one is used for both; with one, a statement is made of it."""
    statement = (edit.get("statement") or "").strip()
    value = edit["value"].strip() if "value" in edit else fact.value
    if fact.key is None and "value" not in edit:
        value = (statement or fact.statement)[:MOST_VALUE_CHARACTERS]
    return {"value": value, "statement": statement or (value if fact.key is None else f"{fact.key}: {value}")}


def _problems(edit: FactEdit) -> list[Problem]:
    checks = {
        "value": _value_problem(edit["value"]) if "value" in edit else None,
        "statement": _statement_problem(edit.get("statement")),
        "tags": _tags_problem(edit.get("tags", ())),
        "importance": _importance_problem(edit.get("importance", 0.5)),
        "metadata": metadata_problem(edit.get("metadata", {})),
        "agent_id": _id_problem(edit.get("agent_id")),
    }
    return [Problem(name, problem) for name, problem in checks.items() if problem is not None]


def _value_problem(value: str) -> str | None:
    if not value.strip():
        return "must not be empty"
    if len(value.strip()) > MOST_VALUE_CHARACTERS:
        return f"must have at most {MOST_VALUE_CHARACTERS:,} characters"
    return text_problem(value)


def _statement_problem(statement: str | None) -> str | None:
    if statement is None:
        return None
    if not statement.strip():
        return "must not be empty"
    if len(statement.strip()) > MOST_STATEMENT_CHARACTERS:
        return f"must have at most {MOST_STATEMENT_CHARACTERS:,} characters"
    return text_problem(statement)


def _tags_problem(tags: Sequence[str]) -> str | None:
    if len(tags) > MOST_TAGS:
        return f"must be at most {MOST_TAGS}"
    if not all(0 < len(tag.strip()) <= MOST_TAG_CHARACTERS for tag in tags):
        return f"must have 1 to {MOST_TAG_CHARACTERS} characters each"
    return next((problem for problem in map(text_problem, tags) if problem is not None), None)


def _importance_problem(importance: float) -> str | None:
    return None if math.isfinite(importance) and 0 <= importance <= 1 else "must be between 0 and 1"


def _id_problem(agent_id: str | None) -> str | None:
    return None if agent_id is None or is_id(agent_id) else f"must be {ID_RULE} and not '.' or '..'"


def _invalid(problems: list[Problem]) -> InvalidRequest:
    named = ", ".join(problem.field for problem in problems)
    return InvalidRequest(f"The request is not valid: see {named}.", problems=problems)
