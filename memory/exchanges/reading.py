"""Reads exchanges from an application's own values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast, get_args

from recollect.memory.exchanges.given_exchange import GivenExchange, SaidMessage
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.further_message import FurtherMessage, FurtherRole
from recollect.memory.values.json_values import MOST_METADATA_DEPTH, json_problem
from recollect.memory.values.times import from_ms, to_ms


def read_exchange(said: Mapping[str, Any], *, now: datetime, place: str = "") -> GivenExchange:
    """Return the exchange of a mapping with the fields of a request; texts may stand for `user` and `assistant`.

    Raises:
        InvalidRequest: a field is missing, unknown or of a wrong type.
    """
    _check_fields(said, ("user", "assistant", "turn_id", "messages", "learn", "wait_for_memory", "agent_id"), place)
    user = _read_said(said.get("user"), f"{place}user")
    answer = said.get("assistant")
    at = _in_milliseconds(user.created_at or now)
    return GivenExchange(
        user=replace(user, created_at=at),
        assistant=None if answer is None else _read_said(answer, f"{place}assistant"),
        turn_id=_typed(said.get("turn_id"), (str, type(None)), f"{place}turn_id", "must be a text"),
        messages=tuple(
            _read_further(one, at, f"{place}messages.{number}")
            for number, one in enumerate(
                _typed(said.get("messages") or (), (list, tuple), f"{place}messages", "must be a list")
            )
        ),
        learn=_typed(said.get("learn", True), (bool,), f"{place}learn", "must be true or false"),
        agent_id=_typed(said.get("agent_id"), (str, type(None)), f"{place}agent_id", "must be a text"),
    )


def _read_said(said: Any, place: str, *, more: Sequence[str] = ()) -> SaidMessage:
    if isinstance(said, str):
        return SaidMessage(said)
    fields: Mapping[str, Any] = _typed(said, (Mapping,), place, "must be a text or an object with content")
    _check_fields(fields, ("content", "name", "created_at", "metadata", *more), f"{place}.")
    at = fields.get("created_at")
    metadata: Mapping[str, Any] = _typed(
        fields.get("metadata") or {}, (Mapping,), f"{place}.metadata", "must be an object"
    )
    problem = json_problem(dict(metadata), MOST_METADATA_DEPTH)
    if problem is not None:
        raise _wrong(f"{place}.metadata", problem)
    return SaidMessage(
        _typed(fields.get("content"), (str,), f"{place}.content", "must be a text"),
        _typed(fields.get("name"), (str, type(None)), f"{place}.name", "must be a text"),
        None if at is None else _read_time(at, f"{place}.created_at"),
        dict(metadata),
    )


def _read_further(said: Any, at: datetime, place: str) -> FurtherMessage:
    fields: Mapping[str, Any] = _typed(said, (Mapping,), place, "must be an object")
    role = fields.get("role")
    if role not in get_args(FurtherRole):
        raise _wrong(f"{place}.role", f"must be one of {', '.join(get_args(FurtherRole))}")
    one = _read_said(said, place, more=("role",))
    return FurtherMessage(cast("FurtherRole", role), one.content, one.created_at or at, one.name, one.metadata)


def _read_time(at: Any, place: str) -> datetime:
    try:
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(time, datetime):
            return _in_milliseconds(time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        pass
    raise _wrong(place, "must be a time such as 2026-01-31T09:30:00Z")


def _check_fields(said: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    unknown = sorted(str(name) for name in said if name not in known)
    if unknown:
        raise _wrong(f"{place}{unknown[0]}"[:200], "is not a known field")


def _typed(value: Any, kinds: tuple[type, ...], place: str, problem: str) -> Any:
    if not isinstance(value, kinds):
        raise _wrong(place, "is missing" if value is None else problem)
    return value


def _wrong(place: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The request is not valid: see {place}.", problems=[Problem(place, problem)])


def _in_milliseconds(time: datetime) -> datetime:
    return from_ms(to_ms(time))
