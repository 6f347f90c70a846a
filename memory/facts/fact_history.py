"""Fact history: keeps the versions of a fact before changes in place, and finds the one in force at a time."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.fact_limits import MOST_VERSIONS


def with_version(fact: Fact, ended: Ended, *, until: datetime | None = None) -> tuple[Mapping[str, Any], ...]:
    """Return the history with `fact` as its newest version, ended by `ended`; `until` shortens its validity."""
    valid_to = fact.valid_to
    if until is not None:
        valid_to = max(fact.valid_from, until if valid_to is None else min(until, valid_to))
    version = replace(fact, valid_to=valid_to).as_version()
    return (*fact.history, {**version, "ended": ended.as_json()})[-MOST_VERSIONS:]


def was_changed_by_person(fact: Fact) -> bool:
    """Tell whether a person has written, changed or pinned the fact."""
    return fact.is_guarded or any(version["ended"]["by"] == "person" for version in fact.history)


def in_force_at(fact: Fact, at: datetime) -> Fact:
    """Return the fact as it was in force at `at`: an earlier version if a person has changed it since, else itself."""
    for version in fact.history:
        ended = version["ended"]
        if ended["by"] != "person" or not _time(version["valid_from"]) <= at < _time(ended["at"]):
            continue
        if version["valid_to"] is None or at < _time(version["valid_to"]):
            return _from_version(fact, version)
    return fact


def _from_version(fact: Fact, version: Mapping[str, Any]) -> Fact:
    names = ("value", "statement", "scope", "thread_id", "turn_id", "source", "importance", "pinned", "evidence")
    return replace(
        fact,
        **{name: version[name] for name in names},
        tags=tuple(version["tags"]),
        metadata=version.get("metadata") or {},
        agent_id=version.get("agent_id"),
        updated_at=_time(version["updated_at"]),
        confirmed_at=_time(version["confirmed_at"]),
        valid_from=_time(version["valid_from"]),
        valid_to=None if version["valid_to"] is None else _time(version["valid_to"]),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def versions(fact: Fact) -> list[dict[str, Any]]:
    """Return all versions under the fact's id, oldest first, each with its end."""
    return [*(dict(version) for version in fact.history), fact.as_version()]


def tombstone(fact: Fact, *, at: datetime) -> Fact:
    """Return the next revision of a forgotten fact: without key, texts, tags, metadata, quote and earlier versions."""
    return fact.revised(
        at=at,
        key=None,
        value="",
        statement="",
        evidence=None,
        tags=(),
        metadata={},
        history=(),
        status="forgotten",
        ended=fact.ended if fact.status == "forgotten" else Ended("person", at, reason="forgotten"),
    )
