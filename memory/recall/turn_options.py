"""Reads a turn's memory options from an application's own values."""

from collections.abc import Mapping
from typing import Any, TypedDict, get_args

from recollect.memory.options.option_rules import Rule, between, flag, one_of, whole
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.temporal.temporal import read_timezone
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.filtering.filter import of_agent
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.mem_config import Coverage, MemoryConfig, Scoped, TimeUse
from recollect.memory.values.scope import check_id

MOST_DOMAINS, MOST_DOMAIN_CHARACTERS = 20, 64
FIELD = "memory"
"""The field of a request that holds a turn's options."""


class TurnOptions(TypedDict, total=False):
    """The memory options of one turn, as `memory` in a request; what is left out, or None, takes the default."""

    enabled: bool | None
    scope: Scoped | None
    window: int | None
    top_k: int | None
    score_threshold: float | None
    recency_weight: float | None
    mmr_lambda: float | None
    timezone: str | None
    time: TimeUse | None
    fallback_recent: bool | None
    domains: list[str] | None
    filter: Mapping[str, Any] | None
    coverage: Coverage | None
    agent_id: str | None


def read_options(given: Mapping[str, Any], config: MemoryConfig) -> RecallOptions:
    """Return `given` over the configured defaults; None counts as not given.

    Raises:
        InvalidRequest: names each option (`memory.window`) that is unknown or out of its range.
    """
    said = {name: value for name, value in given.items() if value is not None}
    asked, agent_id = said.pop("filter", None), said.pop("agent_id", None)
    told = {name: _RULES[name](value) if name in _RULES else "is not a known field" for name, value in said.items()}
    problems = [Problem(f"{FIELD}.{name}", problem) for name, problem in sorted(told.items()) if problem is not None]
    if problems:
        raise InvalidRequest(f"The request is not valid: see {FIELD}.", problems=problems)
    if "domains" in said:
        said["domains"] = tuple(said["domains"])
    if asked is not None:
        said["filter"] = read_filter(asked, field=f"{FIELD}.filter")
    if agent_id is not None:
        check_id(f"{FIELD}.agent_id", agent_id)
        said |= {"agent_id": agent_id, "filter": of_agent(agent_id, said.get("filter"))}
    return RecallOptions.of(config, **said)


def _timezone(value: Any) -> str | None:
    try:
        read_timezone(value if isinstance(value, str) else "")
    except ValueError:
        return "must be an IANA time zone such as Europe/Berlin"
    return None


def _domains(value: Any) -> str | None:
    names: list[Any] = list(value) if isinstance(value, list | tuple) else [None]  # pyright: ignore[reportUnknownArgumentType] - anything
    fits = len(names) <= MOST_DOMAINS and all(
        isinstance(name, str) and 1 <= len(name) <= MOST_DOMAIN_CHARACTERS for name in names
    )
    return None if fits else f"must be at most {MOST_DOMAINS} texts of 1 to {MOST_DOMAIN_CHARACTERS} characters"


_RULES: Mapping[str, Rule] = {
    "enabled": flag,
    "scope": one_of(*get_args(Scoped)),
    "window": whole(0, 50),
    "top_k": whole(0, 50),
    "score_threshold": between(-1, 1),
    "recency_weight": between(0, 1),
    "mmr_lambda": between(0, 1),
    "timezone": _timezone,
    "time": one_of(*get_args(TimeUse)),
    "fallback_recent": flag,
    "domains": _domains,
    "coverage": one_of(*get_args(Coverage)),
}
